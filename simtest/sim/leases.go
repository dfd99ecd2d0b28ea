package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// The maximum number of lease requests in flight, and the maximum time of one.
const (
	grantsInFlight = 16
	grantTimeout   = time.Minute
)

// grant requests the leases of all slots that have none. The caller holds mu.
func (r *Running) grant(ctx context.Context, c *clientv3.Client) error {
	first := len(r.leases)
	missing := make([]clientv3.LeaseID, r.model.Slots.Count()-first)
	ctx, cancel := context.WithTimeout(ctx, grantTimeout)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(grantsInFlight)
	for i := range missing {
		g.Go(func() error {
			resp, err := c.Grant(ctx, r.etcd.leaseSeconds())
			if err != nil {
				return fmt.Errorf("grant a lease: %w", err)
			}
			missing[i] = resp.ID
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r.leases = append(r.leases, missing...)
	return nil
}

func (e *etcd) leaseSeconds() int64 { return int64(e.ttl / time.Second) }

// keepLeases renews every lease three times in its life. One request after the
// other is cheap: a thousand leases take a fraction of a second every 5 minutes.
func (e *etcd) keepLeases(ctx context.Context) error {
	return every(ctx, e.ttl/3, func() error {
		for _, r := range e.clusters {
			if err := r.renew(ctx); err != nil {
				return fmt.Errorf("leases of cluster %s: %w", r.c.Name, err)
			}
		}
		return nil
	})
}

// every calls f repeatedly until ctx ends, which is no error, or f fails.
func every(ctx context.Context, interval time.Duration, f func() error) error {
	for waiting.Sleep(ctx, interval) == nil {
		if err := f(); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (r *Running) renew(ctx context.Context) error {
	for slot := 0; ; slot++ {
		more, err := r.renewLease(ctx, slot)
		if !more || err != nil {
			return err
		}
	}
}

// renewLease renews the lease of a slot and reports whether there may be more slots.
func (r *Running) renewLease(ctx context.Context, slot int) (more bool, err error) {
	e := r.etcd
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil || slot >= len(r.leases) {
		return false, nil
	}
	err = persist(ctx, func(ctx context.Context) error {
		_, err := e.client.KeepAliveOnce(ctx, r.leases[slot])
		return err
	})
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		err = r.replaceLease(ctx, slot)
	}
	if err != nil {
		return false, fmt.Errorf("renew lease %x: %w", int64(r.leases[slot]), err)
	}
	return true, nil
}

// replaceLease grants a lost lease again and writes its keys again, as Cilium
// does. The caller holds mu.
func (r *Running) replaceLease(ctx context.Context, slot int) error {
	err := persist(ctx, func(ctx context.Context) error {
		resp, err := r.etcd.client.Grant(ctx, r.etcd.leaseSeconds())
		if err == nil {
			r.leases[slot] = resp.ID
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("grant a lease: %w", err)
	}
	var lost []contents.Op
	for o := range r.all() {
		if int(o.Slot) == slot {
			lost = append(lost, o)
		}
	}
	return r.commitOps(ctx, r.etcd.client, lost)
}

func (e *etcd) keepHeartbeat(ctx context.Context) error {
	return every(ctx, e.heartbeatEvery, func() error { return e.heartbeat(ctx) })
}

// heartbeat writes the time. It does nothing while the server is killed, heartbeats are off, or all contents are lost.
func (e *etcd) heartbeat(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil || !e.heartbeats || e.lost() {
		return nil
	}
	if err := persist(ctx, func(ctx context.Context) error { return e.writeHeartbeat(ctx, e.client) }); err != nil {
		return fmt.Errorf("heartbeat of cluster %s: %w", e.name, err)
	}
	return nil
}

// lost reports whether the server lost the contents of all clusters.
func (e *etcd) lost() bool {
	return !slices.ContainsFunc(e.clusters, func(r *Running) bool { return !r.empty })
}

// writeHeartbeat writes the time as the heartbeat, on a lease of its own.
func (e *etcd) writeHeartbeat(ctx context.Context, kv *clientv3.Client) error {
	if e.heartbeatLease != 0 {
		if _, err := kv.KeepAliveOnce(ctx, e.heartbeatLease); errors.Is(err, rpctypes.ErrLeaseNotFound) {
			e.heartbeatLease = 0
		} else if err != nil {
			return fmt.Errorf("renew the lease of the heartbeat: %w", err)
		}
	}
	if e.heartbeatLease == 0 {
		resp, err := kv.Grant(ctx, e.leaseSeconds())
		if err != nil {
			return fmt.Errorf("grant a lease: %w", err)
		}
		e.heartbeatLease = resp.ID
	}
	for _, r := range e.clusters {
		r.forget(wire.HeartbeatKey)
	}
	put := clientv3.OpPut(wire.HeartbeatKey, string(wire.EncodeTimestamp(time.Now())), clientv3.WithLease(e.heartbeatLease))
	return commit(ctx, kv, []clientv3.Op{put})
}
