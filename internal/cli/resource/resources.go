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
		name: func(c api.Cluster) string { return c.Name }, table: ClusterTable(), Parts: whole,
		narrow: func(parts []string, q *client.Query) { q.Name = parts[0] },
	}
}

// Nodes are nodes.
func Nodes() Kind[api.Node] {
	return Kind[api.Node]{
		Plural: "nodes", Explained: true, singular: "node", form: "CLUSTER/NAME", hint: ", or NAME with -c",
		name: func(n api.Node) string { return n.Cluster + "/" + n.Name }, table: nodeTable(),
		Parts:  func(name string, q *client.Query) []string { return pair(name, &q.Cluster) },
		narrow: func(parts []string, q *client.Query) { q.Cluster, q.Name = parts[0], parts[1] },
	}
}

// Services are services.
func Services() Kind[api.Service] {
	return Kind[api.Service]{
		Plural: "services", Explained: true, singular: "service", others: []string{"svc"}, form: "NAMESPACE/NAME", hint: ", or NAME with -n",
		name: func(s api.Service) string { return s.Namespace + "/" + s.Name }, table: serviceTable(),
		Parts:  func(name string, q *client.Query) []string { return pair(name, &q.Namespace) },
		narrow: func(parts []string, q *client.Query) { q.Namespace, q.Name = parts[0], parts[1] },
	}
}

// ServiceExports are exports of services.
func ServiceExports() Kind[api.ServiceExport] {
	return Kind[api.ServiceExport]{
		Plural: "serviceexports", singular: "serviceexport", form: "CLUSTER/NAMESPACE/NAME", hint: ", or what of it is not given with -c and -n",
		name: exportName, table: ExportTable(time.Since), Parts: exportParts,
		narrow: func(parts []string, q *client.Query) { q.Cluster, q.Namespace, q.Name = parts[0], parts[1], parts[2] },
	}
}

// Identities are identities.
func Identities() Kind[api.Identity] {
	return Kind[api.Identity]{
		Plural: "identities", Explained: true, singular: "identity", form: "ID",
		name: func(i api.Identity) string { return strconv.Itoa(int(i.ID)) }, table: IdentityTable(), Parts: whole,
		narrow: func(parts []string, q *client.Query) { q.Identity = parts[0] },
	}
}

// IPs are addresses.
func IPs() Kind[api.IP] {
	return Kind[api.IP]{
		Plural: "ips", Explained: true, singular: "ip", form: "PREFIX or ADDRESS",
		name: func(i api.IP) string { return i.Prefix }, table: IPTable(), Parts: whole,
		narrow: func(parts []string, q *client.Query) { q.Prefix = parts[0] }, matches: isPrefix,
	}
}

// Conflicts are conflicts.
func Conflicts() Kind[api.Conflict] {
	return Kind[api.Conflict]{
		Plural: "conflicts", singular: "conflict", form: "KIND/SUBJECT", hint: ", such as ip/10.0.0.1/32",
		name: conflictName, table: conflictTable(),
		Parts:  func(name string, _ *client.Query) []string { return pair(name, new(string)) },
		narrow: func(parts []string, q *client.Query) { q.Kind, q.Name = parts[0], parts[1] },
	}
}

// Events are recent events.
func Events() Kind[api.Event] {
	return Kind[api.Event]{
		Plural: "events", singular: "event", form: "ID", fades: true,
		name: func(e api.Event) string { return strconv.FormatUint(e.ID, 10) }, table: eventTable(), Parts: whole,
	}
}

// Health is the health of the modules and tasks.
func Health() Kind[api.Health] {
	return Kind[api.Health]{
		Plural: "health", singular: "health", form: "NAME",
		name: func(h api.Health) string { return h.Name }, table: healthTable(), Parts: whole,
		narrow: func(parts []string, q *client.Query) { q.Name = parts[0] },
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

// whole takes the name as it is.
func whole(name string, _ *client.Query) []string { return []string{name} }

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

// pair splits "A/B". A name without A takes it from the flag, which then is no
// filter any more, and neither is one that says the same. Nil: not such a name.
func pair(name string, flag *string) []string {
	a, b, ok := strings.Cut(name, "/")
	if !ok {
		a, b = *flag, name
	}
	if a == *flag {
		*flag = ""
	}
	if a == "" || b == "" {
		return nil
	}
	return []string{a, b}
}
