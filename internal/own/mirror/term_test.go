package mirror

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestACopyIsCompleteOnceAllIsListed(t *testing.T) {
	t.Parallel()
	listed, pending := remotecluster.FamilyStatus{Synced: true}, remotecluster.FamilyStatus{Late: true}
	for name, c := range map[string]struct {
		sources map[wire.Resource]remotecluster.FamilyStatus
		want    bool
	}{
		"all listed, the watches not begun": {map[wire.Resource]remotecluster.FamilyStatus{wire.Nodes: listed, wire.IPs: listed}, true},
		"one without its canary":            {map[wire.Resource]remotecluster.FamilyStatus{wire.Nodes: listed, wire.IPs: pending}, false},
		"nothing known":                     {nil, false},
	} {
		if got := copied(remotecluster.Status{Families: c.sources}); got != c.want {
			t.Errorf("%s: copied is %t", name, got)
		}
	}
}
