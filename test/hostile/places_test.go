package hostile

import (
	"runtime"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// places bounds the number of concurrent lists, as internal/agent does.
func places() *store.Turns { return store.NewTurns(clustermesh.ListsPerCore * runtime.GOMAXPROCS(0)) }

// share makes the clusters share the places, within their budgets, as internal/agent does.
func share(p *clustermesh.Params) {
	p.Lists, p.Batches, p.Budgets = places(), store.NewTurns(runtime.GOMAXPROCS(0)), budget.Defaults()
}
