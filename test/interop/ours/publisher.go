package ours

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
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
// and `mesh-agent run` do with what is described to them: here objects are given to
// it. Put, Delete and Synced do not wait.
type Publisher struct {
	cluster  string
	writer   *kvstore.Durable
	syncs    map[wire.Resource]*syncstore.Sync
	config   *syncstore.Sync
	canaries *syncstore.Canaries
	cancel   context.CancelFunc
	group    *errgroup.Group
}

// Publish publishes a cluster to the etcd of a client file until Close.
func Publish(file string, config model.ClusterConfig, log *slog.Logger) *Publisher {
	options := connection(log)
	writer := etcd.NewDurable(func() (*clientfile.Config, error) { return clientfile.Load(file) }, options)
	outbox := syncstore.NewOutbox(writer, nil, nil, log)
	keep := func(prefix string, shared bool) *syncstore.Sync {
		return syncstore.New(syncstore.Params{Prefix: prefix, Shared: shared, Outbox: outbox, Cluster: config.Cluster, Log: log})
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Publisher{
		cluster: config.Cluster, writer: writer, syncs: map[wire.Resource]*syncstore.Sync{}, cancel: cancel,
		config:   keep(wire.ClusterConfigPrefix+"/", true),
		canaries: syncstore.NewCanaries(syncstore.CanariesParams{Dir: wire.SyncedDir(config.Cluster), Writer: writer, Log: log}),
	}
	p.group, ctx = errgroup.WithContext(ctx)
	p.group.Go(func() error { return writer.Run(ctx) })
	p.group.Go(func() error { return outbox.Run(ctx) })
	p.config.Put(config.Cluster, ClusterConfig(config).Encode())
	p.config.Complete()
	p.group.Go(func() error { return p.config.Run(ctx) })
	for _, r := range wire.Resources() {
		s := keep(r.Prefix(config.Cluster, false), false)
		p.syncs[r] = s
		p.canaries.Add(r.StorePrefix(false), s)
		p.group.Go(func() error { return s.Run(ctx) })
	}
	p.group.Go(func() error { return p.canaries.Run(ctx) })
	p.group.Go(func() error { return p.heartbeats(ctx, log) })
	return p
}

// connection are the options of connections without limits.
func connection(log *slog.Logger) etcd.Options {
	o := etcd.DefaultOptions()
	o.QPS, o.BootstrapQPS, o.Log = 100_000, 100_000, log
	return o
}

func (p *Publisher) heartbeats(ctx context.Context, log *slog.Logger) error {
	for {
		_, err := p.writer.Put(ctx, wire.HeartbeatKey, []byte(time.Now().Format(time.RFC3339)), kvstore.Leased())
		pause := heartbeatEvery
		if err != nil && ctx.Err() == nil {
			log.Info("The heartbeat could not be written, trying again", "error", err)
			pause = time.Second
		}
		if err := waiting.Sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// Put creates or updates objects.
func (p *Publisher) Put(o model.Objects) error {
	return p.each(o, func(s *syncstore.Sync, name string, value []byte) { s.Put(name, value) })
}

// Delete deletes objects, of which only the names matter.
func (p *Publisher) Delete(o model.Objects) error {
	return p.each(o, func(s *syncstore.Sync, name string, _ []byte) { s.Delete(name) })
}

func (p *Publisher) each(o model.Objects, do func(*syncstore.Sync, string, []byte)) error {
	for _, e := range Encode(o) {
		s, name := p.syncOf(e.Key)
		if s == nil {
			return fmt.Errorf("nothing is published with the key %s", e.Key)
		}
		do(s, name, e.Value)
	}
	return nil
}

func (p *Publisher) syncOf(key string) (*syncstore.Sync, string) {
	for r, s := range p.syncs {
		if name, ok := strings.CutPrefix(key, r.Prefix(p.cluster, false)); ok {
			return s, name
		}
	}
	return nil, ""
}

// Synced says that what was put is all that there is.
func (p *Publisher) Synced() {
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

// Close ends publishing; what is published stays until its leases expire.
func (p *Publisher) Close() error {
	p.cancel()
	err := p.group.Wait()
	p.writer.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
