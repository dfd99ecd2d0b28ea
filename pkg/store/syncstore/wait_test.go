package syncstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestWaitingForOneName: whatever becomes of others, and whether everything was given or not.
func TestWaitingForOneName(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"own prefix": false, "shared prefix": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			o := NewOutbox(picky(d.mem), nil, nil, nil)
			d.run(o.Run)
			s := New(Params{Prefix: "p/", Shared: shared, Outbox: o})
			await := func(name string) {
				t.Helper()
				must(t, s.WaitName(waittest.Context(t), name))
			}
			fails := func(name, why string) {
				t.Helper()
				eventually(t, func() error {
					soon, cancel := context.WithTimeout(d.ctx, 20*time.Millisecond)
					defer cancel()
					err := s.WaitName(soon, name)
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Fatalf("it ended with %v", err)
					}
					if !strings.Contains(err.Error(), "p/"+name) || !strings.Contains(err.Error(), why) {
						return err // nobody has tried it yet
					}
					return nil
				})
			}
			s.Put("good", []byte("1"))
			s.Put("gone", []byte("1"))
			fails("good", "") // nobody knows yet what is there
			d.run(s.Run)
			s.Put("refused", []byte("bad"))
			for _, name := range []string{"good", "gone"} {
				await(name)
				if d.has("p/")[name] != "1" {
					t.Errorf("%s is not there", name)
				}
			}
			waittest.Until(t, "a refusal", func() bool { return s.Status().Failed > 0 })
			fails("refused", "too large")
			s.Delete("gone")
			await("gone")
			await("unheard of")
			if _, is := d.has("p/")["gone"]; is {
				t.Error("it is still there")
			}
			s.Put("good", []byte("2"))
			await("good")
			if d.has("p/")["good"] != "2" {
				t.Error("the new value is not there")
			}
			s.Put("refused", []byte("fine"))
			await("refused")
			d.mem.ExpireLeases()
			d.until("p/", map[string]string{"good": "2", "refused": "fine"})
			await("good")
		})
	}
}

// TestWaitingForAForeignName: a key that nobody wants has to go, and does when
// everything was given.
func TestWaitingForAForeignName(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.mem.Set("p/foreign", "1")
	s := d.sync(Params{Prefix: "p/"})
	soon, cancel := context.WithTimeout(d.ctx, 20*time.Millisecond)
	defer cancel()
	if err := s.WaitName(soon, "foreign"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
	s.Complete()
	if err := s.WaitName(d.ctx, "foreign"); err != nil {
		t.Error(err)
	}
	d.until("p/", map[string]string{})
}
