package clustertext

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Story returns the problem of a cluster, on one line. If the cause is known, it replaces the message; with details,
// the whole message is returned, with its chain of errors.
func Story(c *api.Cluster, now time.Time, details bool) string {
	text := cmp.Or(c.Message, FreshnessText(*c))
	if cause, known := codes.Find(c.Cause); known && !details {
		text = cause.Title
		if len(c.Endpoints) == 1 {
			text += ": " + c.Endpoints[0]
		}
		if as := c.Freshness.Worst.AsOf; as != nil {
			text += fmt.Sprintf("; its data is kept, as of %s ago", printer.Duration(now.Sub(*as)))
		}
	}
	text = explain.Coded(c.Code, Relative(text, now))
	if c.Failures > 0 && c.LastFailure != nil && !c.Connected {
		text += fmt.Sprintf(" (%s, the last %s ago)", printer.Count(c.Failures, "failure"), printer.Duration(now.Sub(*c.LastFailure)))
	}
	return text
}

// Advice collects remedies, each text once, with the names of the clusters that its commands are for.
type Advice struct {
	texts []string
	about map[string]*codes.Subject
}

// Add adds a remedy for a cluster, with placeholders for the cluster's name.
func (a *Advice) Add(text, cluster string) {
	switch {
	case text == "":
		return
	case a.about == nil:
		a.about = make(map[string]*codes.Subject)
	}
	if a.about[text] == nil {
		a.texts = append(a.texts, text)
		a.about[text] = &codes.Subject{}
	}
	a.about[text].Clusters = append(a.about[text].Clusters, cluster)
}

// AddFor adds the remedy of a code. If this program does not have the code, it adds the agent's remedy.
func (a *Advice) AddFor(code, otherwise, cluster string) {
	if e, known := codes.Find(code); known {
		otherwise = e.Remedy
	}
	a.Add(otherwise, cluster)
}

// Texts returns the remedies, in the order in which they were added.
func (a *Advice) Texts() []string {
	filled := make([]string, len(a.texts))
	for i, text := range a.texts {
		filled[i] = a.about[text].Fill(text)
	}
	return filled
}

// Remedies returns the remedies for clusters: first those of the known causes, then those of their consequences.
func Remedies(clusters ...api.Cluster) []string {
	var all Advice
	for _, c := range clusters {
		all.AddFor(c.Cause, "", c.Name)
	}
	for _, c := range clusters {
		if c.Trouble != nil {
			all.AddFor(c.Code, cmp.Or(api.TroubleKind(c.Trouble.Kind).Remedy(), c.Remedy, c.Trouble.Remedy), c.Name)
		}
	}
	return all.Texts()
}

// moments matches the times in messages. Messages contain times instead of durations: with durations, they would
// change every second.
func moments() *regexp.Regexp {
	return regexp.MustCompile(`\b((?:since|at|before) )?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\b(?: \([^()]* ago\))?`)
}

// Relative replaces the times in a message by durations: how long ago they are, or how far in the future.
func Relative(message string, now time.Time) string {
	times := moments()
	return times.ReplaceAllStringFunc(message, func(found string) string {
		parts := times.FindStringSubmatch(found)
		at, err := time.Parse(time.RFC3339, parts[2])
		switch {
		case err != nil:
			return found
		case at.After(now):
			return "in " + printer.Duration(at.Sub(now))
		case parts[1] == "since ":
			return "for " + printer.Duration(now.Sub(at))
		}
		return printer.Duration(now.Sub(at)) + " ago"
	})
}

// ImpactLines returns lines with the services that have backends in clusters whose data is not confirmed as current.
func ImpactLines(l *api.Loss, there string) []string {
	var lines []string
	if l == nil {
		return nil
	}
	if n := l.Only; n.Services > 0 {
		lines = append(lines, fmt.Sprintf("%s only in %s: %s", printer.Counted(n.Services, "service has backends", "services have backends"), there, named(n)))
	}
	if n := l.Partly; n.Services > 0 {
		lines = append(lines, fmt.Sprintf("%s %d of %d backends in %s: %s", printer.Counted(n.Services, "service has", "services have"), n.Backends, n.Of, there, named(n)))
	}
	return lines
}

func named(l api.Losing) string {
	text := strings.Join(l.Names, ", ")
	if rest := l.Services - len(l.Names); rest > 0 {
		text += fmt.Sprintf(" and %d more", rest)
	}
	return text
}
