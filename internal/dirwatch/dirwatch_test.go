package dirwatch

import (
	"log/slog"
	"maps"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// What counts of a file whose state goes through these steps. A state that
// begins with "?" is doubted, with "!" refused, "" is none.
func TestWhatCounts(t *testing.T) {
	t.Parallel()
	const confirm = 100 * time.Millisecond
	type step struct {
		at    time.Duration
		found string
		want  string        // in force afterwards; "" is nothing
		again time.Duration // after how long to look again
	}
	for name, steps := range map[string][]step{
		"a file is new":                            {{0, "a", "a", 0}},
		"a new file is not doubted":                {{0, "?a", "?a", 0}},
		"it changes":                               {{0, "a", "a", 0}, {1, "b", "b", 0}},
		"it is gone":                               {{0, "a", "a", 0}, {1, "", "a", confirm}, {1 + confirm, "", "", 0}},
		"it is gone for a moment":                  {{0, "a", "a", 0}, {1, "", "a", confirm}, {2, "a", "a", 0}, {1 + confirm, "", "a", confirm}},
		"what is doubted counts when it stays":     {{0, "a", "a", 0}, {1, "?b", "a", confirm}, {41, "?b", "a", confirm - 40}, {1 + confirm, "?b", "?b", 0}},
		"and not while it changes":                 {{0, "a", "a", 0}, {1, "?b", "a", confirm}, {1 + confirm, "?c", "a", confirm}, {1 + 2*confirm, "?c", "?c", 0}},
		"gone and doubted are different states":    {{0, "a", "a", 0}, {1, "", "a", confirm}, {1 + confirm, "?b", "a", confirm}},
		"as it was ends the doubt":                 {{0, "a", "a", 0}, {1, "?b", "a", confirm}, {2, "a", "a", 0}, {1 + confirm, "?b", "a", confirm}},
		"what is refused leaves what was":          {{0, "a", "a", 0}, {1, "!b", "a", 0}, {2, "", "a", confirm}},
		"what is refused ends the doubt":           {{0, "a", "a", 0}, {1, "", "a", confirm}, {2, "!b", "a", 0}, {1 + confirm, "", "a", confirm}},
		"what cannot be judged yet is taken as is": {{0, "!a", "!a", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := New[string]("dir", "directory", nil, slog.New(slog.DiscardHandler))
			d.Confirm = confirm
			d.Judge = func(_, found string) Judgement {
				switch found[0] {
				case '?':
					return Wait
				case '!':
					return Keep
				}
				return Take
			}
			start := time.Now()
			for i, s := range steps {
				files, want := map[string]string{}, map[string]string{}
				if s.found != "" {
					files["f"] = s.found
				}
				if s.want != "" {
					want["f"] = s.want
				}
				again := d.merge(files, start.Add(s.at))
				if !maps.Equal(d.known, want) || again != s.again {
					t.Fatalf("step %d: in force %v, again after %v; want %v, %v", i+1, d.known, again, want, s.again)
				}
			}
		})
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
