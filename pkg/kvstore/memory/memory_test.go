package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMemoryFaults(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	m := New()
	m.SetPageSize(1)
	m.Set("p/1", "")
	m.Set("p/2", "")
	st, err := m.Watch(t.Context(), "p/", m.Position())
	waittest.Must(t, err)
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
	// A fault may block until the context ends.
	m.SetFault(func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	kvtest.WantErr(t, second(m.Head(ctx)), context.Canceled)
	// A fault in Recv ends the stream.
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
	waittest.Must(t, err)
	boom := errors.New("boom")
	m.Break(boom)
	kvtest.WantErr(t, second(st.Recv()), boom, `kvstore watch "p/": boom`)
}

func TestMemoryUnset(t *testing.T) {
	t.Parallel()
	m := New()
	before := m.Set("q/1", "")
	if at := m.Unset("q/1"); at.Revision != before.Revision+1 || m.Unset("q/1") != at {
		t.Errorf("deleting one key twice changes the position to %v", m.Position())
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

// TestMemoryRunRecovers: two failures do not end Run.
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

// TestBackups: a restored server has the contents, the revision and the leases of the backup. Sessions that have seen
// later revisions end. A recorder gets every change once.
func TestBackups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := New()
		m.ExpireAfter(time.Minute, time.Minute)
		var mu sync.Mutex
		recorded := map[string]string{} // guarded by mu
		m.SetRecorder(func(_ kvstore.Position, changes []kvstore.Event) {
			mu.Lock()
			defer mu.Unlock()
			if len(changes) == 0 {
				clear(recorded)
			}
			for _, e := range changes {
				if recorded[string(e.Key)] = string(e.Value); e.Type == kvstore.EventDelete {
					delete(recorded, string(e.Key))
				}
			}
		})
		text := func() string {
			mu.Lock()
			defer mu.Unlock()
			return fmt.Sprint(recorded)
		}
		has := func(want string) {
			t.Helper()
			if got := text(); got != want {
				t.Errorf("recorded is %s, want %s", got, want)
			}
		}
		writer := m.Connect()
		m.Set("a", "1")
		_, err := writer.Put(t.Context(), "leased", []byte("1"), kvstore.Leased())
		waittest.Must(t, err)
		before, backup := m.Position(), m.Backup()
		m.Set("a", "2")
		m.Set("b", "2")
		m.Unset("leased")
		has("map[a:2 b:2]")
		m.Restore(backup)
		has("map[a:1 leased:1]")
		if at := m.Position(); at != before {
			t.Errorf("it is at %v, not %v", at, before)
		}
		m.Set("c", "3")
		has("map[a:1 c:3 leased:1]")
		waittest.Until(t, "the lease to end", func() bool { return text() == "map[a:1 c:3]" })
		m.Replace()
		has("map[]")
	})
}
