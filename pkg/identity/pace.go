package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// history tells how far back the kvstore's history is known, as a revision and
// as a time before at: etcd has no clock, but the heartbeat, which is written
// every minute, holds the time (wire.md §1.10). The time is 0 when there are not
// two heartbeats to compare.
func history(ctx context.Context, client kvstore.Client, at kvstore.Position) (revision int64, span time.Duration, err error) {
	last, err := readHeartbeat(ctx, client, at)
	if err != nil || last.when.IsZero() {
		return 0, 0, err
	}
	// The oldest revision that is still there lies between lo, which is not, and hi.
	lo, hi := int64(0), at.Revision
	first := last
	for lo+1 < hi {
		mid := lo + (hi-lo)/2
		earlier, err := readHeartbeat(ctx, client, kvstore.Position{ClusterID: at.ClusterID, Revision: mid})
		switch {
		case errors.Is(err, kvstore.ErrCompacted):
			lo = mid
		case err != nil:
			return 0, 0, err
		case earlier.when.IsZero():
			lo = mid // nobody wrote it yet
		default:
			hi, first = mid, earlier
		}
	}
	return first.revision, last.when.Sub(first.when), nil
}

// heartbeat has a zero time when there was none, or none that can be read.
type heartbeat struct {
	revision int64
	when     time.Time
}

func readHeartbeat(ctx context.Context, client kvstore.Client, at kvstore.Position) (h heartbeat, err error) {
	past, err := client.Recall(ctx, wire.HeartbeatKey, "", at, 1)
	if err != nil {
		return h, fmt.Errorf("reading earlier heartbeats: %w", err)
	}
	for _, kv := range past.Items {
		if when, err := time.Parse(time.RFC3339Nano, string(kv.Value)); err == nil {
			return heartbeat{kv.ModRevision, when}, nil
		}
	}
	return h, nil
}
