package remotecluster

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// exportsBench returns a bench with optional service exports. Its deadlines are longer than the test, so the test fails
// if the cluster waits for the exports.
func exportsBench(t *testing.T, change ...func(*Params)) *bench {
	t.Helper()
	b := newBench(t, append(change, func(p *Params) {
		consumerOf(p).skipOptional = true
		p.Timings.DetailDeadline, p.Timings.CanaryDeadline = time.Hour, time.Hour
	})...)
	log := slog.New(slog.DiscardHandler)
	b.cluster.families = []Family{b.source(wire.Nodes, log), b.source(wire.ServiceExports, log)}
	b.put(wire.Nodes, false, "n", "x")
	b.put(wire.ServiceExports, false, "ns/s", "x")
	return b
}

// withExports returns the configuration of a cluster that announces exports, or that it has none.
func withExports(yes bool) wire.ClusterConfig {
	cfg := plain(2)
	cfg.Capabilities.ServiceExportsEnabled = &yes
	return cfg
}

const (
	theNode   = "nodes/n"
	theExport = "serviceexports/ns/s"
)

// stays checks that the cluster is ready without a message until its nodes are next confirmed.
func (b *bench) stays(what string) (st Status) {
	b.t.Helper()
	first := b.cluster.Status().Families[wire.Nodes].Freshness.AsOf
	b.mem.Set("cilium/elsewhere", what)
	return b.eventually("a later proof, "+what, func(st Status) bool {
		if st.State != Ready || !st.Ready || st.Message != "" {
			b.t.Fatalf("%s: %s, ready %t: %s", what, st.State, st.Ready, st.Message)
		}
		return st.Families[wire.Nodes].Freshness.AsOf.After(first)
	})
}

func TestOptionalResourcesAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	b := exportsBench(t)
	b.configure(withCanaries(withExports(true)))
	b.canary(wire.Nodes)
	b.run()
	b.inState(Ready)
	st := b.stays("without the canary")
	if s := st.Families[wire.ServiceExports]; !s.Exported || s.Synced || !s.Late || s.Freshness.State == FreshnessSynced {
		t.Errorf("exports that are not there: %+v", s)
	}
	if s := st.Families[wire.ServiceExports]; s.Freshness.State != FreshnessUnknown || !strings.Contains(s.Why, wire.SyncedKey(testCluster, wire.ServiceExports, false)) {
		t.Errorf("%s: %q", s.Freshness.State, s.Why)
	}
	b.holds(map[string]string{theNode: "x of 2"})
	b.canary(wire.ServiceExports)
	b.holds(map[string]string{theNode: "x of 2", theExport: "x of 2"})
	b.eventually("the exports to be followed", func(st Status) bool {
		s := st.Families[wire.ServiceExports]
		return s.Synced && !s.Late && s.Count == 1 && s.Freshness.State == FreshnessSynced
	})
	if st := b.stays("with the canary"); st.Failures > 0 {
		t.Errorf("%d failures", st.Failures)
	}
	b.put(wire.ServiceExports, false, "ns/s", "bad")
	b.eventually("a refused export", func(st Status) bool { return st.Families[wire.ServiceExports].Rejected == 1 })
	b.stays("with nothing but a refused export")
}

// TestTheCanaryOfAnOptionalResourceEndsNoSession: it does not, however late the canary is.
func TestTheCanaryOfAnOptionalResourceEndsNoSession(t *testing.T) {
	t.Parallel()
	b := exportsBench(t)
	b.cluster.Timings.CanaryDeadline, b.cluster.Timings.DetailDeadline = 20*time.Millisecond, 20*time.Millisecond
	b.canary(wire.Nodes)
	b.run()
	b.configure(withCanaries(withExports(true)))
	b.eventually("the nodes", func(st Status) bool { return st.Families[wire.Nodes].Synced })
	later := time.Now().Add(100 * time.Millisecond)
	b.eventually("a proof after the deadlines", func(st Status) bool {
		b.mem.Set("cilium/elsewhere", "moves the revision")
		return st.State == Ready && st.Families[wire.Nodes].Freshness.AsOf.After(later)
	})
	if st := b.cluster.Status(); strings.Contains(st.LastError, string(wire.ServiceExports)) {
		t.Errorf("%d failures: %s", st.Failures, st.LastError)
	}
}

// TestOptionalResourcesMayBeForbidden: the rights of our user may not include the resource.
func TestOptionalResourcesMayBeForbidden(t *testing.T) {
	t.Parallel()
	b := exportsBench(t)
	b.configure(withExports(true))
	forbidden := func(_ context.Context, _, key string) error {
		if strings.HasPrefix(key, wire.ServiceExports.Prefix(testCluster, false)) {
			return kvstore.ErrPermissionDenied
		}
		return nil
	}
	b.mem.SetFault(forbidden)
	b.run()
	b.inState(Ready)
	b.eventually("the refusal", func(Status) bool { return errors.Is(b.cluster.families[1].Status().Err, kvstore.ErrPermissionDenied) })
	if s := b.stays("forbidden").Families[wire.ServiceExports]; !strings.Contains(s.Why, kvstore.ErrPermissionDenied.Error()) {
		t.Errorf("why not: %q", s.Why)
	}
	b.mem.SetFault(nil)
	b.holds(map[string]string{theNode: "x of 2", theExport: "x of 2"})
	b.eventually("the exports to be followed", func(st Status) bool { return !st.Families[wire.ServiceExports].Late })
	if s := b.cluster.Status().Families[wire.ServiceExports]; s.Why != "" {
		t.Errorf("why not, though they are followed: %q", s.Why)
	}
	b.mem.SetFault(forbidden)
	b.mem.Break(nil) // ends all streams
	b.eventually("the refusal again", func(Status) bool { return errors.Is(b.cluster.families[1].Status().Err, kvstore.ErrPermissionDenied) })
	mark := time.Now()
	b.eventually("all but the exports to be well", func(st Status) bool {
		return st.State == Ready && st.Families[wire.ServiceExports].Late && st.Families[wire.Nodes].Freshness.AsOf.After(mark)
	})
	b.holds(map[string]string{theNode: "x of 2", theExport: "x of 2"})
}

// TestWhatIsNotAnnouncedIsNotAskedFor: no request is made for a resource that is not announced.
func TestWhatIsNotAnnouncedIsNotAskedFor(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]wire.ClusterConfig{"says nothing of exports": plain(2), "says that it has none": withExports(false)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := exportsBench(t)
			var asked atomic.Int32
			b.mem.SetFault(func(_ context.Context, _, key string) error {
				if strings.HasPrefix(key, wire.ServiceExports.Prefix(testCluster, false)) {
					asked.Add(1)
				}
				return nil
			})
			b.configure(cfg)
			b.run()
			b.inState(Ready)
			st := b.stays("without exports")
			if s := st.Families[wire.ServiceExports]; s.Exported || !s.Synced || s.Late || s.Count != 0 || s.Freshness.State != FreshnessSynced {
				t.Errorf("exports that are not announced: %+v", s)
			}
			b.holds(map[string]string{theNode: "x of 2"})
			if n := asked.Load(); n > 0 {
				t.Errorf("asked for them %d times", n)
			}
			// The announcement is followed during the session, in both directions.
			b.configure(withExports(true))
			b.holds(map[string]string{theNode: "x of 2", theExport: "x of 2"})
			if asked.Load() == 0 {
				t.Error("nobody has noticed that they were asked for: the test shows nothing")
			}
			b.configure(cfg)
			b.holds(map[string]string{theNode: "x of 2"})
			b.inState(Ready)
		})
	}
}

// TestOurOwnExports: the own cluster's exports are read without an announcement.
func TestOurOwnExports(t *testing.T) {
	t.Parallel()
	b := exportsBench(t, func(p *Params) {
		p.Origin = OriginLocal
		p.Local = wire.ClusterInfo{Name: testCluster, ID: 9, MaxConnectedClusters: 255}
	})
	b.run()
	b.inState(Ready)
	b.holds(map[string]string{theNode: "x of 9", theExport: "x of 9"})
}

// TestOptionalResourcesAreWithdrawnWithTheCluster: they are withdrawn like all others.
func TestOptionalResourcesAreWithdrawnWithTheCluster(t *testing.T) {
	t.Parallel()
	b := exportsBench(t)
	b.configure(withExports(true))
	b.run()
	b.holds(map[string]string{theNode: "x of 2", theExport: "x of 2"})
	b.stop()
	b.holds(map[string]string{theNode: "x of 2", theExport: "x of 2"})
	if err := b.cluster.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.holds(map[string]string{})
}
