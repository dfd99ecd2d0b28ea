package remotecluster

import (
	"context"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// certificateInterval is the time between two reads of the certificates. A session continues when they expire or are
// replaced by bad ones. The status must show this before the next session fails. For hundreds of clusters a read takes
// a few milliseconds.
const certificateInterval = time.Minute

// followCertificate records when the client certificate expires that the next session
// would use, and the error that this session would fail with, until ctx ends.
func (c *Cluster) followCertificate(ctx context.Context, cfg *clientfile.Config, client Client) error {
	for {
		var until time.Time
		// A file that cannot be read is an error of the next session; this one has read it already.
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

// untilCertificate returns how long to wait before the certificate is read again, if it is
// valid for the given time: at most until it expires.
func untilCertificate(left time.Duration) time.Duration {
	if left <= 0 { // expired, or there is none
		return certificateInterval
	}
	return min(left, certificateInterval)
}
