// Package expiry says that a certificate is about to expire: one rule, and one sentence, for every certificate that the
// program uses or sees.
//
// It is pure, and has no state.
package expiry

import "time"

// How long before its end a certificate is noticed, and when there is little time left.
const (
	Noticed = 30 * 24 * time.Hour
	Urgent  = 7 * 24 * time.Hour
)

// Notice returns the sentence about a certificate, and reports whether there is little time left. The text is empty
// if the end is not known (zero time) or far away. The sentence ends with unless, which names a fact that is not
// known.
func Notice(of string, until, now time.Time, unless string) (text string, urgent bool) {
	left, at := until.Sub(now), until.UTC().Format(time.RFC3339)
	switch {
	case until.IsZero(), left >= Noticed:
		return "", false
	case left < 0:
		return of + " expired at " + at + ": a new connection fails" + unless, true
	}
	return of + " expires at " + at + unless, left < Urgent
}
