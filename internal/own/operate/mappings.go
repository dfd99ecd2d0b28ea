package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// mappings finds the identities of the description that are not published, because an allocator gave their numbers to
// other labels: its mappings have no lease and are never replaced, since this would change the identity of every pod
// with that number ([syncstore.Params.CreateOnly]). A mapping with equal labels counts as ours.
type mappings struct {
	again  time.Duration                    // between two reports at most
	all    func() []syncstore.Contradiction // what contradicts
	report func(error)                      // gets it; nil is that nothing does
	log    *slog.Logger
	wake   waiting.Signal      // there may be news of what contradicts
	known  map[string]struct{} // that were said, by name
}

func newMappings(report func(error), log *slog.Logger) *mappings {
	return &mappings{again: reassertInterval, report: report, log: log, wake: waiting.NewSignal()}
}

// run reports whenever there is news, until ctx ends.
func (m *mappings) run(ctx context.Context) error {
	ticker := time.NewTicker(m.again)
	defer ticker.Stop()
	for {
		m.judge()
		select {
		case <-ticker.C:
		case <-m.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// judge says what contradicts: in one warning for all that are new.
func (m *mappings) judge() {
	all := m.all()
	slices.SortFunc(all, func(a, b syncstore.Contradiction) int { return cmp.Compare(a.Name, b.Name) })
	known, skipped := make(map[string]struct{}, len(all)), 0
	var first error
	for _, c := range all {
		known[c.Name] = struct{}{}
		if _, is := m.known[c.Name]; is {
			continue
		}
		if skipped++; first == nil {
			first = against(c)
		}
	}
	m.known = known
	if skipped > 0 {
		m.log.Warn("CiliumIdentities are not published because agents allocated their numbers for other labels before; "+
			"end the pods that use those numbers, or make Cilium give others", "code", codes.NumberGivenAway, "number", skipped, "first", first)
	}
	m.report(trouble(all))
}

func against(c syncstore.Contradiction) error {
	return fmt.Errorf("the number %s is that of a CiliumIdentity with the labels %s, but an allocator has allocated it for %s", c.Name, c.Wanted, c.Theirs)
}

// trouble is what contradicts, in words; nil when nothing does.
func trouble(all []syncstore.Contradiction) error {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return against(all[0])
	}
	return fmt.Errorf("%w; and %d more", against(all[0]), len(all)-1)
}

// adopt is for a migration that goes back a step. In the mode [modes.CRD] an operator
// publishes CiliumIdentities as mappings that end with its lease. In double write mode
// the allocators read and write these mappings themselves, and count on them to stay:
// those that a CiliumIdentity confirms lose their lease. It is tried until it succeeds.
func (o *Operator) adopt(ctx context.Context, lock *kvstore.Lock) error {
	if !o.Allocation.Mode.InKubernetes() || o.Allocation.Mode == modes.CRD {
		return nil
	}
	b, err := o.collector(lock)
	if err != nil {
		return err
	}
	return waiting.UntilDone(ctx, againAfter, againAfter, func() error {
		n, err := o.adoptAll(ctx, b, lock)
		if err == nil && n > 0 {
			o.Log.Info("Handed the published identities to the allocators", "number", n)
		}
		if errors.Is(err, kvstore.ErrLockLeaseExpired) {
			return backoff.Permanent(err)
		}
		return err
	}, func(err error, _ time.Duration) {
		o.Log.Warn("Cannot hand the published identities to the allocators, trying again", "error", err)
	})
}

func (o *Operator) adoptAll(ctx context.Context, b *collector, lock *kvstore.Lock) (adopted int, err error) {
	var leased []kvstore.KeyValue
	prefix := wire.IdentityAllocation.Mappings()
	_, err = o.Writer.List(ctx, prefix, func(p kvstore.Page) error {
		for _, kv := range p.Items {
			if kv.Lease != 0 {
				leased = append(leased, kv)
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, kv := range leased {
		id, err := strconv.ParseUint(string(kv.Key[len(prefix):]), 10, 64)
		if err != nil {
			continue // not a mapping
		}
		key, err := b.Kubernetes.GetByID(ctx, id)
		if err != nil {
			return adopted, err
		}
		if key == nil || key.GetKey() != string(kv.Value) {
			continue
		}
		r, err := o.Writer.Put(ctx, string(kv.Key), kv.Value, kvstore.IfRevision(kv.ModRevision), kvstore.Holding(lock))
		if err != nil {
			return adopted, fmt.Errorf("writing %s: %w", kv.Key, err)
		}
		if r.Done {
			adopted++
		}
	}
	return adopted, nil
}
