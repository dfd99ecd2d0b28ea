package clientfile

import (
	"crypto/x509"
	"fmt"
	"time"
)

// expiresSoon is how long before its end a certificate is warned of.
const expiresSoon = 30 * 24 * time.Hour

// Validity is what the dates of a certificate mean at a moment.
type Validity struct {
	// Invalid: nobody accepts the certificate at that moment; NotYet: since it
	// begins later.
	Invalid, NotYet bool
	// Soon: it is valid, and ends within 30 days.
	Soon bool
	// Days are the whole days until it ends, negative when it has ended.
	Days int
	// Text is what follows the name of the certificate in a sentence.
	Text string
	// Remedy says what to do, empty for one that is valid for long.
	Remedy string
}

// ValidityOf judges the dates of a certificate.
func ValidityOf(cert *x509.Certificate, now time.Time) Validity {
	left := cert.NotAfter.Sub(now)
	v := Validity{Days: int(left.Hours() / 24)}
	end := cert.NotAfter.UTC().Format(time.DateOnly)
	switch {
	case left < 0:
		v.Invalid, v.Text, v.Remedy = true, "expired on "+end, "renew it"
	case now.Before(cert.NotBefore):
		v.Invalid, v.NotYet = true, true
		v.Text, v.Remedy = "is not valid before "+cert.NotBefore.UTC().Format(time.RFC3339), "wait, or set the clock"
	case left < expiresSoon:
		v.Soon, v.Text, v.Remedy = true, fmt.Sprintf("expires on %s, in %d days", end, v.Days), "renew it"
	default:
		v.Text = fmt.Sprintf("is valid until %s, for %d days", end, v.Days)
	}
	return v
}
