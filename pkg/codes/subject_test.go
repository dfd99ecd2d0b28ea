package codes_test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// placeholder matches a placeholder for a name in a command.
var placeholder = regexp.MustCompile(`'mesh-agent[^']*\b(CLUSTER|NAME|NAMESPACE|ADDRESS)\b|--remote-budget CLUSTER`)

// TestRemediesCanBeFilled: the placeholders in each command of the registry are replaced by names.
func TestRemediesCanBeFilled(t *testing.T) {
	t.Parallel()
	about := codes.Subject{Clusters: []string{"tokyo", "lima"}, Service: "shop/web", Address: "10.0.0.1"}
	found := 0
	for _, e := range codes.All() {
		if placeholder.MatchString(e.Remedy) {
			found++
		}
		if got := about.Fill(e.Remedy); placeholder.MatchString(got) {
			t.Errorf("%s: %s", e.Code, got)
		}
	}
	if found == 0 {
		t.Error("no command has a placeholder, so nothing was tried")
	}
}

func TestFill(t *testing.T) {
	t.Parallel()
	const remedy = "Run 'mesh-agent troubleshoot CLUSTER', or 'mesh-agent describe cluster NAME': CLUSTER is a word."
	for name, test := range map[string]struct {
		subject codes.Subject
		want    string
	}{
		"none":           {codes.Subject{}, remedy},
		"one":            {codes.Cluster("tokyo"), "Run 'mesh-agent troubleshoot tokyo', or 'mesh-agent describe cluster tokyo': CLUSTER is a word."},
		"two":            {codes.Subject{Clusters: []string{"a", "b"}}, "Run 'mesh-agent troubleshoot a b', or 'mesh-agent describe cluster a': CLUSTER is a word."},
		"many":           {codes.Subject{Clusters: strings.Fields("a b c d e f g")}, "Run 'mesh-agent troubleshoot a b c d e', or 'mesh-agent describe cluster a': CLUSTER is a word."},
		"the own":        {codes.Subject{Clusters: []string{"a"}, Own: true}, "Run 'mesh-agent troubleshoot --include-local', or 'mesh-agent describe cluster NAME': CLUSTER is a word."},
		"a hostile name": {codes.Cluster("x;reboot"), remedy},
		"an agent":       {codes.Subject{Clusters: []string{"a"}, ID: 7}, "Run 'mesh-agent troubleshoot a', or 'mesh-agent describe cluster a': CLUSTER is a word."},
		"a flag":         {codes.Cluster("--server=evil"), remedy},
		"one is hostile": {codes.Subject{Clusters: []string{"$(reboot)", "b"}}, "Run 'mesh-agent troubleshoot b', or 'mesh-agent describe cluster b': CLUSTER is a word."},
	} {
		if got := test.subject.Fill(remedy); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestQuote: a shell parses the quoted text as one word that equals the text.
func TestQuote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "/etc/mesh", "a b", "it's", "$(reboot)", "`id`", "a;b", "-n", "*", "=ls", "etcd.config=/a/b", "x=$(id)", "/=x", "a\nb", `\`, "https://10.0.0.1:2379"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s.' "+codes.Quote(text)).Output()
		if err != nil || string(out) != text+"." {
			t.Errorf("%q: %q, %v", text, out, err)
		}
	}
}
