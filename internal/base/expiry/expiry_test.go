package expiry

import (
	"testing"
	"time"
)

func TestNotice(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)
	for _, test := range []struct {
		name   string
		until  time.Time
		want   string
		urgent bool
	}{
		{"no end", time.Time{}, "", false},
		{"long before", now.Add(Noticed), "", false},
		{"within 30 days", now.Add(Noticed - 1), "it expires at 2026-12-21T01:02:02Z, or not", false},
		{"7 days", now.Add(Urgent), "it expires at 2026-11-28T01:02:03Z, or not", false},
		{"within 7 days", now.Add(Urgent - 1), "it expires at 2026-11-28T01:02:02Z, or not", true},
		{"at its end", now, "it expires at 2026-11-21T01:02:03Z, or not", true},
		{"after it", now.Add(-1), "it expired at 2026-11-21T01:02:02Z: a new connection fails, or not", true},
		{"of another zone", now.In(time.FixedZone("", 3600)), "it expires at 2026-11-21T01:02:03Z, or not", true},
	} {
		if text, urgent := Notice("it", test.until, now, ", or not"); text != test.want || urgent != test.urgent {
			t.Errorf("%s: %q %v", test.name, text, urgent)
		}
	}
}
