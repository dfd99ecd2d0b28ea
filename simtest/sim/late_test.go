package sim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// TestALateRequestIsMadeAgain: a request that was late does not end the simulator; one that fails for another reason
// does.
func TestALateRequestIsMadeAgain(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	hang := errors.New("does not answer") // in the table: until the request's time is over
	for name, tc := range map[string]struct {
		answers []error // of the requests, in order; the last one is repeated
		want    error
		made    int
	}{
		"in time":                   {[]error{nil}, nil, 1},
		"does not answer once":      {[]error{hang, nil}, nil, 2},
		"the server gives up once":  {[]error{fmt.Errorf("commit: %w", rpctypes.ErrTimeout), rpctypes.ErrNoLeader, nil}, nil, 3},
		"never answers":             {[]error{hang}, context.DeadlineExceeded, attempts},
		"fails in itself":           {[]error{broken}, broken, 1},
		"late, then fails":          {[]error{hang, broken}, broken, 2},
		"leader and connection":     {[]error{rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, nil}, nil, 3},
		"no room, which is no time": {[]error{rpctypes.ErrNoSpace}, rpctypes.ErrNoSpace, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made := 0
				err := persist(t.Context(), func(ctx context.Context) error {
					answer := tc.answers[min(made, len(tc.answers)-1)]
					made++
					if answer == hang {
						<-ctx.Done()
						return fmt.Errorf("commit: %w", ctx.Err())
					}
					return answer
				})
				if !errors.Is(err, tc.want) || made != tc.made {
					t.Errorf("%v after %d requests, want %v after %d", err, made, tc.want, tc.made)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		made := 0
		err := persist(ctx, func(ctx context.Context) error { made++; cancel(); <-ctx.Done(); return rpctypes.ErrTimeout })
		if made != 1 || err == nil {
			t.Errorf("%v after %d requests of a program that ends", err, made)
		}
	})
}
