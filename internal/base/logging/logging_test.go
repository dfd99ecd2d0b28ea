package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestLinesHaveTheWantedForm(t *testing.T) {
	t.Parallel()
	var text, js bytes.Buffer
	for format, w := range map[string]*bytes.Buffer{"text": &text, "json": &js} {
		log, _, err := New(w, "info", format)
		if err != nil {
			t.Fatal(err)
		}
		log.With("cluster", "c1").Info("Connected", "endpoint", "https://x:2379")
		log.Debug("not shown")
	}
	if got := text.String(); !strings.Contains(got, `level=info msg=Connected cluster=c1 endpoint="https://x:2379"`) || strings.Contains(got, "not shown") {
		t.Errorf("text line: %s", got)
	}
	var line map[string]any
	if err := json.Unmarshal(js.Bytes(), &line); err != nil || line["msg"] != "Connected" || line["cluster"] != "c1" || line["level"] != "info" {
		t.Errorf("JSON line: %s (%v)", js.String(), err)
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ level, format, want string }{
		{"loud", "text", `log level "loud" is unknown`},
		{"trace", "text", `log level "trace" is unknown`},
		{"info", "xml", `log format "xml" is unknown`},
	} {
		if _, _, err := New(&bytes.Buffer{}, c.level, c.format); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%s, %s): %v, want %q", c.level, c.format, err, c.want)
		}
		if (CheckLevel(c.level) == nil) == (CheckFormat(c.format) == nil) {
			t.Errorf("both or none of %s and %s is right", c.level, c.format)
		}
	}
}

// TestEveryLineIsWhole writes what would break a line, from many goroutines.
func TestEveryLineIsWhole(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log, _, err := New(&b, "debug", "json")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				log.With("cluster", i).Debug("two\nlines and \"quotes\"", "error", errors.New("bad\nvalue \xff"), "took", time.Second)
			}
		})
	}
	all.Wait()
	lines := 0
	for line := range strings.Lines(b.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["msg"] != "two\nlines and \"quotes\"" {
			t.Fatalf("%v: %s", err, line)
		}
		lines++
	}
	if lines != 400 {
		t.Errorf("%d lines", lines)
	}
}

func TestTheLevelCanBeChanged(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	log, level, err := New(&b, "info", "text")
	if err != nil {
		t.Fatal(err)
	}
	derived := log.With("module", "x")
	for _, name := range Levels() {
		if err := level.Set(name); err != nil || level.Get() != name {
			t.Errorf("set %s: %v, %s", name, err, level.Get())
		}
		b.Reset()
		derived.Debug("hello")
		if shown := b.Len() > 0; shown != (name == "debug") {
			t.Errorf("at %s: %q", name, b.String())
		}
	}
	if err := level.Set("WARNING"); err != nil || level.Get() != "warn" {
		t.Errorf("another spelling: %v, %s", err, level.Get())
	}
	if err := level.Set("loud"); err == nil || level.Get() != "warn" {
		t.Errorf("an unknown name: %v, %s", err, level.Get())
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
