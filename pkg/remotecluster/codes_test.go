package remotecluster

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/guard"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/codes/codestest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// fixed is a source that says always the same.
type fixed struct {
	Source
	resource wire.Resource
	status   store.Status
}

func (f *fixed) Resource() wire.Resource { return f.resource }
func (f *fixed) Status() store.Status    { return f.status }

// fixedClient is a session that says always the same.
type fixedClient struct {
	Client
	status kvstore.Status
}

func (f *fixedClient) Status() kvstore.Status { return f.status }

func inadmissible(code codes.Code) func(*Cluster, *fixed) {
	return func(c *Cluster, _ *fixed) { c.track.refusal = &Inadmissible{Code: code, Why: "not so"} }
}

// TestEveryStateIsReached: each situation is a change of a cluster that is well.
func TestEveryStateIsReached(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	now := time.Now()
	never := func(c *Cluster, s *fixed) { c.track.client, s.status = nil, store.Status{} }
	cases := map[codes.Code]func(*Cluster, *fixed){
		codes.AllFollowed:          func(*Cluster, *fixed) {},
		codes.BeingRemoved:         func(c *Cluster, _ *fixed) { c.track.draining = true },
		codes.FileUnusable:         func(c *Cluster, _ *fixed) { c.track.unusable = broken },
		codes.ConfigurationRefused: func(c *Cluster, _ *fixed) { c.track.refusal = broken },
		codes.ClusterIDTaken: func(c *Cluster, _ *fixed) {
			c.track.conflict = &IDConflict{ID: 2, Holder: "c3"}
			c.track.refusal = c.track.conflict
		},
		codes.ClusterIDRemembered: func(c *Cluster, _ *fixed) {
			c.track.conflict = &IDConflict{ID: 2, Holder: "c3", Remembered: true}
			c.track.refusal = c.track.conflict
		},
		codes.ClusterNotAdmitted: inadmissible(codes.ClusterNotAdmitted),
		codes.ClusterIDNotPinned: inadmissible(codes.ClusterIDNotPinned),
		codes.ClusterIDUnsteady:  inadmissible(codes.ClusterIDUnsteady),
		codes.NotConnectedYet:    never,
		codes.ConnectionLost:     func(c *Cluster, _ *fixed) { c.track.client, c.track.lastError = nil, broken },
		codes.EtcdSilent:         func(c *Cluster, _ *fixed) { c.track.probeError = broken },
		codes.NoConfiguration:    func(c *Cluster, s *fixed) { c.track.at, c.track.canaries, s.status = phaseConfig, nil, store.Status{} },
		codes.NoCanary: func(c *Cluster, s *fixed) {
			s.status, c.track.canaries = store.Status{}, newCanaries("c2", false, c.Log)
		},
		codes.ListFails:   func(_ *Cluster, s *fixed) { s.status = store.Status{Err: broken} },
		codes.Copying:     func(_ *Cluster, s *fixed) { s.status = store.Status{Listing: true, Read: 5000, Total: 12000} },
		codes.NotFollowed: func(_ *Cluster, s *fixed) { s.status.Following = false },
		codes.ConfigurationGone: func(c *Cluster, _ *fixed) {
			c.track.config.vanished = true
		},
		codes.DetailsMissing: func(c *Cluster, _ *fixed) {
			c.track.capabilities.EndpointSlicesExportMode = wire.EndpointSlicesBoth
			c.Sources = append(c.Sources, &fixed{resource: wire.EndpointSlices})
			c.track.late[wire.EndpointSlices] = true
		},
		codes.StreamBroken: func(_ *Cluster, s *fixed) { s.status.Err = broken },
		codes.CopyStopped: func(_ *Cluster, s *fixed) {
			s.status.AsOf, s.status.Pending, s.status.Err = now.Add(-time.Hour), 3, fmt.Errorf("%w: full", syncstore.ErrStopped)
		},
		codes.CopyBehind:   func(_ *Cluster, s *fixed) { s.status.AsOf, s.status.Pending = now.Add(-time.Hour), 3 },
		codes.NotConfirmed: func(_ *Cluster, s *fixed) { s.status.AsOf = now.Add(-time.Hour) },
		codes.AllRefused:   func(_ *Cluster, s *fixed) { s.status.Rejected = 3 },
		codes.NoHeartbeat: func(c *Cluster, _ *fixed) {
			c.track.client = &fixedClient{status: kvstore.Status{Heartbeat: kvstore.HeartbeatStatus{Stale: true}}}
		},
		codes.ProtocolBroken: func(c *Cluster, _ *fixed) {
			c.track.failed(fmt.Errorf("list: %w", kvstore.ErrProtocol), time.Second)
		},
		codes.InternalError: func(c *Cluster, _ *fixed) {
			c.track.failed(guard.Run(func() error { panic("a mistake") }), time.Second)
		},
		codes.OverBudget: func(_ *Cluster, s *fixed) {
			s.status.Count, s.status.Rejected, s.status.Over = 7, 3, store.OverKeys
			s.status.Rejections = map[wire.Reason]int{wire.ReasonBudget: 3}
		},
		codes.OverMemory: func(_ *Cluster, s *fixed) {
			s.status.Count, s.status.Rejected, s.status.Over = 7, 3, store.OverMemory
			s.status.Rejections = map[wire.Reason]int{wire.ReasonBudget: 3}
		},
		codes.ListTooLong: func(_ *Cluster, s *fixed) {
			s.status = store.Status{Err: fmt.Errorf("%w: 5 keys", store.ErrListTooLong)}
		},
		codes.EventsPaced:                func(_ *Cluster, s *fixed) { s.status.Paced = now },
		codes.SessionOutlivesCertificate: func(c *Cluster, _ *fixed) { c.track.certificate = now.Add(-time.Minute) },
		codes.WithoutContact:             func(c *Cluster, _ *fixed) { c.track.contact.withheld = now },
	}
	var reached []codes.Code
	for want, change := range cases {
		c := newBench(t).cluster
		s := &fixed{resource: wire.Nodes, status: store.Status{Synced: true, Following: true, Followed: true, AsOf: now}}
		c.Sources = []Source{s}
		c.track.client, c.track.at, c.track.capabilities = &fixedClient{}, phaseSync, &wire.Capabilities{}
		c.track.config, c.track.canaries = newConfigWatch("c2", c.Log), newCanaries("c2", false, c.Log)
		c.track.canaries.allowAll()
		change(c, s)
		st := c.Status()
		if st.Code != want || (st.Message == "") != (want == codes.AllFollowed) {
			t.Errorf("%s instead of %s: %s: %s", st.Code, want, st.State, st.Message)
		}
		reached = append(reached, st.Code)
	}
	codestest.Reached(t, codes.States, reached...)
}
