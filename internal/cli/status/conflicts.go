package status

import (
	"context"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// mostConflicts is how many conflicts status shows.
const mostConflicts = 5

// firstConflicts are the first ones, where there are any.
func firstConflicts(ctx context.Context, cl *client.Client, st *api.Status) ([]api.Conflict, error) {
	if st.Summary.Conflicts == 0 {
		return nil, nil
	}
	conflicts, _, err := resource.Collect[api.Conflict](ctx, cl, "conflicts", client.Query{}, mostConflicts)
	return conflicts, err
}

// writeConflicts tells of what clusters disagree on: they may be ready all the same.
func (v *View) writeConflicts(p *printer.Page) {
	if len(v.conflicts) == 0 {
		return
	}
	p.Section("Conflicts (%d)", max(v.Summary.Conflicts, len(v.conflicts)))
	shown := v.conflicts[:min(len(v.conflicts), mostConflicts)]
	for _, c := range shown {
		p.Item(c.Kind+"  ", "%s", explain.Coded(c.Code, c.Message))
	}
	if n := v.Summary.Conflicts - len(shown); n > 0 {
		p.Advice("%d more: 'mesh-agent get conflicts' lists them, 'mesh-agent describe conflict NAME' says what to do.", n)
	} else {
		p.Advice("'mesh-agent describe conflict NAME' says what to do; 'mesh-agent get conflicts' has the names.")
	}
	p.End()
}

// writeExit says why the exit code is 1, where it is.
func writeExit(p *printer.Page, why []string) {
	if len(why) > 0 {
		p.Blank()
		p.Text("exit 1: %s (--fail-on chooses what counts)", strings.Join(why, ", "))
	}
}
