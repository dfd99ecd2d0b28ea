package monitoring

import (
	"fmt"
	"strings"
	"unicode"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Severity says how soon an operator has to look.
type Severity string

// The severities.
const (
	Critical Severity = "critical" // now: traffic goes wrong, or will soon
	Warning  Severity = "warning"  // within the day
)

// Alert is a condition that an operator has to look at.
type Alert struct {
	Name     string
	Severity Severity
	Code     codes.Code // of what to do
	For      string     // how long it has to last
	Expr     string
	// Summary and Description are templates of Prometheus.
	Summary, Description string
}

// Group is alerts that are evaluated together.
type Group struct {
	Name   string
	Alerts []Alert
}

// Alerts are all of them.
func Alerts() []Group {
	return []Group{
		{"mesh-agent-clusters", append(connectionAlerts(), policyAlerts()...)},
		{"mesh-agent-entries", append(entryAlerts(), conflictAlerts()...)},
		{"mesh-agent-processes", append(processAlerts(), writerAlerts()...)},
		{"mesh-agent-clients", append(clientAlerts(), listenerAlerts()...)},
	}
}

const (
	project = "https://github.com/mesh-agent/mesh-agent"
	page    = "codes.md" // in docs
)

// Runbooks is where docs/codes.md is read.
const Runbooks = project + "/blob/main/docs/" + page

// Runbook is the address of what to do about a code.
func Runbook(code codes.Code) string {
	e, _ := codes.Find(string(code))
	return Runbooks + "#" + anchor(fmt.Sprintf("%s: %s", e.Code, e.Title))
}

// anchor is that of a heading, as GitHub makes it.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// rule is an alert in the file.
type rule struct {
	Alert       string            `json:"alert"`
	Annotations map[string]string `json:"annotations"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rules struct {
	Groups []group `json:"groups"`
}

func makeRules() (all rules) {
	for _, g := range Alerts() {
		made := group{Name: g.Name}
		for _, a := range g.Alerts {
			made.Rules = append(made.Rules, rule{
				Alert: a.Name, Expr: a.Expr, For: a.For,
				Annotations: map[string]string{"summary": a.Summary, "description": a.Description, "runbook_url": Runbook(a.Code)},
				Labels:      map[string]string{"severity": string(a.Severity), "code": string(a.Code)},
			})
		}
		all.Groups = append(all.Groups, made)
	}
	return all
}

const written = "# Written by go test ./tools/monitoring -update. docs/monitoring.md says how to install it.\n"

// Rules is the file of rules for Prometheus.
func Rules() ([]byte, error) {
	text, err := yaml.Marshal(makeRules())
	return append([]byte(written), text...), err
}

// Resource is the same as an object of the Prometheus operator.
func Resource() ([]byte, error) {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": map[string]any{"name": "mesh-agent", "labels": map[string]string{"app.kubernetes.io/name": "mesh-agent"}},
		"spec":     makeRules(),
	})
	return append([]byte(written), text...), err
}
