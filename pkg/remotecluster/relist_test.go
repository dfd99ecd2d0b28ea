package remotecluster

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAListForRoomChangesNoState: a cluster over its budget is listed again and again.
// What is known is then told as not confirmed since, and the cluster as over its budget
// all the time.
func TestAListForRoomChangesNoState(t *testing.T) {
	t.Parallel()
	now := time.Now()
	well := store.Status{Synced: true, Following: true, Followed: true, AsOf: now}
	over := well
	over.Count, over.Rejected, over.Over = 7, 3, store.OverKeys
	over.Rejections = map[wire.Reason]int{wire.ReasonBudget: 3}
	relisted := over
	relisted.Following, relisted.Listing, relisted.Read, relisted.Total = false, true, 2, 10
	behind := relisted
	behind.Rejections, behind.Rejected, behind.Over = nil, 0, 0
	status := func(nodes, ips store.Status) Status {
		c := newBench(t).cluster
		c.Sources = []Source{&fixed{resource: wire.Nodes, status: nodes}, &fixed{resource: wire.IPs, status: ips}}
		c.track.client, c.track.at, c.track.capabilities = &fixedClient{}, phaseSync, &wire.Capabilities{}
		c.track.config, c.track.canaries = newConfigWatch("c2", c.Log), newCanaries("c2", false, c.Log)
		c.track.canaries.allowAll()
		return c.Status()
	}
	before, during := status(well, over), status(well, relisted)
	if before.Code != codes.OverBudget || before.State != Degraded {
		t.Fatalf("%+v", before)
	}
	if during.Code != before.Code || during.State != before.State || during.Message != before.Message {
		t.Errorf("while it is listed: %s %s %s", during.State, during.Code, during.Message)
	}
	if f := during.Sources[wire.IPs].Freshness; f.State != FreshnessStale || !f.AsOf.Equal(now) {
		t.Errorf("what is known is %+v while it is listed", f)
	}
	if f := during.Sources[wire.Nodes].Freshness; f.State != FreshnessSynced {
		t.Errorf("the others are %+v", f)
	}
	// What is listed for another reason is told as that.
	if st := status(behind, relisted); st.Code != codes.NotFollowed {
		t.Errorf("%s: %s", st.Code, st.Message)
	}
	if st := status(well, behind); st.Code != codes.NotFollowed {
		t.Errorf("%s: %s", st.Code, st.Message)
	}
}
