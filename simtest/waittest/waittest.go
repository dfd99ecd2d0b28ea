// Package waittest waits in tests, reports which of them take long, and ends them at errors. A duration depends more on
// the machine than on the tested code, so no wait has its own limit: it ends shortly before the time limit of the whole
// test binary (go test -timeout), so that the test can still report what it waited for.
package waittest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// grace is how long before the time limit of the binary the waits end.
const grace = 15 * time.Second

// bubbled is the limit in a bubble of testing/synctest, where time passes as soon as all goroutines wait, and where
// code must not read the deadline of a test.
const bubbled = 24 * time.Hour

// T is the part of a test that reports that an awaited event did not happen. A [testing.TB] implements it, and also a
// run of a property test, whose waits have no limit.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Context returns a context for the waits of a test. It ends with the test.
func Context(t testing.TB) context.Context {
	t.Helper()
	at, limited := limit(t)
	if !limited {
		return t.Context()
	}
	ctx, cancel := context.WithDeadline(t.Context(), at)
	t.Cleanup(cancel)
	return ctx
}

// Long skips a long test if only short ones are wanted (go test -short).
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
}

// Must ends the test when there is an error.
func Must(t interface {
	Helper()
	Fatal(args ...any)
}, err error,
) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// limit returns when the waits of a test end, if they have a limit.
func limit(t T) (time.Time, bool) {
	if now := time.Now(); now.Year() == 2000 { // as in every bubble
		return now.Add(bubbled), true
	}
	is, ok := t.(interface{ Deadline() (time.Time, bool) })
	if !ok {
		return time.Time{}, false
	}
	at, limited := is.Deadline()
	return at.Add(-grace), limited
}

// Receive waits for a value of a channel, also while a test ends.
func Receive[V any](t T, what string, from <-chan V) V {
	t.Helper()
	var ends <-chan time.Time
	if end, limited := limit(t); limited {
		timer := time.NewTimer(time.Until(end))
		defer timer.Stop()
		ends = timer.C
	}
	select {
	case v := <-from:
		return v
	case <-ends:
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// Until waits until a condition holds. Details are added to the test's message if it never does.
func Until(t T, what string, is func() bool, details ...func() string) {
	t.Helper()
	failed := errors.New("it does not hold")
	Try(t, what, func() error {
		if is() {
			return nil
		}
		return failed
	}, details...)
}

// Try tries until it succeeds.
func Try(t T, what string, try func() error, details ...func() string) {
	t.Helper()
	end, limited := limit(t)
	first := time.Now()
	for {
		began := time.Now()
		err := try()
		if err == nil {
			return
		}
		if limited && time.Now().After(end) {
			text := err.Error()
			for _, detail := range details {
				text += "\n" + detail()
			}
			t.Fatalf("waited in vain for %s: %s", what, text)
		}
		<-time.After(pause(time.Since(began), time.Since(first)))
	}
}

// pause returns how long to wait after a try: took is the duration of the try, since the time since the first one. A
// condition that is expensive, or awaited for long, is tried less often, so that a busy machine has time for the
// awaited work.
func pause(took, since time.Duration) time.Duration {
	return min(max(2*time.Millisecond, 4*took, since/50), 200*time.Millisecond)
}
