package httpapi

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestWhatIsNotRead(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	synced := remotecluster.FamilyStatus{Synced: true, Freshness: remotecluster.Freshness{State: remotecluster.FreshnessSynced, AsOf: now}}
	for name, c := range map[string]struct {
		sources map[wire.Resource]remotecluster.FamilyStatus
		notRead bool // nodes
	}{
		"services alone":      {map[wire.Resource]remotecluster.FamilyStatus{wire.Services: synced}, true},
		"nodes, unknown yet":  {map[wire.Resource]remotecluster.FamilyStatus{wire.Services: synced, wire.Nodes: {}}, false},
		"nothing is known of": {nil, false},
	} {
		_, _, _, freshness := byFamily(c.sources, now)
		if f := freshness.Nodes; f.NotRead != c.notRead || f.State != "unknown" {
			t.Errorf("%s: %+v", name, f)
		}
		if freshness.Services.NotRead {
			t.Errorf("%s: services are not read", name)
		}
	}
}
