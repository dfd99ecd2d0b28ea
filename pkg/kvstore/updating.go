package kvstore

import (
	"context"
	"errors"
	"slices"
)

// Update implements [Writer].
func (w *EngineWriter) Update(ctx context.Context, writes []Write, opts ...Option) (res Result, err error) {
	r := requested(opts)
	if err := checkUpdate(writes, r); err != nil {
		return Result{}, err
	}
	var same []unchanged
	if !r.leased {
		res, same, err = w.update(ctx, writes, nil, r)
		notifyUnchanged(writes, same)
		return res, err
	}
	for range leaseAttempts {
		var leases []int64
		if leases, err = w.attachAll(ctx, writes); err != nil {
			return Result{}, err
		}
		res, same, err = w.update(ctx, writes, leases, r)
		w.recordAll(writes, leases, same, outcomeOf(res.Met, err), res.At.Revision)
		if !errors.Is(err, ErrLeaseNotFound) {
			notifyUnchanged(writes, same)
			return res, err
		}
		w.endGone(ctx, leases)
	}
	return Result{}, err
}

// update makes one try, and returns what it did not change. It detaches the
// keys that are not tied to a lease afterwards.
func (w *EngineWriter) update(ctx context.Context, writes []Write, leases []int64, r request) (Result, []unchanged, error) {
	t, err := compileUpdate(writes, leases, r)
	if err != nil {
		return Result{}, nil, err
	}
	answer, at, err := w.engine.Transact(ctx, t)
	if err != nil {
		return Result{}, nil, err
	}
	res := result(answer, at)
	if !answer.Succeeded {
		return res, nil, nil
	}
	w.leases.with(func(b *leaseBook) {
		for _, one := range writes {
			if leases == nil || !one.takesLease() {
				b.detach(one.Key, at.Revision)
			}
		}
	})
	return res, unchangedBy(writes, answer), nil
}

func notifyUnchanged(writes []Write, same []unchanged) {
	for i, one := range same {
		switch w := writes[i]; {
		case one.kept != nil:
			w.Kept(*one.kept)
		case one.absent && w.Absent != nil:
			w.Absent()
		}
	}
}

// attachAll chooses a lease for each write that takes a lease, 0 for the others.
func (w *EngineWriter) attachAll(ctx context.Context, writes []Write) ([]int64, error) {
	leases := make([]int64, len(writes))
	for i, one := range writes {
		if !one.takesLease() {
			continue
		}
		lease, err := w.attach(ctx, w.leases, "update", one.Key)
		if err != nil {
			w.recordAll(writes[:i], leases, nil, untied, 0)
			return nil, err
		}
		leases[i] = lease
	}
	return leases, nil
}

// recordAll records the outcome for each key with a chosen lease.
func (w *EngineWriter) recordAll(writes []Write, leases []int64, same []unchanged, o outcome, rev int64) {
	w.leases.with(func(b *leaseBook) {
		for i, one := range writes {
			switch {
			case !one.takesLease():
			case same != nil && same[i].kept != nil:
				b.record(one.Key, leases[i], untied, rev)
				b.detach(one.Key, rev)
			default:
				b.record(one.Key, leases[i], o, rev)
			}
		}
	})
}

// endGone ends the leases that the server no longer knows, after a write failed because of one of
// them. If there are several leases, it asks the server which ones; without an answer the next try asks again.
func (w *EngineWriter) endGone(ctx context.Context, leases []int64) {
	ids := slices.Compact(slices.Sorted(slices.Values(leases)))
	ids = slices.DeleteFunc(ids, func(id int64) bool { return id == 0 })
	if len(ids) > 1 {
		alive, _ := w.engine.KeepAlive(ctx, ids)
		ids = slices.DeleteFunc(ids, func(id int64) bool {
			is, answered := alive[id]
			return is || !answered
		})
	}
	w.leases.end(ids, leaseUnknown)
}
