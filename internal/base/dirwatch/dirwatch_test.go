package dirwatch

import (
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestWhatCounts takes a file through these states and checks the state in force. A state that begins with "?" is
// doubted, with "!" refused, and with "-" broken; "" is none.
func TestWhatCounts(t *testing.T) {
	t.Parallel()
	const confirm, grace = 100 * time.Millisecond, 10 * time.Second
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
		"it is broken":                             {{0, "a", "a", 0}, {1, "-", "a", grace}, {1 + confirm, "-", "a", grace - confirm}, {1 + grace, "-", "", 0}},
		"it is broken for a while":                 {{0, "a", "a", 0}, {1, "-", "a", grace}, {1 + confirm, "a", "a", 0}, {2 + grace, "-", "a", grace}},
		"it is broken in another way":              {{0, "a", "a", 0}, {1, "-b", "a", grace}, {11, "-c", "a", grace - 10}},
		"it is broken, and then gone":              {{0, "a", "a", 0}, {1, "-", "a", grace}, {confirm, "", "a", confirm}, {2 * confirm, "", "", 0}},
		"it was always broken":                     {{0, "-", "", 0}},
		"what cannot be judged yet is taken as is": {{0, "!a", "!a", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := New[string]("dir", "directory", nil, slog.New(slog.DiscardHandler))
			d.Confirm, d.Grace = confirm, grace
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
				l, want := Listing[string]{Files: map[string]string{}}, map[string]string{}
				if why, is := strings.CutPrefix(s.found, "-"); is {
					l.Broken = map[string]string{"f": "it is broken" + why}
				} else if s.found != "" {
					l.Files["f"] = s.found
				}
				if s.want != "" {
					want["f"] = s.want
				}
				again := d.merge(l, start.Add(s.at))
				if !maps.Equal(d.known, want) || again != s.again {
					t.Fatalf("step %d: in force %v, again after %v; want %v, %v", i+1, d.known, again, want, s.again)
				}
			}
		})
	}
}

// TestTheSoonestLookComesFirst: a file with a long time left does not delay what becomes of another one.
func TestTheSoonestLookComesFirst(t *testing.T) {
	t.Parallel()
	d := New[string]("dir", "directory", nil, nil)
	now := time.Now()
	d.merge(Listing[string]{Files: map[string]string{"broken": "a", "gone": "b"}}, now)
	broken := Listing[string]{Broken: map[string]string{"broken": "half of it"}}
	if again := d.merge(broken, now); again != d.Confirm {
		t.Errorf("look again after %v", again)
	}
	if again := d.merge(broken, now.Add(d.Confirm)); again != d.Grace-d.Confirm || len(d.known) != 1 {
		t.Errorf("look again after %v, known are %v", again, d.known)
	}
	if is := d.Broken()["broken"]; len(d.Broken()) != 1 || is.Why != "half of it" || !is.Since.Equal(now) || !is.Until.Equal(now.Add(d.Grace)) {
		t.Errorf("%v", d.Broken())
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
