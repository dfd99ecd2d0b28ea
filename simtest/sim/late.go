package sim

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// attempts is how often a request is sent to a server that does not answer in time.
const attempts = 6

// persist repeats a request that was late, as on a busy machine, so that a late request does not end the program. A
// request must have the same effect twice as once.
func persist(ctx context.Context, request func(context.Context) error) error {
	for n := 1; ; n++ {
		limited, cancel := context.WithTimeout(ctx, commitTimeout)
		err := request(limited)
		cancel()
		if n == attempts || ctx.Err() != nil || !isLate(err) {
			return err
		}
	}
}

// isLate reports whether a request failed because the server had no time for it.
func isLate(err error) bool {
	for _, late := range []error{
		context.DeadlineExceeded, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrNoLeader,
	} {
		if errors.Is(err, late) {
			return true
		}
	}
	return false
}
