package clustermesh

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// backlog is an etcd whose addresses change while no watch is open, and a source that has their earlier values.
type backlog struct {
	client    *etcd.Session
	prefix    string
	addresses int
	ips       *ipcache.Cache
	source    remotecluster.Family
	before    kvstore.Position
	write     func(turn int)
}

// newBacklog fills an etcd with this many addresses and lets the source list them. The server is a process of its own,
// as those of real clusters are.
func newBacklog(tb testing.TB, addresses int) *backlog {
	tb.Helper()
	server := etcdtest.StartProcess(tb)
	cfg, err := clientfile.New(server.Endpoint())
	must(tb, err)
	client, err := etcd.Connect(tb.Context(), cfg, 0, etcd.DefaultOptions())
	must(tb, err)
	tb.Cleanup(client.Close)
	b := &backlog{client: client, prefix: wire.IPs.Prefix("c1", false), addresses: addresses, ips: ipcache.New(ipcache.Rules{})}
	writer := server.Client(tb)
	b.write = func(turn int) {
		tb.Helper()
		ops := make([]clientv3.Op, 0, 100)
		for i := range addresses {
			addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
			pair := wire.IPIdentityPair{
				IP: net.IP(addr.AsSlice()), HostIP: net.IPv4(172, 16, byte(i>>8), byte(i)), Identity: 1<<16 + uint32(turn),
				Namespace: fmt.Sprint("namespace-", i%100), Pod: fmt.Sprintf("deployment-%d-%d", i%5000, i),
			}
			if ops = append(ops, clientv3.OpPut(b.prefix+pair.Name(), string(pair.Encode()))); len(ops) == cap(ops) || i == addresses-1 {
				_, err := writer.Txn(tb.Context()).Then(ops...).Commit()
				must(tb, err)
				ops = ops[:0]
			}
		}
	}
	b.source = b.newSource(tb)
	b.write(0)
	b.drainSource(tb, 0)
	return b
}

// newSource returns a source of addresses like that of a cluster.
func (b *backlog) newSource(tb testing.TB) remotecluster.Family {
	_, view := newView(tb, b.ips)
	for _, source := range view.families(Target{}, store.NewMetrics(), slog.New(slog.DiscardHandler)) {
		if source.Resource() == wire.IPs {
			return source
		}
	}
	panic("no source of addresses")
}

// changed creates a backlog: it gives every address another identity.
func (b *backlog) changed(tb testing.TB, turn int) {
	tb.Helper()
	var err error
	b.before, err = b.client.Head(tb.Context())
	must(tb, err)
	b.write(turn)
}

// drainBare receives the backlog with a watch and discards it.
func (b *backlog) drainBare(tb testing.TB) time.Duration {
	tb.Helper()
	start := time.Now()
	stream, err := b.client.Watch(tb.Context(), b.prefix, b.before)
	must(tb, err)
	defer stream.Close()
	for n := 0; n < b.addresses; {
		batch, err := stream.Recv()
		must(tb, err)
		n += len(batch.Events)
	}
	return time.Since(start)
}

// drainSource runs the source until the last address has the value of this turn.
func (b *backlog) drainSource(tb testing.TB, turn int) time.Duration {
	tb.Helper()
	i := b.addresses - 1
	last := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	start := time.Now()
	ended := make(chan error, 1)
	go func() {
		ended <- b.source.Run(ctx, store.Session{
			Client: b.client, Prefix: b.prefix,
			Expect: wire.Expect{Cluster: "c1", ClusterID: 1, LocalID: 250},
		})
	}()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		if e := b.ips.LookupWinner(last); e != nil && e.Identity() == 1<<16+uint32(turn) {
			break
		}
		select {
		case <-poll.C:
		case err := <-ended:
			tb.Fatalf("the source ended: %v", err)
		}
	}
	took := time.Since(start)
	cancel()
	<-ended
	if st := b.source.Status(); st.Count != b.addresses || st.Rejected != 0 {
		tb.Fatalf("the source has %d addresses and refused %d, want %d: %v", st.Count, st.Rejected, b.addresses, st.Rejections)
	}
	return took
}

// BenchmarkBacklog drains 200,000 changes with a bare watch, which is the floor, and then into the view.
func BenchmarkBacklog(b *testing.B) {
	const changes, turns, bound = 200_000, 3, 0.5
	backlog := newBacklog(b, changes)
	bare, source := time.Hour, time.Hour
	turn := 0
	for b.Loop() {
		for range turns {
			turn++
			backlog.changed(b, turn)
			bare = min(bare, backlog.drainBare(b))
			source = min(source, backlog.drainSource(b, turn))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(changes/bare.Seconds(), "floor-changes/s")
	b.ReportMetric(changes/source.Seconds(), "changes/s")
	share := bare.Seconds() / source.Seconds()
	b.ReportMetric(100*share, "%-of-floor")
	if share < bound {
		b.Errorf("%.0f %% of the floor's rate, at least %.0f %% are wanted", 100*share, 100*bound)
	}
}

// TestABacklogIsDrainedAboutAsFastAsItArrives checks a bound on the rate of the source. The bound is a fifth of the
// rate of a bare watch. The source is faster than that even with the race detector, but not when every event goes
// through a channel or has a transaction of its own: both cost 10 times as much as a bare watch. The best of three
// turns counts, since other load on the machine affects both measurements.
func TestABacklogIsDrainedAboutAsFastAsItArrives(t *testing.T) {
	waittest.Long(t)
	const changes, turns, bound = 10_000, 3, 0.2
	b := newBacklog(t, changes)
	best := 0.0
	for turn := range turns {
		b.changed(t, turn+1)
		bare := b.drainBare(t)
		source := b.drainSource(t, turn+1)
		t.Logf("bare %s, into the view %s", bare, source)
		best = max(best, bare.Seconds()/source.Seconds())
	}
	if best < bound {
		t.Errorf("%.0f %% of a bare watch's rate, at least %.0f %% are wanted", 100*best, 100*bound)
	}
}
