package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// Churn does not write more often than this; faster rates write several changes at once.
const churnInterval = 10 * time.Millisecond

// churnOps is the maximum number of operations that are committed at once.
const churnOps = 1000

// Churn makes changes at once until at least n keys were written or deleted, and returns the number of keys: fewer only
// when the cluster is too small for any change. After it has returned, Contents and etcd have the result.
func (r *Running) Churn(ctx context.Context, n int) (int, error) {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	if err := r.up(); err != nil {
		return 0, err
	}
	if r.empty {
		return 0, nil
	}
	done := 0
	for done < n && ctx.Err() == nil {
		var ops []contents.Op
		for done+len(ops) < n && len(ops) < churnOps {
			more := r.model.Step()
			if len(more) == 0 {
				break
			}
			for _, o := range more {
				o = r.place(o)
				r.forget(o.Key) // the last write counts
				ops = append(ops, o)
			}
		}
		if len(ops) == 0 {
			break
		}
		written, err := r.apply(ctx, ops)
		done += written
		if err != nil {
			return done, fmt.Errorf("change cluster %s: %w", r.c.Name, err)
		}
	}
	return done, ctx.Err()
}

// apply commits the results of steps of the model. The end of ctx does not interrupt it, so that the model stays equal
// to etcd.
func (r *Running) apply(ctx context.Context, ops []contents.Op) (int, error) {
	ctx = context.WithoutCancel(ctx)
	if err := r.grant(ctx, r.etcd.client); err != nil {
		return 0, err
	}
	ops = latest(ops)
	return len(ops), r.commitOps(ctx, r.etcd.client, ops)
}

// latest keeps the last operation on each key, as a transaction may name a key only once.
func latest(ops []contents.Op) []contents.Op {
	last := make(map[string]int, len(ops))
	for i, o := range ops {
		last[o.Key] = i
	}
	out := ops[:0]
	for i, o := range ops {
		if last[o.Key] == i {
			out = append(out, o)
		}
	}
	return out
}

// churn makes changes at the present rate.
func (r *Running) churn(ctx context.Context) error {
	due, last := 0.0, time.Now()
	for {
		rate := r.churnRate()
		var tick <-chan time.Time
		if rate > 0 {
			tick = time.After(max(churnInterval, time.Duration(float64(time.Second)/rate)))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.rateChanged:
			due, last = 0, time.Now()
			continue
		case now := <-tick:
			due += rate * now.Sub(last).Seconds()
			last = now
		}
		due = min(due, max(rate, 1)) // the changes of a second; older ones are dropped
		if due < 1 {
			continue
		}
		n, err := r.Churn(ctx, int(due))
		if _, killed := errors.AsType[*RefusedError](err); err != nil && !killed && ctx.Err() == nil {
			return err
		}
		due -= float64(n)
	}
}

func (r *Running) churnRate() float64 {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	return r.rate
}
