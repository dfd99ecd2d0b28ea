package remotecluster

import (
	"context"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// certificateInterval is how often the client certificate is read again: a session
// goes on when it expires, and nobody shall learn of that from the next one.
const certificateInterval = time.Minute

// followCertificate notes until when the client certificate is valid that the next
// session would have, until ctx ends.
func (c *Cluster) followCertificate(ctx context.Context, cfg *kvstore.Config) error {
	for {
		var until time.Time
		// What cannot be read is an error of the next session; this one needs it no more.
		if s, err := cfg.Security(); err == nil && len(s.Chain) > 0 {
			until = s.Chain[0].NotAfter
		}
		c.track.certified(until)
		wait := certificateInterval
		if left := time.Until(until); left > 0 && left < wait {
			wait = left
		}
		if err := waiting.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}
