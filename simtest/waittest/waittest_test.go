package waittest

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestUntil: it waits until the condition holds, for any time.
func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, tries := time.Now(), 0
		Until(t, "ten minutes", func() bool { tries++; return time.Since(began) > 10*time.Minute })
		if tries < 100 {
			t.Errorf("looked %d times", tries)
		}
		left := errors.New("not yet")
		Try(t, "the third try", func() error {
			if tries++; tries%3 != 0 {
				return left
			}
			return nil
		})
	})
}

// failing records the message of a failing test.
type failing struct{ said string }

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	panic(f)
}

// TestInVain: an event that never happens is named, with the details.
func TestInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failing{}
		func() {
			defer func() { _ = recover() }()
			Try(f, "a miracle", func() error { return errors.New("none") }, func() string { return "some detail" })
		}()
		if f.said != "waited in vain for a miracle: none\nsome detail" {
			t.Errorf("said %q", f.said)
		}
	})
}

// TestReceive: also from a channel that is closed.
func TestReceive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		values := make(chan int, 1)
		time.AfterFunc(time.Hour, func() { values <- 7; close(values) })
		if a, b := Receive(t, "seven", values), Receive(t, "the end", values); a != 7 || b != 0 {
			t.Errorf("received %d and %d", a, b)
		}
		f := &failing{}
		func() {
			defer func() { _ = recover() }()
			Receive(f, "nothing", make(chan int))
		}()
		if f.said != "waited in vain for nothing" {
			t.Errorf("said %q", f.said)
		}
	})
}

// TestContext: the context ends before the time of the test binary does.
func TestContext(t *testing.T) {
	t.Parallel()
	at, limited := Context(t).Deadline()
	if end, is := t.Deadline(); is != limited || limited && !at.Before(end) {
		t.Errorf("ends at %s (%t), the binary at %s (%t)", at, limited, end, is)
	}
}
