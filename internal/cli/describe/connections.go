package describe

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// connections are the zone of a client, and the port that it connects to.
type connections struct{ zone, port string }

func (c connections) asked() bool { return c != connections{} }

// check refuses them for kinds other than services.
func (c connections) check(of subject) error {
	if c.asked() && !of.Is("services") {
		return exit.Usagef("--from and --port are for services: connections go to nothing else")
	}
	return nil
}

// connectionRow is a backend that receives connections, with its group.
type connectionRow struct {
	order   int
	group   *api.BackendGroup
	backend *api.ChosenBackend
	state   string
}

func pageConnections(p *printer.Page, s *api.ServiceBackends) {
	title := "Connections"
	if s.Zone != "" {
		title += " from zone " + s.Zone
	}
	if s.Port != "" {
		title += " to port " + s.Port
	}
	var rows []connectionRow
	for i := range s.Groups {
		g := &s.Groups[i]
		for j := range g.Backends {
			rows = append(rows, connectionRow{i + 1, g, &g.Backends[j], "takes connections"})
		}
		for j := range g.Draining {
			rows = append(rows, connectionRow{i + 1, g, &g.Draining[j], "draining"})
		}
	}
	p.Section("%s", title)
	if len(rows) == 0 {
		p.Line("%s", noConnections(s))
		return
	}
	printer.Rows(p, printer.Table[connectionRow]{
		{Title: "GROUP", Text: func(r connectionRow) string { return fmt.Sprint(r.order) }},
		{Title: "WHY", Text: func(r connectionRow) string { return groupText(r.group) }},
		{Title: "CLUSTER", Text: func(r connectionRow) string { return r.backend.Cluster }},
		{Title: "ADDRESS", Text: func(r connectionRow) string { return r.backend.IP }},
		{Title: "PORTS", Text: func(r connectionRow) string { return resource.PortTexts(r.backend.Ports) }},
		{Title: "ZONE", Text: func(r connectionRow) string { return r.backend.Zone }},
		{Title: "STATE", Text: func(r connectionRow) string { return r.state }},
	}, rows)
	if len(s.Groups) > 1 {
		p.Line("New connections go to the first group that has a backend which is not draining.")
	}
	if len(s.Unconfirmed) > 0 {
		p.Line("There may be other backends in %s by now: the data of these clusters is not confirmed.", strings.Join(s.Unconfirmed, ", "))
	}
}

func noConnections(s *api.ServiceBackends) string {
	if s.Port != "" {
		return fmt.Sprintf("None: no backend that is ready or serving has a port %s.", s.Port)
	}
	return "None: no backend is ready or serving."
}

// groupText returns the properties of a group.
func groupText(g *api.BackendGroup) string {
	var all []string
	if g.Use != "full" {
		all = append(all, g.Use)
	}
	if g.Side != "any" {
		all = append(all, g.Side)
	}
	if g.Near != "anywhere" {
		all = append(all, "same "+g.Near)
	}
	return cmp.Or(strings.Join(all, ", "), "all alike")
}
