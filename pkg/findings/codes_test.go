package findings

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/codes/codestest"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestEveryEventIsReached goes through two looks at one cluster for each.
func TestEveryEventIsReached(t *testing.T) {
	t.Parallel()
	st := func(change func(*remotecluster.Status)) []remotecluster.Status {
		s := remotecluster.Status{Name: "c1", ID: 1, State: remotecluster.Ready, Connected: true, EtcdClusterID: "a", ConnectedSince: epoch}
		change(&s)
		return []remotecluster.Status{s}
	}
	same := func(*remotecluster.Status) {}
	state := func(to remotecluster.State) func(*remotecluster.Status) {
		return func(s *remotecluster.Status) { s.State = to }
	}
	rejected := func(n int) func(*remotecluster.Status) {
		return func(s *remotecluster.Status) {
			s.Sources = map[wire.Resource]remotecluster.SourceStatus{wire.IPs: {Rejected: n, Synced: true}}
		}
	}
	lost := func(s *remotecluster.Status) { s.Connected = false }
	var reached []codes.Code
	for _, looks := range [][2][]remotecluster.Status{
		{nil, st(same)},
		{st(same), nil},
		{st(lost), st(same)},
		{st(same), st(lost)},
		{st(state(remotecluster.Syncing)), st(same)},
		{st(same), st(state(remotecluster.Syncing))},
		{st(same), st(state(remotecluster.Degraded))},
		{st(same), st(state(remotecluster.Failed))},
		{st(same), st(state(remotecluster.Connecting))},
		{st(same), st(state(remotecluster.Removing))},
		{st(lost), st(func(s *remotecluster.Status) { s.Connected, s.LastError, s.Failures = false, "refused", 1 })},
		{st(same), st(func(s *remotecluster.Status) { s.ID = 2 })},
		{st(same), st(func(s *remotecluster.Status) { s.EtcdClusterID = "b" })},
		{st(rejected(0)), st(rejected(1))},
		{st(rejected(1)), st(rejected(0))},
		{st(same), st(func(s *remotecluster.Status) { s.Withheld = epoch })},
		{st(func(s *remotecluster.Status) { s.Withheld = epoch }), st(same)},
	} {
		for _, e := range clusterEvents(looks[0], looks[1]) {
			reached = append(reached, e.Code)
		}
	}
	codestest.Reached(t, codes.Events, reached...)
}
