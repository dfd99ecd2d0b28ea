package waiting

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Pauses returns pauses that grow from the shortest to the longest, with jitter: each is longer or shorter by up to
// half.
func Pauses(shortest, longest time.Duration) *backoff.ExponentialBackOff {
	pauses := backoff.NewExponentialBackOff()
	pauses.InitialInterval, pauses.MaxInterval = shortest, longest
	return pauses
}

// UntilDone does something again and again until it succeeds, or until ctx ends, whose error it returns then. It calls
// failed with each error and the pause that follows, from [Pauses]. After an attempt that lasted longer than the longest
// pause, they start with the shortest again. The error in one of [backoff.Permanent] is returned at once, alone.
func UntilDone(ctx context.Context, shortest, longest time.Duration, do func() error, failed func(err error, pause time.Duration)) error {
	pauses := Pauses(shortest, longest)
	for {
		began := time.Now()
		err := do()
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if last, is := errors.AsType[*backoff.PermanentError](err); is {
			return last.Err
		}
		if time.Since(began) > longest {
			pauses.Reset()
		}
		pause := pauses.NextBackOff()
		failed(err, pause)
		if err := Sleep(ctx, pause); err != nil {
			return err
		}
	}
}
