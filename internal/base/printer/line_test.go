package printer

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestProgress: for a second there is no output, then the present work and its duration. The output of the command
// comes when the progress is removed.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := new(waittest.Output)
		p := startProgress(&Line{out: out, terminal: true, width: 30}, "Checking")
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		pass(900 * time.Millisecond)
		if got := out.String(); got != "" {
			t.Errorf("after less than a second: %q", got)
		}
		pass(200 * time.Millisecond)
		if got, want := out.String(), "\rChecking … 1s\x1b[K"; got != want {
			t.Errorf("after a second: %q, want %q", got, want)
		}
		p.Say("Reading %s", "a\x1b[2J"+strings.Repeat("x", 40))
		pass(time.Second)
		if got, want := out.String(), "\rReading a\\x1b[2J"; !strings.Contains(got, want) || strings.Contains(got, "\x1b[2J") {
			t.Errorf("a text of others: %q, want %q", got, want)
		}
		to := p.Before(out)
		for range 2 {
			if _, err := to.Write([]byte("answer\n")); err != nil {
				t.Error(err)
			}
		}
		before := out.String()
		if want := "…\x1b[K\r\x1b[Kanswer\nanswer\n"; !strings.HasSuffix(before, want) {
			t.Errorf("%q does not end in %q", before, want)
		}
		pass(10 * time.Second)
		p.End()
		if got := out.String(); got != before {
			t.Errorf("after its end: %q", got)
		}
	})
}

// TestNoProgress: a command that is done within a second, and one whose messages go to no terminal.
func TestNoProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		out := new(waittest.Output)
		p := startProgress(&Line{out: out, terminal: true}, "Checking")
		p.End()
		none := StartProgress(out, "Checking")
		if none != nil {
			t.Error("progress off a terminal")
		}
		none.Say("Checking more")
		none.End()
		if got := out.String(); got != "" {
			t.Errorf("%q", got)
		}
	})
}

// TestScreenOffATerminal: texts come below each other, those that are others than the one before.
func TestScreenOffATerminal(t *testing.T) {
	t.Parallel()
	out := new(waittest.Output)
	s := NewScreen(out, func(string) string { return "" }, "---\n")
	for _, text := range []string{"one\n", "one\n", "", "two\n", "one\n"} {
		if _, err := s.Write([]byte(text)); err != nil {
			t.Error(err)
		}
		if err := s.Show(); err != nil {
			t.Error(err)
		}
	}
	_, _ = s.Write([]byte("dropped\n"))
	s.Discard()
	if err := s.Show(); err != nil {
		t.Error(err)
	}
	if got, want := out.String(), "one\n---\ntwo\n---\none\n"; got != want || s.Redraw {
		t.Errorf("%q, want %q", got, want)
	}
	if _, ok := Terminal(s); ok {
		t.Error("it is shown on no terminal")
	}
}
