package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// writerCell writes to the own cluster's kvstore, where it is needed.
func writerCell() cell.Cell {
	return cell.Module(
		"kvstore", "The writer to the kvstore of the own cluster",
		cell.Provide(newWriter),
		cell.Invoke(func(c Config, jobs job.Group, w *kvstore.Durable) {
			if w != nil {
				runs(jobs, "session", w.Run)
				runs(jobs, "connect", func(ctx context.Context) error { return awaitKVStore(ctx, w, c.KVStore.ConnectivityTimeout) })
			}
		}),
	)
}

// awaitKVStore fails when there is no connection at the start for too long. One
// that is lost later is waited for.
func awaitKVStore(ctx context.Context, w *kvstore.Durable, timeout time.Duration) error {
	bound, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := w.WaitConnected(bound); err != nil && ctx.Err() == nil {
		return fmt.Errorf("no connection to the own cluster's kvstore within %s (--kvstore-connectivity-timeout): %w", timeout, err)
	}
	return nil
}

// newWriter returns nil where nothing is written: there is no kvstore, or nothing
// to say.
func newWriter(m mode, c Config, size clusterSize, of *etcd.Metrics, log *slog.Logger) (*kvstore.Durable, error) {
	opts, err := c.kvstoreOptions()
	if err != nil {
		return nil, fmt.Errorf("--kvstore-opt: %w", err)
	}
	if !c.writes(m) {
		return nil, nil
	}
	if m == modeMirror {
		mirrorLimits(&opts, c.KVStoreOpt)
	}
	opts.Metrics, opts.ClusterSize, opts.Log = of, size, log
	own := opts
	return etcd.NewDurable(own.Config, opts), nil
}

// writes tells whether a mode writes to the own kvstore: an agent does when it
// knows what to say about its node, and for which cluster.
func (c Config) writes(m mode) bool {
	opts, err := c.kvstoreOptions()
	if err != nil || !opts.HasLocal() {
		return false
	}
	return m != modeRun || c.Local.given() && c.ClusterID != 0
}

// needsKVStore says what a mode that only writes is missing.
func (c Config) needsKVStore(m mode) error {
	if m == modeRun {
		return nil
	}
	if err := c.local().ValidateStrict(); err != nil {
		return usagef("%s needs the name and the ID of the own cluster (--cluster-name, --cluster-id): %s", m, oneLine(err))
	}
	if !c.writes(m) {
		return usagef("%s needs the own cluster's kvstore: give its client file with --kvstore-opt etcd.config=FILE, or etcd.address=URL", m)
	}
	return nil
}
