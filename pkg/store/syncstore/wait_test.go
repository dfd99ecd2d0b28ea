package syncstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestWaitingForOneName: the result does not depend on other names, nor on whether Complete was called.
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
						return err // the write was not tried yet
					}
					return nil
				})
			}
			s.Put("good", []byte("1"))
			s.Put("gone", []byte("1"))
			fails("good", "") // the contents of the prefix are not listed yet
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

// TestWaitingForAForeignName: a key that is not wanted has to be deleted, which happens after Complete.
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
