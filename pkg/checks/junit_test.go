package checks

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// TestJUnit reads what was written as somebody else would, from the XML alone.
func TestJUnit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("faulty", "endpoints: []", "x: 1")
	w.file("warned", "endpoints: ['http://c2:1']", "username: a<b&c", "password: geheim")
	w.file("well", "endpoints: ['http://127.0.0.1:1']")
	w.file("README", "nothing")
	w.file("Bad", "endpoints: []")
	r := w.report(time.Now())
	r.Findings = append(r.Findings, codes.WouldRemove.Found("c9 would be removed\x01", ""))
	type results struct {
		XMLName xml.Name `xml:"testsuites"`
		Suite   []struct {
			Name  string `xml:"name,attr"`
			Tests int    `xml:"tests,attr"`
			Fails int    `xml:"failures,attr"`
			Skips int    `xml:"skipped,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Skipped *struct {
					Message string `xml:"message,attr"`
				} `xml:"skipped"`
				Failure *struct {
					Type string `xml:"type,attr"`
					Text string `xml:",chardata"`
				} `xml:"failure"`
				Out string `xml:"system-out"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	for strict, want := range map[bool]map[string]string{
		false: {"the directory": "out", "Bad": "MESH-6001", "README": "skipped", "faulty": "MESH-6004", "warned": "out", "well": "passed"},
		true:  {"the directory": "MESH-6303", "Bad": "MESH-6001", "README": "skipped", "faulty": "MESH-6004", "warned": "MESH-6018", "well": "passed"},
	} {
		var out bytes.Buffer
		if err := r.JUnit(&out, strict); err != nil {
			t.Fatal(err)
		}
		var read results
		if err := xml.Unmarshal(out.Bytes(), &read); err != nil || !strings.HasPrefix(out.String(), xml.Header) || len(read.Suite) != 1 {
			t.Fatalf("%v\n%s", err, out.String())
		}
		got := make(map[string]string)
		fails := 0
		for _, c := range read.Suite[0].Cases {
			switch {
			case c.Failure != nil:
				got[c.Name] = c.Failure.Type
				fails++
				if !strings.Contains(c.Failure.Text, "["+c.Failure.Type+"]") {
					t.Errorf("%+v", c)
				}
			case c.Skipped != nil:
				got[c.Name] = "skipped"
			case c.Out != "":
				got[c.Name] = "out"
			default:
				got[c.Name] = "passed"
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("strict %t: %s\n%s", strict, d, out.String())
		}
		if s := read.Suite[0]; s.Tests != len(want) || s.Fails != fails || s.Skips != 1 || !strings.Contains(s.Name, w.dir) {
			t.Errorf("%+v", s)
		}
		if !strings.Contains(out.String(), "a&lt;b&amp;c") || strings.Contains(out.String(), "geheim") {
			t.Error(out.String())
		}
	}
}
