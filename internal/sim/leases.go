package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// grantsInFlight is how many leases are asked for at the same time.
const grantsInFlight = 16

// grant asks for the leases of all slots that have none. The caller holds mu.
func (r *Running) grant(ctx context.Context, c *clientv3.Client) error {
	first := len(r.leases)
	missing := make([]clientv3.LeaseID, r.model.slots.count()-first)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(grantsInFlight)
	for i := range missing {
		g.Go(func() error {
			resp, err := c.Grant(ctx, int64(r.ttl/time.Second))
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

// keepLeases renews every lease three times in its life. One request after the
// other is cheap: a thousand leases take a fraction of a second every 5 minutes.
func (r *Running) keepLeases(ctx context.Context) error {
	tick := time.NewTicker(r.ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := r.renew(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("leases of cluster %s: %w", r.c.Name, err)
		}
	}
}

func (r *Running) renew(ctx context.Context) error {
	r.mu.Lock()
	leases := append([]clientv3.LeaseID(nil), r.leases...)
	r.mu.Unlock()
	for slot, id := range leases {
		_, err := r.client.KeepAliveOnce(ctx, id)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			err = r.replaceLease(ctx, slot)
		}
		if err != nil {
			return fmt.Errorf("renew lease %x: %w", int64(id), err)
		}
	}
	return nil
}

// replaceLease grants a lost lease anew and writes its keys again, as Cilium
// does.
func (r *Running) replaceLease(ctx context.Context, slot int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	resp, err := r.client.Grant(ctx, int64(r.ttl/time.Second))
	if err != nil {
		return fmt.Errorf("grant a lease: %w", err)
	}
	r.leases[slot] = resp.ID
	var lost []op
	collect := func(o op) error {
		if int(o.slot) == slot {
			lost = append(lost, o)
		}
		return nil
	}
	for _, o := range r.fixed {
		_ = collect(o)
	}
	_ = r.model.each(collect)
	return r.commitOps(ctx, lost)
}

// beat repeats the heartbeat.
func (r *Running) beat(ctx context.Context) error {
	tick := time.NewTicker(r.heartbeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if err := r.heartbeat(ctx, now); err != nil && ctx.Err() == nil {
				return fmt.Errorf("heartbeat of cluster %s: %w", r.c.Name, err)
			}
		}
	}
}

func (r *Running) heartbeat(ctx context.Context, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.fixed {
		if r.fixed[i].key == wire.HeartbeatKey {
			r.fixed[i].value = wire.EncodeTimestamp(now)
			return r.write(ctx, r.client, r.fixed[i:i+1])
		}
	}
	return nil
}
