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

// Notice is the sentence about a certificate, and whether there is little time left. Without an end, which is the zero
// time, or long before it, the text is empty. The end of the sentence says what is not known.
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
