package clientfile

import (
	"crypto/x509"
	"testing"
	"time"
)

func TestValidity(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		from, to time.Duration
		want     Validity
	}{
		"valid for long": {-day, 40*day + time.Hour, Validity{Days: 40, Text: "is valid until 2026-12-31, for 40 days"}},
		"about to end":   {-day, 29*day + time.Hour, Validity{Soon: true, Days: 29, Text: "expires on 2026-12-20, in 29 days", Remedy: "renew it"}},
		"ended":          {-9 * day, -2 * day, Validity{Invalid: true, Days: -2, Text: "expired on 2026-11-19", Remedy: "renew it"}},
		"not yet": {
			time.Hour, 90 * day,
			Validity{Invalid: true, NotYet: true, Days: 90, Text: "is not valid before 2026-11-21T13:00:00Z", Remedy: "wait, or set the clock"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cert := &x509.Certificate{NotBefore: now.Add(c.from), NotAfter: now.Add(c.to)}
			if got := ValidityOf(cert, now); got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}
