package resource

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// All are all kinds of objects.
func All() []Resource {
	return []Resource{Clusters(), Nodes(), Services(), ServiceExports(), Identities(), IPs(), Conflicts(), Events(), Health()}
}

// Clusters are remote clusters.
func Clusters() Kind[api.Cluster] {
	return Kind[api.Cluster]{
		Plural: "clusters", singular: "cluster", form: "CLUSTER",
		name: func(c api.Cluster) string { return c.Name }, table: ClusterTable(), fields: onlyName,
	}
}

// Nodes are nodes.
func Nodes() Kind[api.Node] {
	return Kind[api.Node]{
		Plural: "nodes", Explained: true, singular: "node", form: "CLUSTER/NAME", hint: ", or NAME with -c",
		name: func(n api.Node) string { return n.Cluster + "/" + n.Name }, table: nodeTable(),
		fields: func(q *client.Query) []*string { return []*string{&q.Cluster, &q.Name} },
	}
}

// Services are services.
func Services() Kind[api.Service] {
	return Kind[api.Service]{
		Plural: "services", Explained: true, singular: "service", others: []string{"svc"}, form: "NAMESPACE/NAME", hint: ", or NAME with -n",
		name: func(s api.Service) string { return s.Namespace + "/" + s.Name }, table: serviceTable(),
		fields: func(q *client.Query) []*string { return []*string{&q.Namespace, &q.Name} },
	}
}

// ServiceExports are exports of services.
func ServiceExports() Kind[api.ServiceExport] {
	return Kind[api.ServiceExport]{
		Plural: "serviceexports", singular: "serviceexport", form: "CLUSTER/NAMESPACE/NAME", hint: ", or what of it is not given with -c and -n",
		name: func(e api.ServiceExport) string { return e.Cluster + "/" + e.Namespace + "/" + e.Name }, table: ExportTable(time.Since),
		fields: func(q *client.Query) []*string { return []*string{&q.Cluster, &q.Namespace, &q.Name} },
	}
}

// Identities are identities.
func Identities() Kind[api.Identity] {
	return Kind[api.Identity]{
		Plural: "identities", Explained: true, singular: "identity", form: "ID",
		name: func(i api.Identity) string { return strconv.Itoa(int(i.ID)) }, table: IdentityTable(),
		fields: func(q *client.Query) []*string { return []*string{&q.Identity} },
	}
}

// IPs are addresses.
func IPs() Kind[api.IP] {
	return Kind[api.IP]{
		Plural: "ips", Explained: true, singular: "ip", form: "PREFIX or ADDRESS",
		name: func(i api.IP) string { return i.Prefix }, table: IPTable(), matches: isPrefix,
		fields: func(q *client.Query) []*string { return []*string{&q.Prefix} },
	}
}

// Conflicts are conflicts.
func Conflicts() Kind[api.Conflict] {
	return Kind[api.Conflict]{
		Plural: "conflicts", singular: "conflict", form: "KIND/SUBJECT", hint: ", such as ip/10.0.0.1/32",
		name: func(c api.Conflict) string { return c.Kind + "/" + c.Subject }, table: conflictTable(),
		fields: func(q *client.Query) []*string { return []*string{&q.Kind, &q.Name} },
	}
}

// Events are recent events.
func Events() Kind[api.Event] {
	return Kind[api.Event]{
		Plural: "events", singular: "event", form: "ID", fades: true,
		name: func(e api.Event) string { return strconv.FormatUint(e.ID, 10) }, table: eventTable(),
	}
}

// Health is the health of the modules and tasks.
func Health() Kind[api.Health] {
	return Kind[api.Health]{
		Plural: "health", singular: "health", form: "NAME",
		name: func(h api.Health) string { return h.Name }, table: healthTable(), fields: onlyName,
	}
}

// Help lists the kinds with the forms of their names.
func Help() string {
	var b strings.Builder
	for _, kind := range All() {
		fmt.Fprintf(&b, "  %-16s%s\n", kind.names()[0], kind.help())
	}
	return b.String()
}

func onlyName(q *client.Query) []*string { return []*string{&q.Name} }

// isPrefix tells whether a prefix, or an address, is exactly that of the claim.
func isPrefix(name string, i api.IP) bool {
	p, err := netip.ParsePrefix(name)
	if a, none := netip.ParseAddr(name); none == nil {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if a := p.Addr(); a.Is4In6() {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-(a.BitLen()-a.Unmap().BitLen()))
	}
	return err == nil && p.Masked().String() == i.Prefix
}
