package remotecluster

import (
	"context"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// certificateInterval is how often the certificates are read again: a session goes on when they expire, or are replaced
// by bad ones, and nobody shall learn of that from the next one. Hundreds of clusters take a few milliseconds for it.
const certificateInterval = time.Minute

// followCertificate notes until when the client certificate is valid that the next
// session would have, and what that would fail with, until ctx ends.
func (c *Cluster) followCertificate(ctx context.Context, cfg *clientfile.Config, client Client) error {
	for {
		var until time.Time
		// What cannot be read is an error of the next session; this one needs it no more.
		if s, err := cfg.Security(); err == nil && len(s.Chain) > 0 {
			until = s.Chain[0].NotAfter
		}
		next := ""
		if err := cfg.CheckNext(client.Status().Certificates.Chain, time.Now()); err != nil {
			next = err.Error()
		}
		if before, after := c.note(certificateRead(until, next)); !before.certificate.Equal(after.certificate) || before.next != after.next {
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
	return min(left, certificateInterval)
}
