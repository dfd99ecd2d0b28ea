package resource

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ClusterTable returns the table of clusters.
func ClusterTable() printer.Table[api.Cluster] {
	number := func(title string, of func(api.Cluster) int) printer.Column[api.Cluster] {
		return printer.Column[api.Cluster]{Title: title, Right: true, Text: func(c api.Cluster) string { return strconv.Itoa(of(c)) }}
	}
	return printer.Table[api.Cluster]{
		{Title: "CLUSTER", Text: func(c api.Cluster) string { return c.Name }},
		{Title: "STATE", Text: func(c api.Cluster) string { return c.State }, Color: clustertext.ClusterColor},
		{Title: "ID", Right: true, Text: func(c api.Cluster) string { return printer.Number(c.ID) }},
		number("NODES", func(c api.Cluster) int { return c.Counts.Nodes }),
		number("SERVICES", func(c api.Cluster) int { return c.Counts.Services }),
		number("IDENTITIES", func(c api.Cluster) int { return c.Counts.Identities }),
		number("ADDRESSES", func(c api.Cluster) int { return c.Counts.IPs }),
		{Title: "FRESHNESS", Text: clustertext.FreshnessText, Color: func(c api.Cluster) printer.Color { return printer.WellColor(c.Fresh()) }},
		{Title: "REFUSED", Right: true, Wide: true, Text: func(c api.Cluster) string { return strconv.Itoa(clustertext.Sum(c.Rejected)) }},
		{Title: "FAILURES", Right: true, Wide: true, Text: func(c api.Cluster) string { return strconv.Itoa(c.Failures) }},
		{Title: "HEARTBEAT", Wide: true, Text: func(c api.Cluster) string { return clustertext.HeartbeatText(c.HeartbeatAgeSeconds) }},
		{Title: "CONNECTED", Wide: true, Text: func(c api.Cluster) string { return printer.Ago(c.ConnectedSince) }},
		{Title: "ENDPOINTS", Wide: true, Text: func(c api.Cluster) string { return strings.Join(c.Endpoints, ",") }},
		{Title: "CERTIFICATES", Wide: true, Text: clustertext.FirstEnd},
		{Title: "ETCD", Wide: true, Text: func(c api.Cluster) string { return cmp.Or(c.EtcdVersion, "-") }},
		{Title: "CODE", Wide: true, Text: func(c api.Cluster) string { return c.Code }},
		{Title: "MESSAGE", Wide: true, Text: func(c api.Cluster) string { return c.Message }},
	}
}

// nodeAddress returns the first internal address, or the first one when there is none.
func nodeAddress(n api.Node) string {
	for _, a := range n.Addresses {
		if a.Type == "InternalIP" {
			return a.IP
		}
	}
	if len(n.Addresses) > 0 {
		return n.Addresses[0].IP
	}
	return ""
}

// IdentityTable returns the table of identities.
func IdentityTable() printer.Table[api.Identity] {
	return printer.Table[api.Identity]{
		{Title: "ID", Right: true, Text: func(i api.Identity) string { return strconv.Itoa(int(i.ID)) }},
		{Title: "CLUSTER", Text: func(i api.Identity) string { return i.Cluster }},
		{Title: "LABELS", Text: func(i api.Identity) string { return printer.Labels(i.Labels) }},
	}
}

// IPTable returns the table of addresses.
func IPTable() printer.Table[api.IP] {
	return printer.Table[api.IP]{
		{Title: "PREFIX", Text: func(i api.IP) string { return i.Prefix }},
		{Title: "CLUSTER", Text: func(i api.IP) string { return i.Cluster }},
		{Title: "IDENTITY", Right: true, Text: func(i api.IP) string { return strconv.Itoa(int(i.Identity)) }},
		{Title: "KIND", Text: func(i api.IP) string { return i.Kind }},
		{Title: "HOST", Text: func(i api.IP) string { return i.HostIP }},
		{Title: "POD", Text: Pod},
		{Title: "KEY", Right: true, Wide: true, Text: func(i api.IP) string { return printer.Number(uint32(i.EncryptionKey)) }},
		{Title: "CLAIMS", Right: true, Wide: true, Text: func(i api.IP) string { return strconv.Itoa(i.Claims) }},
		{Title: "SOURCE", Wide: true, Text: func(i api.IP) string { return i.Source }},
	}
}

// Pod returns the name of an address's pod; empty for none.
func Pod(i api.IP) string {
	if i.Pod == "" {
		return ""
	}
	return i.Namespace + "/" + i.Pod
}

// ExportTable returns the table of exports, with their age.
func ExportTable(since func(time.Time) time.Duration) printer.Table[api.ServiceExport] {
	return printer.Table[api.ServiceExport]{
		{Title: "NAMESPACE", Text: func(e api.ServiceExport) string { return e.Namespace }},
		{Title: "NAME", Text: func(e api.ServiceExport) string { return e.Name }},
		{Title: "CLUSTER", Text: func(e api.ServiceExport) string { return e.Cluster }},
		{Title: "TYPE", Text: func(e api.ServiceExport) string { return e.Type }},
		{Title: "SESSION AFFINITY", Text: SessionAffinityText},
		{Title: "PORTS", Text: func(e api.ServiceExport) string { return PortTexts(e.Ports) }},
		{Title: "AGE", Right: true, Text: func(e api.ServiceExport) string { return printer.Duration(since(e.Created)) }},
	}
}

// SessionAffinityText returns the session affinity with its timeout.
func SessionAffinityText(e api.ServiceExport) string {
	if e.SessionAffinity != wire.SessionAffinityClientIP {
		return e.SessionAffinity
	}
	return e.SessionAffinity + " " + strconv.Itoa(e.SessionAffinityTimeoutSeconds) + "s"
}

// PortTexts returns ports as http=80/TCP, separated by commas.
func PortTexts(ports []api.Port) string {
	return printer.Join(ports, ",", func(port api.Port) string {
		text := strconv.Itoa(int(port.Port)) + "/" + port.Protocol
		if port.Name != "" {
			text = port.Name + "=" + text
		}
		return text
	})
}

// All returns all kinds of objects.
func All() []Resource {
	return []Resource{Clusters(), Nodes(), Services(), ServiceExports(), Identities(), IPs(), Conflicts(), Events(), Health()}
}

// Clusters returns the kind of remote clusters.
func Clusters() Kind[api.Cluster] {
	return Kind[api.Cluster]{
		Plural: "clusters", singular: "cluster", form: "CLUSTER",
		name: func(c api.Cluster) string { return c.Name }, table: ClusterTable(), fields: onlyName,
	}
}

// Nodes returns the kind of nodes.
func Nodes() Kind[api.Node] {
	return Kind[api.Node]{
		Plural: "nodes", Explained: true, singular: "node", form: "CLUSTER/NAME", hint: ", or NAME with -c",
		name: func(n api.Node) string { return n.Cluster + "/" + n.Name },
		table: printer.Table[api.Node]{
			{Title: "CLUSTER", Text: func(n api.Node) string { return n.Cluster }},
			{Title: "NAME", Text: func(n api.Node) string { return n.Name }},
			{Title: "ADDRESS", Text: nodeAddress},
			{Title: "POD CIDRS", Text: func(n api.Node) string { return strings.Join(n.PodCIDRs, ",") }},
			{Title: "KEY", Right: true, Text: func(n api.Node) string { return printer.Number(uint32(n.EncryptionKey)) }},
			{Title: "ADDRESSES", Wide: true, Text: func(n api.Node) string {
				return printer.Join(n.Addresses, ",", func(a api.NodeAddress) string { return a.Type + "=" + a.IP })
			}},
			{Title: "HEALTH", Wide: true, Text: func(n api.Node) string { return strings.Join(n.HealthIPs, ",") }},
			{Title: "INGRESS", Wide: true, Text: func(n api.Node) string { return strings.Join(n.IngressIPs, ",") }},
		},
		fields: func(q *client.Query) []*string { return []*string{&q.Cluster, &q.Name} },
	}
}

// Services returns the kind of services.
func Services() Kind[api.Service] {
	return Kind[api.Service]{
		Plural: "services", Explained: true, singular: "service", others: []string{"svc"}, form: "NAMESPACE/NAME", hint: ", or NAME with -n",
		name: func(s api.Service) string { return s.Namespace + "/" + s.Name },
		table: printer.Table[api.Service]{
			{Title: "NAMESPACE", Text: func(s api.Service) string { return s.Namespace }},
			{Title: "NAME", Text: func(s api.Service) string { return s.Name }},
			{Title: "GLOBAL", Text: func(s api.Service) string { return printer.YesNo(s.Global) }},
			{Title: "BACKENDS", Right: true, Text: func(s api.Service) string { return strconv.Itoa(len(s.Backends)) }},
			{Title: "CLUSTERS", Text: func(s api.Service) string {
				return strings.Join(slices.SortedFunc(slices.Values(printer.Texts(s.Clusters, func(c api.ServiceCluster) string { return c.Cluster })), natural.Compare), ",")
			}},
			{Title: "AFFINITY", Wide: true, Text: func(s api.Service) string { return s.Affinity }},
			{Title: "ADDRESSES", Wide: true, Text: func(s api.Service) string {
				return printer.Join(s.Backends, ",", func(b api.Backend) string { return b.Cluster + "=" + b.IP })
			}},
		},
		fields: func(q *client.Query) []*string { return []*string{&q.Namespace, &q.Name} },
	}
}

// ServiceExports returns the kind of exported services.
func ServiceExports() Kind[api.ServiceExport] {
	return Kind[api.ServiceExport]{
		Plural: "serviceexports", singular: "serviceexport", form: "CLUSTER/NAMESPACE/NAME", hint: ", or only the parts that -c and -n do not set",
		name: func(e api.ServiceExport) string { return e.Cluster + "/" + e.Namespace + "/" + e.Name }, table: ExportTable(time.Since),
		fields: func(q *client.Query) []*string { return []*string{&q.Cluster, &q.Namespace, &q.Name} },
	}
}

// Identities returns the kind of identities.
func Identities() Kind[api.Identity] {
	return Kind[api.Identity]{
		Plural: "identities", Explained: true, singular: "identity", form: "ID",
		name: func(i api.Identity) string { return strconv.Itoa(int(i.ID)) }, table: IdentityTable(),
		fields: func(q *client.Query) []*string { return []*string{&q.Identity} },
	}
}

// IPs returns the kind of addresses.
func IPs() Kind[api.IP] {
	return Kind[api.IP]{
		Plural: "ips", Explained: true, singular: "ip", others: []string{"address", "addresses"}, form: "PREFIX or ADDRESS",
		name: func(i api.IP) string { return i.Prefix }, table: IPTable(), matches: isPrefix, ordered: true,
		fields: func(q *client.Query) []*string { return []*string{&q.Prefix} },
	}
}

// Help returns the kinds with the forms of their names.
func Help() string {
	var b strings.Builder
	for _, kind := range All() {
		fmt.Fprintf(&b, "  %-16s%s\n", kind.names()[0], kind.help())
	}
	return b.String()
}

func onlyName(q *client.Query) []*string { return []*string{&q.Name} }

// isPrefix reports whether a prefix, or an address, is exactly the prefix of the claim.
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
