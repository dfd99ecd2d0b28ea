package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
)

func TestMemoryFaults(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	m := New()
	m.SetPageSize(1)
	m.Set("p/1", "")
	m.Set("p/2", "")
	st, err := m.Watch(t.Context(), "p/", m.Position())
	if err != nil {
		t.Fatal(err)
	}
	for op, call := range map[string]func(context.Context) error{
		"get":  func(ctx context.Context) error { _, _, err := m.Get(ctx, "p/1"); return err },
		"head": func(ctx context.Context) error { _, err := m.Head(ctx); return err },
		"list": func(ctx context.Context) error {
			_, err := m.List(ctx, "p/", func(kvstore.Page) error { return nil })
			return err
		},
		"page": func(ctx context.Context) error {
			_, err := m.List(ctx, "p/", func(kvstore.Page) error { return nil })
			return err
		},
		"recall": func(ctx context.Context) error {
			_, err := m.Recall(ctx, "p/", "", m.Position(), 1)
			return err
		},
		"watch": func(ctx context.Context) error { _, err := m.Watch(ctx, "p/", m.Position()); return err },
		"probe": func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			var err error
			_ = m.Run(ctx, func(p kvstore.Probe) { err = p.Err; cancel() })
			return err
		},
		"progress": func(context.Context) error { return st.RequestProgress() },
	} {
		m.SetFault(func(_ context.Context, o, key string) error {
			if o == op {
				return fmt.Errorf("%w at %s", boom, key)
			}
			return nil
		})
		kvtest.WantErr(t, call(t.Context()), boom)
		m.SetFault(nil)
		if err := call(t.Context()); err != nil {
			t.Errorf("%s without the fault: %v", op, err)
		}
	}
	// A fault may block, and end with the context.
	m.SetFault(func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	kvtest.WantErr(t, second(m.Head(ctx)), context.Canceled)
	// In Recv it ends the stream.
	m.SetFault(func(context.Context, string, string) error { return boom })
	kvtest.WantErr(t, second(st.Recv()), boom)
	m.SetFault(nil)
	kvtest.WantErr(t, second(st.Recv()), boom)
	kvtest.WantErr(t, st.RequestProgress(), boom)
}

func TestMemoryBreak(t *testing.T) {
	t.Parallel()
	m := New()
	st, err := m.Watch(t.Context(), "p/", m.Position())
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	m.Break(boom)
	kvtest.WantErr(t, second(st.Recv()), boom, `kvstore watch "p/": boom`)
}

func TestMemoryDeletePrefix(t *testing.T) {
	t.Parallel()
	m := New()
	m.Set("p/1", "")
	m.Set("q/1", "")
	at := m.Set("p/2", "")
	gone := m.UnsetPrefix("p/")
	if gone.Revision != at.Revision+1 {
		t.Errorf("at %v, want one revision after %v", gone, at)
	}
	if again := m.UnsetPrefix("p/"); again != gone {
		t.Errorf("deleting nothing changes the position to %v", again)
	}
	if kv, _, _ := m.Get(t.Context(), "q/1"); kv == nil {
		t.Error("another prefix was deleted")
	}
}

func TestMemoryRun(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for _, c := range []struct {
		name  string
		cut   func(*Store)
		want  error
		after time.Duration
	}{
		{"three failures in a row", func(m *Store) { m.SetFault(func(context.Context, string, string) error { return boom }) }, kvstore.ErrQuorumLost, 3 * time.Second},
		{"another server", (*Store).Replace, kvstore.ErrServerChanged, time.Second},
		{"closed", (*Store).Close, kvstore.ErrClosed, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := New()
				m.SetProbeInterval(time.Second)
				start, probes := time.Now(), 0
				err := m.Run(t.Context(), func(p kvstore.Probe) {
					if probes++; probes == 1 {
						if p.Err != nil || p.Head != m.Position() || !p.At.Equal(start) {
							t.Errorf("%+v", p)
						}
						c.cut(m)
					}
				})
				kvtest.WantErr(t, err, c.want)
				if took := time.Since(start); took != c.after {
					t.Errorf("it took %s, want %s", took, c.after)
				}
				if m.Status().Connected {
					t.Error("connected after the end")
				}
			})
		})
	}
}

// TestMemoryRunRecovers: two failures are not enough.
func TestMemoryRunRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := New()
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		m.SetFault(func(context.Context, string, string) error {
			if n++; n%3 != 0 {
				return errors.New("boom")
			}
			return nil
		})
		probes := 0
		err := m.Run(ctx, func(p kvstore.Probe) {
			if probes++; probes == 30 {
				cancel()
			}
			if m.Status().Connected != (p.Err == nil) {
				t.Errorf("status %v after %v", m.Status(), p.Err)
			}
		})
		kvtest.WantErr(t, err, context.Canceled)
	})
}

// follower keeps a copy of a prefix as an owner of a client does: it lists,
// watches, resumes, and lists again when it must.
type follower struct {
	m    *Store
	st   kvstore.Stream
	at   kvstore.Position
	view map[string]string
}

// step does one thing; it reports whether the copy may be complete.
func (f *follower) step(ctx context.Context) bool {
	if f.st == nil {
		return f.open(ctx)
	}
	if err := f.st.RequestProgress(); err != nil {
		f.st = nil
		return false
	}
	b, err := f.st.Recv()
	if err != nil {
		if errors.Is(err, kvstore.ErrCompacted) || errors.Is(err, kvstore.ErrServerChanged) {
			f.at = kvstore.Position{}
		}
		f.st = nil
		return false
	}
	for _, ev := range b.Events {
		if ev.ModRevision <= f.at.Revision {
			panic("an event was delivered twice")
		}
		if ev.Type == kvstore.EventDelete {
			delete(f.view, string(ev.Key))
		} else {
			f.view[string(ev.Key)] = string(ev.Value)
		}
	}
	f.at = b.At
	return len(b.Events) == 0
}

func (f *follower) open(ctx context.Context) bool {
	head, err := f.m.Head(ctx)
	if err != nil {
		f.m = f.m.Connect()
		return false
	}
	if head.ClusterID != f.at.ClusterID || head.Revision < f.at.Revision {
		view := make(map[string]string)
		f.at, err = f.m.List(ctx, "p/", func(p kvstore.Page) error {
			for _, kv := range p.Items {
				view[string(kv.Key)] = string(kv.Value)
			}
			return nil
		})
		if err != nil {
			f.at = kvstore.Position{}
			return false
		}
		f.view = view
	}
	if f.st, err = f.m.Watch(ctx, "p/", f.at); err != nil {
		f.at, f.st = kvstore.Position{}, nil
	}
	return false
}

// TestMemoryFollowed: whatever happens, a follower that does as the comments of
// Client say ends with a copy of the contents.
func TestMemoryFollowed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		m := New()
		m.SetPageSize(3)
		f := &follower{m: m.Connect()}
		model := make(map[string]string)
		key := rapid.SampledFrom([]string{"p/1", "p/2", "p/3", "p/4", "p/5", "q/1", "p"})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "value")
				m.Set(k, v)
				model[k] = v
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				m.Unset(k)
				delete(model, k)
			},
			"delete all":     func(*rapid.T) { m.UnsetPrefix("p/"); clearPrefix(model) },
			"compact":        func(*rapid.T) { m.Compact() },
			"break":          func(*rapid.T) { m.Break(nil) },
			"replace":        func(*rapid.T) { m.Replace(); clear(model) },
			"step":           func(*rapid.T) { f.step(ctx) },
			"a few steps":    func(*rapid.T) { f.step(ctx); f.step(ctx); f.step(ctx) },
			"another begins": func(*rapid.T) { f = &follower{m: m.Connect()} },
			"": func(t *rapid.T) {
				if m.Position().Revision%5 != 0 { // not always, so that followers fall behind
					return
				}
				for range 10 {
					if f.step(ctx) {
						break
					}
				}
				want := maps.Clone(model)
				maps.DeleteFunc(want, func(k, _ string) bool { return !strings.HasPrefix(k, "p/") })
				if diff := cmp.Diff(want, f.view); diff != "" {
					t.Fatal(diff)
				}
			},
		})
	})
}

func clearPrefix(m map[string]string) {
	maps.DeleteFunc(m, func(k, _ string) bool { return strings.HasPrefix(k, "p/") })
}
