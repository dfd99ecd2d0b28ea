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
	last, err := heartbeat(ctx, client, at)
	if err != nil || last.when.IsZero() {
		return 0, 0, err
	}
	// The oldest revision that is still there lies between lo, which is not, and hi.
	lo, hi := int64(0), at.Revision
	first := last
	for lo+1 < hi {
		mid := lo + (hi-lo)/2
		beat, err := heartbeat(ctx, client, kvstore.Position{ClusterID: at.ClusterID, Revision: mid})
		switch {
		case errors.Is(err, kvstore.ErrCompacted):
			lo = mid
		case err != nil:
			return 0, 0, err
		case beat.when.IsZero():
			lo = mid // nobody wrote it yet
		default:
			hi, first = mid, beat
		}
	}
	return first.revision, last.when.Sub(first.when), nil
}

// beat is a heartbeat; its time is zero when there was none, or none that can be
// read.
type beat struct {
	revision int64
	when     time.Time
}

func heartbeat(ctx context.Context, client kvstore.Client, at kvstore.Position) (beat, error) {
	past, err := client.Recall(ctx, wire.HeartbeatKey, "", at, 1)
	if err != nil {
		return beat{}, fmt.Errorf("reading earlier heartbeats: %w", err)
	}
	for _, kv := range past.Items {
		if when, err := time.Parse(time.RFC3339Nano, string(kv.Value)); err == nil {
			return beat{kv.ModRevision, when}, nil
		}
	}
	return beat{}, nil
}
