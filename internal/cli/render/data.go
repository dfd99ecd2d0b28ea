package render

import (
	"context"
	"net"
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/text"
	"github.com/Masterminds/sprig/v3"

	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// data provides the data for templates. Only one goroutine may use it.
type data struct {
	ctx    context.Context
	client *client.Client
	zone   string
	used   map[string]bool // resources that a template has requested
	checks *checks
}

// functions returns the functions of templates: ours, and those of sprig that depend only on their arguments. None
// reads a file, the environment or the clock.
func (d *data) functions() template.FuncMap {
	all := sprig.HermeticTxtFuncMap()
	all["clusters"] = func() ([]api.Cluster, error) { return list(d, "clusters", nil, d.checks.state) }
	all["nodes"] = func(filters ...string) ([]api.Node, error) { return list(d, "nodes", filters, d.checks.node) }
	all["services"] = func(filters ...string) ([]api.Service, error) { return list(d, "services", filters, d.checks.service) }
	all["backends"] = d.backends
	all["upstreamName"] = upstreamName
	all["hostsName"] = hostsName
	all["nginxQuote"] = nginxQuote
	all["haproxyQuote"] = haproxyQuote
	return all
}

// list returns all objects of a resource that pass the filters, such as "namespace=shop" or "labels=app=web", and the
// checks.
func list[T any](d *data, plural string, filters []string, passes func(*T) bool) ([]T, error) {
	d.used[plural] = true
	var q client.Query
	for _, f := range filters {
		key, value, _ := strings.Cut(f, "=")
		to := map[string]*string{"cluster": &q.Cluster, "namespace": &q.Namespace, "name": &q.Name, "labels": &q.Labels, "prefix": &q.Prefix}[key]
		if to == nil {
			return nil, usagef("%s: %q is no filter: give cluster=, namespace=, name=, labels= or prefix=", plural, f)
		}
		*to = value
	}
	items, _, err := resource.Collect[T](d.ctx, d.client, plural, q)
	return kept(items, passes), err
}

// Backends are the backends for connections to a port of a service.
type Backends struct {
	Known  bool // whether the service exists
	Groups []Group
	// Now are the backends for new connections: those of the best group that has backends.
	Now []Backend
	// Unconfirmed clusters may have other backends by now.
	Unconfirmed []string
}

// Group is a group of equally good backends. Better groups come first.
type Group struct {
	Use, Side, Near    string
	Backends, Draining []Backend
}

// Backend is a backend of a group.
type Backend struct {
	api.ChosenBackend
	Port    uint16 // the first matching port; 0 for none
	Address string // with the port, if there is one, as in 10.0.0.1:80 or [fd00::1]:80
}

// backends returns the backends of a service, NAMESPACE/NAME, that have the port.
func (d *data) backends(service string, port ...string) (Backends, error) {
	d.used["services"] = true
	namespace, name, ok := strings.Cut(service, "/")
	if !ok || len(port) > 1 {
		return Backends{}, usagef("backends %q: want NAMESPACE/NAME and at most one port", service)
	}
	asked := strings.Join(port, "")
	chosen, err := d.client.Backends(d.ctx, namespace, name, asked, d.zone)
	if resource.IsNotFound(err) {
		return Backends{}, nil
	}
	if err != nil {
		return Backends{}, err
	}
	b := Backends{Known: true, Unconfirmed: kept(chosen.Unconfirmed, func(name *string) bool { return d.checks.cluster(*name) })}
	for _, g := range chosen.Groups {
		group := Group{g.Use, g.Side, g.Near, d.withAddresses(g.Backends, asked), d.withAddresses(g.Draining, asked)}
		if len(group.Backends)+len(group.Draining) == 0 {
			continue // the checks removed all backends
		}
		b.Groups = append(b.Groups, group)
		if b.Now == nil && len(group.Backends) > 0 {
			b.Now = group.Backends
		}
	}
	return b, nil
}

func (d *data) withAddresses(from []api.ChosenBackend, port string) []Backend {
	from = kept(from, func(b *api.ChosenBackend) bool { return d.checks.chosen(b, port) })
	all := make([]Backend, len(from))
	for i, b := range from {
		all[i] = Backend{ChosenBackend: b, Address: b.IP}
		if len(b.Ports) > 0 {
			all[i].Port = b.Ports[0].Port
			all[i].Address = net.JoinHostPort(b.IP, strconv.Itoa(int(all[i].Port)))
		}
	}
	return all
}
