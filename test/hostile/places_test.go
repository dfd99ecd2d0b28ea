package hostile

import (
	"runtime"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// places bounds the lists that run at once, as cmd/mesh-agent does.
func places() *store.Turns { return store.NewTurns(clustermesh.ListsPerCore * runtime.GOMAXPROCS(0)) }
