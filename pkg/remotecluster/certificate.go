package remotecluster

import (
	"context"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// How often the client certificate is read again: a session goes on when it expires, and
// nobody shall learn of that from the next one. One that is valid for long is looked at
// more rarely, as hundreds of clusters have one each; one that was replaced by a bad one is seen
// after certificateMost at the latest.
const (
	certificateInterval = time.Minute
	certificateShare    = 10 // of the time that is left
	certificateMost     = 10 * time.Minute
)

// followCertificate notes until when the client certificate is valid that the next
// session would have, until ctx ends.
func (c *Cluster) followCertificate(ctx context.Context, cfg *clientfile.Config) error {
	for {
		var until time.Time
		// What cannot be read is an error of the next session; this one needs it no more.
		if s, err := cfg.Security(); err == nil && len(s.Chain) > 0 {
			until = s.Chain[0].NotAfter
		}
		if before, after := c.note(certificateRead(until)); !before.certificate.Equal(after.certificate) {
			c.Changed()
		}
		if err := waiting.Sleep(ctx, untilCertificate(time.Until(until))); err != nil {
			return err
		}
	}
}

// untilCertificate is when to read the certificate again that is valid for as long
// as this: at the latest when it expires.
func untilCertificate(left time.Duration) time.Duration {
	if left <= 0 { // expired, or there is none
		return certificateInterval
	}
	return min(left, max(certificateInterval, min(left/certificateShare, certificateMost)))
}
