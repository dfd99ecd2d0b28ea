package follow

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// ProofKeys is how many keys must agree before a stream is resumed.
const ProofKeys = 64

// resumable reports whether the position belongs to the history of the etcd that answers. The same cluster ID
// and a high enough revision do not prove this: a server that was wiped, or restored from a backup, under its
// old token has the same cluster ID, and in time its revision exceeds every position (kvstore.md §2.2). So the
// keeper asks for the server's state at the position.
//
// A keeper without keys has no proof. One with at most ProofKeys keys compares everything in one request. A larger
// one asks for the key that was written last, for the first ProofKeys keys, with their revisions and values, and for
// the number of all: another history has the same revision of that key only by chance, and a server that was restored
// from a backup with keys that were deleted since has more. One case is not detected: a server restored from a backup
// that is newer than the last change here, whose revision exceeds the position, with the same number of keys, and with
// changes only of keys that are not compared. A writer in a shared prefix asks for its own key that was written last, and for the one that
// it deleted last.
func (f *Follower) resumable(ctx context.Context, k Keeper, s Session) (bool, error) {
	if f.pos.Revision == 0 {
		return false, nil
	}
	all := k.Proofs()
	for _, proof := range all {
		if is, err := f.agrees(ctx, k, s, proof); err != nil || !is {
			return false, err
		}
	}
	return len(all) > 0, nil
}

// agrees asks one question.
func (f *Follower) agrees(ctx context.Context, k Keeper, s Session, proof Proof) (bool, error) {
	which := Session{OneKey: s.OneKey || proof.OneKey}.Selects()
	past, err := s.Client.Recall(ctx, proof.Prefix, "", f.pos, ProofKeys, which...)
	switch {
	case errors.Is(err, kvstore.ErrCompacted):
		return false, nil
	case errors.Is(err, kvstore.ErrServerChanged):
		_, err := s.Client.Head(ctx) // if the session has ended, the next one may resume from the position
		return false, err
	case err != nil:
		return false, err
	case !proof.Part && int64(len(past.Items)) < past.Count:
		return false, nil
	}
	for i := range past.Items {
		past.Items[i].Key = NameOf(past.Items[i].Key, s.Prefix)
	}
	if !k.Agrees(proof, past) {
		f.Log.Warn("The server has another history: it was emptied or restored; listing again",
			"prefix", s.Prefix, "revision", f.pos.Revision)
		return false, nil
	}
	return true, nil
}

// NameOf returns the key without its prefix; for a watch of one whole key it returns the last element of that
// key.
func NameOf(key []byte, prefix string) []byte {
	if len(key) == len(prefix) {
		return key[strings.LastIndexByte(prefix, '/')+1:]
	}
	return key[len(prefix):]
}

// RetryMax bounds the pause between two tries to resume a broken stream within one session. The session's own
// watchdog gives up long before this bound matters. The first pause is retryMin.
const (
	RetryMax = 5 * time.Second
	retryMin = 50 * time.Millisecond
)

// refusedMax bounds this pause where our user may not read the prefix: only a change of the rights helps, and
// the next session tries at once. With the jitter, half of the pause, it is a minute.
const refusedMax = 40 * time.Second

// pauses are the pauses between two tries within one session. They grow; those after refusals have the higher
// bound.
type pauses struct{ broken, refused *backoff.ExponentialBackOff }

func newPauses() pauses {
	return pauses{waiting.Pauses(retryMin, RetryMax), waiting.Pauses(retryMin, refusedMax)}
}

// after returns the pause after an error. The pauses after refusals grow only with consecutive refusals.
func (p pauses) after(err error) time.Duration {
	if errors.Is(err, kvstore.ErrPermissionDenied) {
		return p.refused.NextBackOff()
	}
	p.refused.Reset()
	return p.broken.NextBackOff()
}

// reset starts with the shortest pauses again, because a stream has returned something.
func (p pauses) reset() {
	p.broken.Reset()
	p.refused.Reset()
}
