package kvstore

import (
	"context"
	"maps"
	"slices"
)

// Update implements [Writer].
func (w *writing) Update(ctx context.Context, writes []Write, opts ...Option) (res Result, err error) {
	r := requested(opts)
	if err := checkUpdate(writes, r); err != nil {
		return Result{}, err
	}
	if !r.leased {
		return w.update(ctx, writes, nil, r)
	}
	for range leaseAttempts {
		var leases []int64
		if leases, err = w.attachAll(ctx, writes); err != nil {
			return Result{}, err
		}
		res, err = w.update(ctx, writes, leases, r)
		w.settleAll(writes, leases, outcomeOf(res.Met, err), res.At.Revision)
		if !isLeaseGone(err) {
			return res, err
		}
		w.endGone(ctx, leases)
	}
	return Result{}, err
}

// update makes one try. What is not tied to a lease afterwards is detached.
func (w *writing) update(ctx context.Context, writes []Write, leases []int64, r request) (Result, error) {
	t, err := compileUpdate(writes, leases, r)
	if err != nil {
		return Result{}, err
	}
	res, met, err := w.write(ctx, t)
	if !met {
		return res, err
	}
	for _, one := range writes {
		if leases == nil || !one.takesLease() {
			w.leases.detach(one.Key, res.At.Revision)
		}
	}
	return res, err
}

// attachAll chooses a lease for each write that takes one, 0 for the others.
func (w *writing) attachAll(ctx context.Context, writes []Write) ([]int64, error) {
	leases := make([]int64, len(writes))
	for i, one := range writes {
		if !one.takesLease() {
			continue
		}
		lease, err := w.attach(ctx, w.leases, "update", one.Key)
		if err != nil {
			w.settleAll(writes[:i], leases, untied, 0)
			return nil, err
		}
		leases[i] = lease
	}
	return leases, nil
}

func (w *writing) settleAll(writes []Write, leases []int64, o outcome, rev int64) {
	for i, one := range writes {
		if one.takesLease() {
			w.leases.settle(one.Key, leases[i], o, rev)
		}
	}
}

// endGone ends those of the leases that the server does not know any more, after
// it said that of one of them. It did not say of which, so with several it is
// asked; without an answer the next try asks again.
func (w *writing) endGone(ctx context.Context, leases []int64) {
	distinct := make(map[int64]bool)
	for _, id := range leases {
		if id != 0 {
			distinct[id] = true
		}
	}
	ids := slices.Sorted(maps.Keys(distinct))
	if len(ids) > 1 {
		alive, _ := w.server.keepAlive(ctx, ids)
		ids = slices.DeleteFunc(ids, func(id int64) bool {
			is, answered := alive[id]
			return is || !answered
		})
	}
	w.leases.end(ids, leaseUnknown)
}
