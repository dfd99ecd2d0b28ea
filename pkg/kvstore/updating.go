package kvstore

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// Update implements [Writer].
func (w *EngineWriter) Update(ctx context.Context, writes []Write, opts ...Option) (res Result, err error) {
	r := requested(opts)
	if err := checkUpdate(writes, r); err != nil {
		return Result{}, err
	}
	var kept []*KeyValue // nil where the write was made
	if !r.leased {
		res, kept, err = w.update(ctx, writes, nil, r)
		tellKept(writes, kept)
		return res, err
	}
	for range leaseAttempts {
		var leases []int64
		if leases, err = w.attachAll(ctx, writes); err != nil {
			return Result{}, err
		}
		res, kept, err = w.update(ctx, writes, leases, r)
		w.settleAll(writes, leases, kept, outcomeOf(res.Met, err), res.At.Revision)
		if !errors.Is(err, ErrLeaseNotFound) {
			tellKept(writes, kept)
			return res, err
		}
		w.endGone(ctx, leases)
	}
	return Result{}, err
}

// update makes one try, and returns what was kept. What is not tied to a lease
// afterwards is detached.
func (w *EngineWriter) update(ctx context.Context, writes []Write, leases []int64, r request) (Result, []*KeyValue, error) {
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
	kept := keptBy(writes, answer)
	for _, one := range writes {
		if leases == nil || !one.takesLease() {
			w.leases.detach(one.Key, at.Revision)
		}
	}
	return res, kept, nil
}

// tellKept tells of the keys that were left alone.
func tellKept(writes []Write, kept []*KeyValue) {
	for i, kv := range kept {
		if kv != nil {
			writes[i].Kept(*kv)
		}
	}
}

// attachAll chooses a lease for each write that takes one, 0 for the others.
func (w *EngineWriter) attachAll(ctx context.Context, writes []Write) ([]int64, error) {
	leases := make([]int64, len(writes))
	for i, one := range writes {
		if !one.takesLease() {
			continue
		}
		lease, err := w.attach(ctx, w.leases, "update", one.Key)
		if err != nil {
			w.settleAll(writes[:i], leases, nil, untied, 0)
			return nil, err
		}
		leases[i] = lease
	}
	return leases, nil
}

func (w *EngineWriter) settleAll(writes []Write, leases []int64, kept []*KeyValue, o outcome, rev int64) {
	for i, one := range writes {
		switch {
		case !one.takesLease():
		case kept != nil && kept[i] != nil:
			w.leases.settle(one.Key, leases[i], untied, rev)
			w.leases.detach(one.Key, rev)
		default:
			w.leases.settle(one.Key, leases[i], o, rev)
		}
	}
}

// endGone ends those of the leases that the server does not know any more, after
// it said that of one of them. It did not say of which, so with several it is
// asked; without an answer the next try asks again.
func (w *EngineWriter) endGone(ctx context.Context, leases []int64) {
	distinct := make(map[int64]bool)
	for _, id := range leases {
		if id != 0 {
			distinct[id] = true
		}
	}
	ids := slices.Sorted(maps.Keys(distinct))
	if len(ids) > 1 {
		alive, _ := w.engine.KeepAlive(ctx, ids)
		ids = slices.DeleteFunc(ids, func(id int64) bool {
			is, answered := alive[id]
			return is || !answered
		})
	}
	w.leases.end(ids, leaseUnknown)
}
