package ours

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// heartbeatEvery is how often a cluster says that it is alive.
const heartbeatEvery = 30 * time.Second

// Publisher publishes a cluster with this project's stores, as `mesh-agent operate`
// and `mesh-agent run` do with their descriptions; here the test gives it the
// objects. Only its method Wait waits for the etcd.
type Publisher struct {
	cluster  string
	writer   *kvstore.Durable
	syncs    map[wire.Resource]*syncstore.Sync
	config   *syncstore.Sync
	canaries *syncstore.Canaries
}

// Publish publishes a cluster to the etcd of a client file until the end of the test;
// the published keys stay until their leases expire.
func Publish(t testing.TB, file string, config model.ClusterConfig) *Publisher {
	log := slog.New(slog.DiscardHandler)
	writer := connect(file)
	outbox := syncstore.NewOutbox(writer, nil, nil, log)
	keep := func(prefix string, shared bool) *syncstore.Sync {
		return syncstore.New(syncstore.Params{Prefix: prefix, Shared: shared, Outbox: outbox, Cluster: config.Cluster, Log: log})
	}
	p := &Publisher{
		cluster: config.Cluster, writer: writer, syncs: map[wire.Resource]*syncstore.Sync{},
		config:   keep(wire.ClusterConfigPrefix+"/", true),
		canaries: syncstore.NewCanaries(syncstore.CanariesParams{Dir: wire.SyncedDir(config.Cluster), Writer: writer, Log: log}),
	}
	run := untilTheEnd(t, writer)
	run(writer.Run)
	run(outbox.Run)
	p.config.Put(config.Cluster, clusterConfig(config).Encode())
	p.config.Complete()
	run(p.config.Run)
	for _, r := range wire.Resources() {
		s := keep(r.Prefix(config.Cluster, false), false)
		p.syncs[r] = s
		p.canaries.Add(r.StorePrefix(false), s)
		run(s.Run)
	}
	run(p.canaries.Run)
	run(func(ctx context.Context) error { return heartbeats(ctx, writer) })
	return p
}

// Heartbeats writes the heartbeat to the etcd of a client file until the end of the test, as
// what operates a cluster does beside its mirror, which writes none.
func Heartbeats(t testing.TB, file string) {
	writer := connect(file)
	run := untilTheEnd(t, writer)
	run(writer.Run)
	run(func(ctx context.Context) error { return heartbeats(ctx, writer) })
}

// connect connects to the etcd of a client file, without limits.
func connect(file string) *kvstore.Durable {
	o := etcd.DefaultOptions()
	o.QPS, o.BootstrapQPS, o.Log = 100_000, 100_000, slog.New(slog.DiscardHandler)
	return etcd.NewDurable(func() (*clientfile.Config, error) { return clientfile.Load(file) }, o)
}

// untilTheEnd returns what runs something until the end of the test, when the client is
// closed after all that runs.
func untilTheEnd(t testing.TB, client *kvstore.Durable) (run func(func(context.Context) error)) {
	ctx, cancel := context.WithCancel(context.Background())
	group, ctx := errgroup.WithContext(ctx)
	t.Cleanup(func() {
		cancel()
		err := group.Wait()
		client.Close()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return func(task func(context.Context) error) {
		group.Go(func() error { return task(ctx) })
	}
}

func heartbeats(ctx context.Context, writer *kvstore.Durable) error {
	for {
		_, err := writer.Put(ctx, wire.HeartbeatKey, []byte(time.Now().Format(time.RFC3339)), kvstore.Leased())
		pause := heartbeatEvery
		if err != nil {
			pause = time.Second
		}
		if err := waiting.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Put creates or updates objects.
func (p *Publisher) Put(t testing.TB, o model.Objects) {
	t.Helper()
	p.each(t, o, func(s *syncstore.Sync, name string, value []byte) { s.Put(name, value) })
}

// Delete deletes objects, of which only the names matter.
func (p *Publisher) Delete(t testing.TB, o model.Objects) {
	t.Helper()
	p.each(t, o, func(s *syncstore.Sync, name string, _ []byte) { s.Delete(name) })
}

func (p *Publisher) each(t testing.TB, o model.Objects, do func(*syncstore.Sync, string, []byte)) {
	t.Helper()
	for _, e := range Encode(o) {
		s, name := p.syncOf(e.Key)
		if s == nil {
			t.Fatalf("nothing is published with the key %s", e.Key)
		}
		do(s, name, e.Value)
	}
}

func (p *Publisher) syncOf(key string) (*syncstore.Sync, string) {
	for r, s := range p.syncs {
		if name, ok := strings.CutPrefix(key, r.Prefix(p.cluster, false)); ok {
			return s, name
		}
	}
	return nil, ""
}

// Synced marks all kinds as complete: all objects were put.
func (p *Publisher) Synced(testing.TB, ...model.Kind) {
	for _, s := range p.syncs {
		s.Complete()
	}
}

// Wait waits until everything is written.
func (p *Publisher) Wait(ctx context.Context) error {
	for _, s := range p.syncs {
		if err := s.WaitClean(ctx); err != nil {
			return err
		}
	}
	return p.config.WaitClean(ctx)
}
