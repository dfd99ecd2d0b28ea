package waiting

import (
	"context"
	"errors"
	"testing"
)

// The first error ends the others, and all are waited for.
func TestTogether(t *testing.T) {
	t.Parallel()
	ended := 0
	err := Together(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		ended++
		return ctx.Err()
	}, func(context.Context) error { return errGone })
	if !errors.Is(err, errGone) || ended != 1 {
		t.Errorf("%v, and %d ended", err, ended)
	}
	if err := Together(t.Context()); err != nil {
		t.Error(err)
	}
}
