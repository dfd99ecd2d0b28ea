package operate

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// handed collects what mappings hands on.
type handed struct {
	mu       sync.Mutex
	values   map[string]string
	complete int
	reports  []string // each that differs from the one before
}

func (h *handed) Put(name string, value []byte) {
	h.do(func() { h.values[name] = string(value) })
}

func (h *handed) Delete(name string) {
	h.do(func() {
		if _, is := h.values[name]; !is {
			panic(name + " is deleted and was never handed on")
		}
		delete(h.values, name)
	})
}

func (h *handed) Complete() { h.do(func() { h.complete++ }) }

func (h *handed) report(err error) {
	h.do(func() {
		text := ""
		if err != nil {
			text = err.Error()
		}
		if len(h.reports) == 0 || h.reports[len(h.reports)-1] != text {
			h.reports = append(h.reports, text)
		}
	})
}

func (h *handed) do(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// has tells whether these and no others are handed on.
func (h *handed) has(want map[string]string) func() bool {
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return maps.Equal(h.values, want)
	}
}

// says tells whether the last report has this text in it; empty: it is of no error.
func (h *handed) says(part string) func() bool {
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		last := ""
		if len(h.reports) > 0 {
			last = h.reports[len(h.reports)-1]
		}
		return len(h.reports) > 0 && strings.Contains(last, part) && (last == "") == (part == "")
	}
}

// TestMappingsOfAllocatorsAreNotReplaced, whether they are read one by one or
// listed. Those that say the same are as good; those with a lease are an
// operator's; and what is free at last is handed on.
func TestMappingsOfAllocatorsAreNotReplaced(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 2 * fewNames} {
		t.Run(fmt.Sprint(others), func(t *testing.T) {
			t.Parallel()
			client, h := kvstore.NewMemory(), &handed{values: make(map[string]string)}
			put := func(name, value string, opts ...kvstore.Option) {
				t.Helper()
				_, err := client.Put(t.Context(), "p/"+name, []byte(value), opts...)
				must(t, err)
			}
			put("1", "other")
			put("2", "b")
			put("3", "other", kvstore.Leased())
			m := newMappings("p/", client, h, h.report, slog.New(slog.NewTextHandler(t.Output(), nil)))
			m.again = 20 * time.Millisecond
			want := map[string]string{"3": "c", "4": "d"}
			for i := range others {
				m.Put(fmt.Sprint("x", i), nil)
				want[fmt.Sprint("x", i)] = ""
			}
			for name, value := range map[string]string{"1": "a", "2": "b", "3": "c", "4": "d"} {
				m.Put(name, []byte(value))
			}
			m.Complete()
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- m.run(ctx) }()
			defer func() { cancel(); <-ended }()
			waittest.Until(t, "those that may be", h.has(want))
			waittest.Until(t, "a report", h.says("the number 1 is that of a CiliumIdentity with the labels a, but an allocator gave it to other"))

			m.Delete("2") // which is not ours
			m.Put("4", []byte("e"))
			want["4"] = "e"
			waittest.Until(t, "a change of what is ours", h.has(want))
			_, err := client.Delete(t.Context(), "p/1")
			must(t, err)
			want["1"] = "a"
			waittest.Until(t, "the number that is free at last", h.has(want))
			waittest.Until(t, "all is well", h.says(""))
			m.Delete("1")
			delete(want, "1")
			waittest.Until(t, "a withdrawal", h.has(want))
			h.do(func() {
				if h.complete != 1 {
					t.Errorf("complete %d times", h.complete)
				}
			})
		})
	}
}

// TestACiliumIdentityWhoseNumberAnAgentGaveAway is not published in the place of
// that, neither at the start nor when it comes or goes, and this is shown; all
// others are published.
func TestACiliumIdentityWhoseNumberAnAgentGaveAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const prefix, taken, free, later = "cilium/state/identities/v1/id/", "196701", "196702", "196703"
	const theirs = "k8s:app=x;k8s:io.cilium.k8s.policy.cluster=east;"
	c := w.etcd.Client(t)
	for _, id := range []string{taken, later} {
		_, err := c.Put(t.Context(), prefix+id, theirs)
		must(t, err)
	}
	before, err := c.Get(t.Context(), prefix+taken)
	must(t, err)
	one := w.identity(taken, "a")
	w.identity(free, "b")
	w.listed()
	var mu sync.Mutex
	shown := ""
	o := w.operator(func(p *Params) {
		p.Report = func(task string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if task == "mappings" {
				shown = fmt.Sprint(err)
			}
		}
	})
	defer o.stop()
	shows := func(text string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(shown, text)
		}
	}
	waittest.Until(t, "readiness", o.isPublished)
	if !strings.Contains(w.value(prefix+free), "k8s:app=b;") {
		t.Errorf("%s is %q", free, w.value(prefix+free))
	}
	waittest.Until(t, "it to be shown", shows("the number "+taken))
	w.identity(later, "c")
	waittest.Until(t, "the other to be shown", shows("and 1 more"))
	w.source.CiliumIdentities.Apply([]store.Change[local.CiliumIdentity]{{Old: one}})
	waittest.Until(t, "the rest to be shown", shows("the number "+later))
	after, err := c.Get(t.Context(), prefix+taken)
	must(t, err)
	if len(after.Kvs) != 1 || after.Kvs[0].ModRevision != before.Kvs[0].ModRevision || w.value(prefix+later) != theirs {
		t.Errorf("what allocators wrote is now %v and %q", after.Kvs, w.value(prefix+later))
	}
}
