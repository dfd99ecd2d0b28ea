package logging

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestLinesHaveTheWantedForm(t *testing.T) {
	t.Parallel()
	var text, js bytes.Buffer
	for format, w := range map[string]*bytes.Buffer{"text": &text, "json": &js} {
		log, err := New(w, "info", format)
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
		if _, err := New(&bytes.Buffer{}, c.level, c.format); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%s, %s): %v, want %q", c.level, c.format, err, c.want)
		}
	}
}
