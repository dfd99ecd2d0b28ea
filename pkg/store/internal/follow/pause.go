package follow

import (
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// RetryMax bounds the pause between two tries to resume a broken stream within
// one session. The session's own watchdog gives up long before it matters.
const RetryMax = 5 * time.Second

// refusedMax bounds the same where our user may not read the prefix: only somebody who
// changes the rights helps, and the next session asks at once. The jitter, half of it,
// makes it a minute.
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

// reset begins anew: a stream has brought something.
func (p pauses) reset() {
	p.broken.Reset()
	p.refused.Reset()
}
