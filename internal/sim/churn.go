package sim

import (
	"context"
	"fmt"
	"time"
)

// Churn does not write more often than this; faster rates write several
// changes at once.
const churnInterval = 10 * time.Millisecond

// churnOps is how many operations are committed at once at the most.
const churnOps = 1000

// Churn makes changes at once until at least n keys were written or deleted,
// and returns how many were: fewer only when the cluster is too small for any
// change. Once it returned, Contents shows the result and etcd has it.
func (r *Running) Churn(ctx context.Context, n int) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := 0
	for done < n && ctx.Err() == nil {
		var ops []op
		for done+len(ops) < n && len(ops) < churnOps {
			more := r.model.step()
			if len(more) == 0 {
				break
			}
			ops = append(ops, more...)
		}
		if len(ops) == 0 {
			break
		}
		written, err := r.apply(ctx, ops)
		done += written
		r.changes += uint64(written)
		if err != nil {
			return done, fmt.Errorf("change cluster %s: %w", r.c.Name, err)
		}
	}
	return done, ctx.Err()
}

// apply commits what steps of the model returned. The end of ctx does not
// interrupt it, so that the model stays equal to etcd.
func (r *Running) apply(ctx context.Context, ops []op) (int, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	if err := r.grant(ctx, r.client); err != nil {
		return 0, err
	}
	ops = latest(ops)
	return len(ops), r.commitOps(ctx, ops)
}

// latest keeps the last operation on each key, as a transaction may name a key
// only once.
func latest(ops []op) []op {
	last := make(map[string]int, len(ops))
	for i, o := range ops {
		last[o.key] = i
	}
	out := ops[:0]
	for i, o := range ops {
		if last[o.key] == i {
			out = append(out, o)
		}
	}
	return out
}

// commitOps writes any number of operations in transactions of a good size.
func (r *Running) commitOps(ctx context.Context, ops []op) error {
	for len(ops) > 0 {
		n, size := 0, 0
		for n < len(ops) && n < churnOps && size < txnBytes {
			size += len(ops[n].key) + len(ops[n].value) + txnOverhead
			n++
		}
		if err := r.write(ctx, r.client, ops[:n]); err != nil {
			return err
		}
		ops = ops[n:]
	}
	return nil
}

// churn makes changes at the rate of the options.
func (r *Running) churn(ctx context.Context) error {
	interval := max(churnInterval, time.Duration(float64(time.Second)/r.o.Churn))
	tick := time.NewTicker(interval)
	defer tick.Stop()
	due, last := 0.0, time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			due += r.o.Churn * now.Sub(last).Seconds()
			last = now
		}
		due = min(due, max(r.o.Churn, 1)) // what a second brings; more is not caught up with
		if due < 1 {
			continue
		}
		n, err := r.Churn(ctx, int(due))
		if err != nil && ctx.Err() == nil {
			return err
		}
		due -= float64(n)
	}
}
