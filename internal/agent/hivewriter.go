package agent

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

func writerCell() cell.Cell {
	return cell.Module(
		"kvstore", "The writer to the kvstore of the own cluster",
		cell.Provide(newWriter),
		cell.Invoke(func(c config.Config, jobs job.Group, w *kvstore.Durable) {
			if w != nil {
				runs(jobs, "session", w.Run)
				runs(jobs, "connect", func(ctx context.Context) error { return awaitKVStore(ctx, w, c.KVStore.ConnectivityTimeout) })
			}
		}),
	)
}

// awaitKVStore fails when the first connection takes longer than the timeout. A connection that is lost later causes
// no error here: the writer reconnects.
func awaitKVStore(ctx context.Context, w *kvstore.Durable, timeout time.Duration) error {
	bound, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := w.WaitConnected(bound); err != nil && ctx.Err() == nil {
		return fmt.Errorf("no connection to the own cluster's kvstore within %s (--kvstore-connectivity-timeout): %w", timeout, err)
	}
	return nil
}

// newWriter returns nil when nothing is written: there is no kvstore, or no data to write.
func newWriter(m config.Mode, c config.Config, size clusterSize, of *etcd.Metrics, log *slog.Logger) *kvstore.Durable {
	if !writes(c, m) {
		return nil
	}
	opts := c.WriterOptions(m)
	opts.Metrics, opts.ClusterSize, opts.Log = of, size, log
	return etcd.NewDurable(opts.Config, opts)
}

// writes reports whether a mode writes to the own kvstore. An agent writes when it has a description of its node and
// the ID of its cluster.
func writes(c config.Config, m config.Mode) bool {
	return c.KVStoreOpt.HasLocal() && (m != config.ModeRun || c.Local.Given() && c.ClusterID != 0)
}

// NeedsKVStore returns an error for a setting that is missing in a mode that only writes.
func NeedsKVStore(c config.Config, m config.Mode) error {
	if m == config.ModeRun {
		return nil
	}
	if err := c.Own.ValidateStrict(); err != nil {
		return exit.Usagef("%s needs the name and the ID of the own cluster (--cluster-name, --cluster-id): %s", m, printer.OneLine(err))
	}
	if !writes(c, m) {
		return exit.Usagef("%s needs the own cluster's kvstore: give its client file with --kvstore-opt etcd.config=FILE, or etcd.address=URL", m)
	}
	return nil
}
