package waiting

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// TestUntilDone: the pauses grow to the longest, and start again after a long attempt; success, the end of ctx and a
// permanent error end it.
func TestUntilDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const attempts, long = 30, 20
		var pauses []time.Duration
		err := UntilDone(t.Context(), time.Second, time.Minute, func() error {
			switch len(pauses) {
			case attempts:
				return nil
			case long:
				time.Sleep(time.Minute + 1)
			}
			return errGone
		}, func(err error, pause time.Duration) {
			if !errors.Is(err, errGone) {
				t.Error(err)
			}
			pauses = append(pauses, pause)
		})
		for _, i := range []int{0, long} {
			if p := pauses[i]; p < time.Second/2 || p > time.Second*3/2 {
				t.Errorf("pause %d is %s", i, p)
			}
		}
		if p := pauses[long-1]; err != nil || len(pauses) != attempts || p < time.Minute/2 || p > time.Minute*3/2 {
			t.Errorf("%v, the pauses are %s", err, pauses)
		}

		fails := func() error { return errGone }
		ctx, cancel := context.WithCancel(t.Context())
		if err := UntilDone(ctx, time.Second, time.Second, fails, func(error, time.Duration) { cancel() }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := UntilDone(t.Context(), time.Second, time.Second, func() error { return backoff.Permanent(errGone) }, nil); err != errGone { //nolint:errorlint // the error itself
			t.Error(err)
		}
	})
}
