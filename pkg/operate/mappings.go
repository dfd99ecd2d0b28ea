package operate

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
)

// mappings says which identities of the description are not published, because an
// allocator gave their numbers to other labels: its mappings have no lease and are
// never replaced, since whoever holds such a number would become somebody else
// ([syncstore.Params.CreateOnly]). A mapping that says the same is as good as ours.
type mappings struct {
	again  time.Duration                    // between two reports at most
	all    func() []syncstore.Contradiction // what contradicts
	report func(error)                      // gets it; nil is that nothing does
	log    *slog.Logger
	wake   chan struct{}
	known  map[string]struct{} // that were said, by name
}

func newMappings(report func(error), log *slog.Logger) *mappings {
	return &mappings{again: configReassert, report: report, log: log, wake: make(chan struct{}, 1)}
}

// look asks for another look at what contradicts. It does not block.
func (m *mappings) look() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
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
		m.log.Warn("CiliumIdentities are not published because agents gave their numbers away before; "+
			"end the pods that use those numbers, or make Cilium give others", "code", codes.NumberGivenAway, "number", skipped, "first", first)
	}
	m.report(trouble(all))
}

func against(c syncstore.Contradiction) error {
	return fmt.Errorf("the number %s is that of a CiliumIdentity with the labels %s, but an allocator gave it to %s", c.Name, c.Wanted, c.Theirs)
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
