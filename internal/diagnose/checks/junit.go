package checks

import (
	"encoding/xml"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// The format for programs that collect test results: one suite for the directory, with one case for each entry and
// one for the directory as a whole.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Skipped *junitOutcome `xml:"skipped"`
		Failure *junitOutcome `xml:"failure"`
		Out     string        `xml:"system-out,omitempty"`
	}
	junitOutcome struct {
		Message string     `xml:"message,attr"`
		Type    codes.Code `xml:"type,attr,omitempty"` // of a failure, the code of the worst finding
		Text    string     `xml:",chardata"`
	}
)

// JUnit writes the report as test results. Errors are failures, and with strict warnings too; the other findings are
// in system-out.
func (r *Report) JUnit(w io.Writer, strict bool) error {
	suite := junitSuite{Name: "mesh-agent config check " + r.Directory}
	suite.add(junitCase{Name: "the directory"}, r.Findings, strict)
	for _, f := range r.Files {
		c := junitCase{Name: filepath.Base(f.File)}
		if f.Verdict == WouldIgnore && !fails(f.Findings, strict) {
			c.Skipped = &junitOutcome{Message: f.Reason}
		}
		suite.add(c, f.Findings, strict)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Suites: []junitSuite{suite}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(c junitCase, findings []codes.Finding, strict bool) {
	c.Class = "config-check"
	var failures []codes.Finding
	var out []string
	for _, f := range findings {
		if isFailure(f, strict) {
			failures = append(failures, f)
		} else {
			out = append(out, lines(f))
		}
	}
	// The worst one comes first.
	slices.SortStableFunc(failures, func(a, b codes.Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	if len(failures) > 0 {
		c.Failure = &junitOutcome{Message: failures[0].String(), Type: failures[0].Code, Text: printer.Join(failures, "\n", lines)}
		s.Failures++
	}
	if c.Skipped != nil {
		s.Skipped++
	}
	c.Out = strings.Join(out, "\n")
	s.Tests++
	s.Cases = append(s.Cases, c)
}

func lines(f codes.Finding) string {
	return string(f.Severity) + ": " + f.String() + "\n  " + f.Remedy
}
