package operate

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/publish"
)

// fewNames is how many keys are read one by one rather than with all others.
const fewNames = 10

// mappings publishes identities beside those of allocators, whose mappings have no
// lease and are never replaced: whoever holds such a number would become somebody
// else. It looks at what is there before it hands a name on; from then on the key
// is the operator's. What it holds back it looks at again from time to time.
//
// It is a [publish.Target], whose methods may be called by any goroutine.
type mappings struct {
	prefix string
	client kvstore.Client
	to     publish.Target
	again  time.Duration // between two looks at what is held back
	report func(error)   // told of each look what is held back that contradicts
	log    *slog.Logger
	wake   chan struct{}

	mu       sync.Mutex
	wanted   map[string][]byte   // guarded by mu; not handed on yet
	fresh    map[string]struct{} // guarded by mu; those of them that were not looked at
	handed   map[string]struct{} // guarded by mu
	against  map[string]error    // guarded by mu; those of wanted that contradict what is there
	complete bool                // guarded by mu; everything was given
	told     bool                // guarded by mu; and handed on
}

func newMappings(prefix string, client kvstore.Client, to publish.Target, report func(error), log *slog.Logger) *mappings {
	return &mappings{
		prefix: prefix, client: client, to: to, again: configReassert, report: report, log: log, wake: make(chan struct{}, 1),
		wanted: make(map[string][]byte), fresh: make(map[string]struct{}), handed: make(map[string]struct{}), against: make(map[string]error),
	}
}

// Put implements [publish.Target].
func (m *mappings) Put(name string, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, is := m.handed[name]; is {
		m.to.Put(name, value)
		return
	}
	m.wanted[name] = value
	m.fresh[name] = struct{}{}
	m.signal()
}

// Delete implements [publish.Target]. A name that is held back is not deleted.
func (m *mappings) Delete(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, is := m.handed[name]; is {
		delete(m.handed, name)
		m.to.Delete(name)
		return
	}
	delete(m.wanted, name)
	delete(m.fresh, name)
	delete(m.against, name)
	m.signal() // what contradicted may be over
}

// Complete implements [publish.Target].
func (m *mappings) Complete() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.complete = true
	m.signal()
}

func (m *mappings) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run looks at what is there whenever something is to be published, until ctx
// ends.
func (m *mappings) run(ctx context.Context) error {
	ticker := time.NewTicker(m.again)
	defer ticker.Stop()
	all := true
	for {
		if err := m.settle(ctx, all); err != nil {
			m.log.Debug("The identities that are there cannot be looked at, trying again", "error", err)
			if err := waiting.Sleep(ctx, time.Second); err != nil {
				return err
			}
			all = true
			continue
		}
		select {
		case <-ticker.C:
			all = true
		case <-m.wake:
			all = false
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settle looks at what is there for what is new, or for all that was not handed
// on, and hands on what may be.
func (m *mappings) settle(ctx context.Context, all bool) error {
	m.mu.Lock()
	names := slices.Collect(maps.Keys(m.fresh))
	if all {
		names = slices.Collect(maps.Keys(m.wanted))
	}
	clear(m.fresh)
	m.mu.Unlock()
	taken, err := m.look(ctx, names)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hand(names, taken)
	m.judge(names, taken)
	if m.complete && !m.told && len(m.fresh) == 0 {
		m.told = true
		m.to.Complete()
	}
	return nil
}

// look returns what an allocator's mappings of these names say.
func (m *mappings) look(ctx context.Context, names []string) (taken map[string]string, err error) {
	taken = make(map[string]string)
	if len(names) <= fewNames {
		for _, name := range names {
			kv, _, err := m.client.Get(ctx, m.prefix+name)
			if err != nil {
				return nil, err
			}
			if kv != nil && kv.Lease == 0 {
				taken[name] = string(kv.Value)
			}
		}
		return taken, nil
	}
	asked := make(map[string]struct{}, len(names))
	for _, name := range names {
		asked[name] = struct{}{}
	}
	_, err = m.client.List(ctx, m.prefix, func(p kvstore.Page) error {
		for i := range p.Items {
			kv := &p.Items[i]
			name := string(kv.Key[len(m.prefix):])
			if _, is := asked[name]; is && kv.Lease == 0 {
				taken[name] = string(kv.Value)
			}
		}
		return nil
	})
	return taken, err
}

// hand hands on those of the names that are still wanted and that nobody else has.
// mu is held.
func (m *mappings) hand(names []string, taken map[string]string) {
	for _, name := range names {
		value, wanted := m.wanted[name]
		if _, is := taken[name]; is || !wanted {
			continue
		}
		delete(m.wanted, name)
		delete(m.fresh, name)
		m.handed[name] = struct{}{}
		m.to.Put(name, value)
	}
}

// judge says what is held back because an allocator gave the number to other
// labels: in one warning for all that are new. A mapping that says the same is as
// good as one of ours. mu is held.
func (m *mappings) judge(names []string, taken map[string]string) {
	slices.Sort(names)
	skipped, first := 0, ""
	for _, name := range names {
		value, wanted := m.wanted[name]
		labels, is := taken[name]
		before := m.against[name]
		delete(m.against, name)
		if !wanted || !is || labels == string(value) {
			continue
		}
		m.against[name] = fmt.Errorf("the number %s is that of a CiliumIdentity with the labels %s, but an allocator gave it to %s", name, value, labels)
		if before == nil {
			if skipped++; first == "" {
				first = name
			}
		}
	}
	if skipped > 0 {
		m.log.Warn("CiliumIdentities are not published because agents gave their numbers away before; "+
			"end the pods that use those numbers, or make Cilium give others", "number", skipped, "first", m.against[first])
	}
	m.report(m.trouble())
}

// trouble is what is held back, in words; nil when nothing is. mu is held.
func (m *mappings) trouble() error {
	if len(m.against) == 0 {
		return nil
	}
	first := m.against[slices.Min(slices.Collect(maps.Keys(m.against)))]
	if len(m.against) == 1 {
		return first
	}
	return fmt.Errorf("%w; and %d more", first, len(m.against)-1)
}
