package describe

import (
	"context"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/reasons"
)

// why asks why something is as it is, or is not there.
func why(ctx context.Context, cl *client.Client, plural string, parts ...string) (*reasons.Explanation, error) {
	return client.Get[reasons.Explanation](ctx, cl, append([]string{"v1", "why", plural}, parts...)...)
}

// nothing is the description of what is not there.
type nothing struct {
	Why *reasons.Explanation `json:"why"`
}

func (n *nothing) page(p *printer.Page, now time.Time) { explain.WriteWhy(p, n.Why, now) }
