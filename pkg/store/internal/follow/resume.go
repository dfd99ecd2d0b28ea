package follow

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// ProofKeys is how many keys must agree before a stream is resumed.
const ProofKeys = 64

// resumable reports whether the position belongs to the history of the etcd that answers. Its
// cluster ID and a revision that was reached do not prove that: a server that was wiped, or
// restored from a backup, under its old token has the same cluster ID, and in time it overtakes
// every position (kvstore.md §2.2). So it is asked, in one request, what it had at the position:
// up to ProofKeys keys with their revisions and values, and how many there were.
//
// For a keeper of no more keys than that this compares everything. For a larger one the comparison
// begins at the key that was written last: a history which differs from ours before it cannot have
// its revision, and the keys behind it, but by chance. Left is a backup that is newer than the last
// change here, overtaken in revisions, with as many keys, of which others changed than are compared.
func (f *Follower) resumable(ctx context.Context, k Keeper, s Session) (bool, error) {
	if f.pos.Revision == 0 {
		return false, nil
	}
	proof, provable := k.Proof()
	if !provable {
		return false, nil
	}
	which := Session{OneKey: s.OneKey || proof.OneKey}.Selects()
	past, err := s.Client.Recall(ctx, proof.Prefix, proof.From, f.pos, ProofKeys, which...)
	switch {
	case errors.Is(err, kvstore.ErrCompacted):
		return false, nil
	case errors.Is(err, kvstore.ErrServerChanged):
		_, err := s.Client.Head(ctx) // if that is the end of the session, the position may serve the next one
		return false, err
	case err != nil:
		return false, err
	case proof.From == "" && int64(len(past.Items)) < past.Count:
		return false, nil // all were to be compared, and they do not fit into one answer
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

// NameOf is the key without its prefix; for a watch of one whole key it is the
// last element of that key.
func NameOf(key []byte, prefix string) []byte {
	if len(key) == len(prefix) {
		return key[strings.LastIndexByte(prefix, '/')+1:]
	}
	return key[len(prefix):]
}

// RetryMax bounds the pause between two tries to resume a broken stream within
// one session. The session's own watchdog gives up long before it matters.
const RetryMax = 5 * time.Second

// refusedMax bounds the same where our user may not read the prefix: only somebody who changes the
// rights helps, and the next session asks at once. The jitter, half of it, makes it a minute.
const refusedMax = 40 * time.Second

// pauses are those between two tries within one session: they grow, those after a
// refusal for longer.
type pauses struct{ broken, refused *backoff.ExponentialBackOff }

func newPauses() pauses {
	p := pauses{backoff.NewExponentialBackOff(), backoff.NewExponentialBackOff()}
	p.broken.InitialInterval, p.broken.MaxInterval = 50*time.Millisecond, RetryMax
	p.refused.InitialInterval, p.refused.MaxInterval = p.broken.InitialInterval, refusedMax
	return p
}

// after is the pause after an error. Only refusals in a row make those after them grow.
func (p pauses) after(err error) time.Duration {
	if errors.Is(err, kvstore.ErrPermissionDenied) {
		return p.refused.NextBackOff()
	}
	p.refused.Reset()
	return p.broken.NextBackOff()
}

// reset starts over: a stream has brought something.
func (p pauses) reset() {
	p.broken.Reset()
	p.refused.Reset()
}
