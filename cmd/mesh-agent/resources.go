package main

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// resources describes everything that get and describe can show.
func resources() []kind {
	return []kind{
		resource[api.Cluster]{
			plural: "clusters", singular: "cluster", form: "CLUSTER",
			name: func(c api.Cluster) string { return c.Name }, table: clusterTable(), parts: whole, describe: describeCluster,
			narrow: func(parts []string, q *client.Query) { q.Name = parts[0] },
		},
		resource[api.Node]{
			plural: "nodes", explained: true, singular: "node", form: "CLUSTER/NAME",
			name: func(n api.Node) string { return n.Cluster + "/" + n.Name }, table: nodeTable(), describe: describeNode,
			parts:  func(name string, q *client.Query) []string { return pair(name, &q.Cluster) },
			narrow: func(parts []string, q *client.Query) { q.Cluster, q.Name = parts[0], parts[1] },
		},
		resource[api.Service]{
			plural: "services", explained: true, singular: "service", others: []string{"svc"}, form: "NAMESPACE/NAME",
			name: func(s api.Service) string { return s.Namespace + "/" + s.Name }, table: serviceTable(), describe: describeService,
			parts:  func(name string, q *client.Query) []string { return pair(name, &q.Namespace) },
			narrow: func(parts []string, q *client.Query) { q.Namespace, q.Name = parts[0], parts[1] },
		},
		resource[api.ServiceExport]{
			plural: "serviceexports", singular: "serviceexport", form: "CLUSTER/NAMESPACE/NAME",
			name: exportName, table: exportTable(time.Since), parts: exportParts, describe: describeExport,
			narrow: func(parts []string, q *client.Query) { q.Cluster, q.Namespace, q.Name = parts[0], parts[1], parts[2] },
		},
		resource[api.Identity]{
			plural: "identities", explained: true, singular: "identity", form: "ID",
			name: func(i api.Identity) string { return strconv.Itoa(int(i.ID)) }, table: identityTable(), parts: whole, describe: describeIdentity,
			narrow: func(parts []string, q *client.Query) { q.Identity = parts[0] },
		},
		resource[api.IP]{
			plural: "ips", explained: true, singular: "ip", form: "PREFIX or ADDRESS",
			name: func(i api.IP) string { return i.Prefix }, table: ipTable(), parts: whole, describe: describeIP,
			narrow: func(parts []string, q *client.Query) { q.Prefix = parts[0] }, is: isPrefix,
		},
		resource[api.Conflict]{
			plural: "conflicts", singular: "conflict", form: "KIND/SUBJECT",
			name: conflictName, table: conflictTable(), describe: describeConflict,
			parts:  func(name string, _ *client.Query) []string { return pair(name, new(string)) },
			narrow: func(parts []string, q *client.Query) { q.Kind, q.Name = parts[0], parts[1] },
		},
		resource[api.Event]{
			plural: "events", singular: "event", form: "ID", fades: true,
			name: func(e api.Event) string { return strconv.FormatUint(e.ID, 10) }, table: eventTable(), parts: whole, describe: describeEvent,
		},
		resource[api.Health]{
			plural: "health", singular: "health", form: "NAME",
			name: func(h api.Health) string { return h.Name }, table: healthTable(), parts: whole, describe: describeHealth,
			narrow: func(parts []string, q *client.Query) { q.Name = parts[0] },
		},
	}
}

func resourceHelp() string {
	var b strings.Builder
	for _, line := range [][2]string{
		{"clusters", "CLUSTER"},
		{"nodes", "CLUSTER/NAME, or NAME with -c"},
		{"services", "NAMESPACE/NAME, or NAME with -n"},
		{"serviceexports", "CLUSTER/NAMESPACE/NAME, or what of it is not given with -c and -n"},
		{"identities", "ID"},
		{"ips", "PREFIX or ADDRESS"},
		{"conflicts", "KIND/SUBJECT, such as ip/10.0.0.1/32"},
		{"events", "ID"},
		{"health", "NAME"},
	} {
		fmt.Fprintf(&b, "  %-16s%s\n", line[0], line[1])
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

func clusterTable() printer.Table[api.Cluster] {
	number := func(title string, of func(api.Cluster) int) printer.Column[api.Cluster] {
		return printer.Column[api.Cluster]{Title: title, Right: true, Text: func(c api.Cluster) string { return strconv.Itoa(of(c)) }}
	}
	return printer.Table[api.Cluster]{
		{Title: "CLUSTER", Text: func(c api.Cluster) string { return c.Name }},
		{Title: "STATE", Text: func(c api.Cluster) string { return c.State }, Color: clusterColor},
		{Title: "ID", Right: true, Text: func(c api.Cluster) string { return idText(c.ID) }},
		number("NODES", func(c api.Cluster) int { return c.Counts.Nodes }),
		number("SERVICES", func(c api.Cluster) int { return c.Counts.Services }),
		number("IDENTITIES", func(c api.Cluster) int { return c.Counts.Identities }),
		number("IPS", func(c api.Cluster) int { return c.Counts.IPs }),
		{Title: "FRESHNESS", Text: freshnessText, Color: func(c api.Cluster) printer.Color { return wellColor(c.Fresh()) }},
		{Title: "REJECTED", Right: true, Wide: true, Text: func(c api.Cluster) string { return strconv.Itoa(sum(c.Rejected)) }},
		{Title: "FAILURES", Right: true, Wide: true, Text: func(c api.Cluster) string { return strconv.Itoa(c.Failures) }},
		{Title: "HEARTBEAT", Wide: true, Text: func(c api.Cluster) string { return heartbeatText(c.HeartbeatAgeSeconds) }},
		{Title: "CONNECTED", Wide: true, Text: func(c api.Cluster) string { return ago(c.ConnectedSince) }},
		{Title: "ENDPOINTS", Wide: true, Text: func(c api.Cluster) string { return strings.Join(c.Endpoints, ",") }},
		{Title: "CODE", Wide: true, Text: func(c api.Cluster) string { return c.Code }},
		{Title: "MESSAGE", Wide: true, Text: func(c api.Cluster) string { return c.Message }},
	}
}

func nodeTable() printer.Table[api.Node] {
	return printer.Table[api.Node]{
		{Title: "CLUSTER", Text: func(n api.Node) string { return n.Cluster }},
		{Title: "NAME", Text: func(n api.Node) string { return n.Name }},
		{Title: "ADDRESS", Text: nodeAddress},
		{Title: "POD CIDRS", Text: func(n api.Node) string { return strings.Join(n.PodCIDRs, ",") }},
		{Title: "KEY", Right: true, Text: func(n api.Node) string { return idText(uint32(n.EncryptionKey)) }},
		{Title: "ADDRESSES", Wide: true, Text: func(n api.Node) string {
			texts := make([]string, len(n.Addresses))
			for i, a := range n.Addresses {
				texts[i] = a.Type + "=" + a.IP
			}
			return strings.Join(texts, ",")
		}},
		{Title: "HEALTH", Wide: true, Text: func(n api.Node) string { return strings.Join(n.HealthIPs, ",") }},
		{Title: "INGRESS", Wide: true, Text: func(n api.Node) string { return strings.Join(n.IngressIPs, ",") }},
	}
}

// nodeAddress is the first internal address, or else the first of all.
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

func serviceTable() printer.Table[api.Service] {
	return printer.Table[api.Service]{
		{Title: "NAMESPACE", Text: func(s api.Service) string { return s.Namespace }},
		{Title: "NAME", Text: func(s api.Service) string { return s.Name }},
		{Title: "GLOBAL", Text: func(s api.Service) string { return yesNo(s.Global) }},
		{Title: "BACKENDS", Right: true, Text: func(s api.Service) string { return strconv.Itoa(len(s.Backends)) }},
		{Title: "CLUSTERS", Text: func(s api.Service) string {
			texts := make([]string, len(s.Clusters))
			for i, c := range s.Clusters {
				texts[i] = c.Cluster
			}
			return strings.Join(texts, ",")
		}},
		{Title: "AFFINITY", Wide: true, Text: func(s api.Service) string { return s.Affinity }},
		{Title: "ADDRESSES", Wide: true, Text: func(s api.Service) string {
			texts := make([]string, len(s.Backends))
			for i, b := range s.Backends {
				texts[i] = b.Cluster + "=" + b.IP
			}
			return strings.Join(texts, ",")
		}},
	}
}

func identityTable() printer.Table[api.Identity] {
	return printer.Table[api.Identity]{
		{Title: "ID", Right: true, Text: func(i api.Identity) string { return strconv.Itoa(int(i.ID)) }},
		{Title: "CLUSTER", Text: func(i api.Identity) string { return i.Cluster }},
		{Title: "LABELS", Text: func(i api.Identity) string { return labels(i.Labels) }},
	}
}

func ipTable() printer.Table[api.IP] {
	return printer.Table[api.IP]{
		{Title: "PREFIX", Text: func(i api.IP) string { return i.Prefix }},
		{Title: "CLUSTER", Text: func(i api.IP) string { return i.Cluster }},
		{Title: "IDENTITY", Right: true, Text: func(i api.IP) string { return strconv.Itoa(int(i.Identity)) }},
		{Title: "KIND", Text: func(i api.IP) string { return i.Kind }},
		{Title: "HOST", Text: func(i api.IP) string { return i.HostIP }},
		{Title: "POD", Text: pod},
		{Title: "KEY", Right: true, Wide: true, Text: func(i api.IP) string { return idText(uint32(i.EncryptionKey)) }},
		{Title: "CLAIMS", Right: true, Wide: true, Text: func(i api.IP) string { return strconv.Itoa(i.Claims) }},
		{Title: "SOURCE", Wide: true, Text: func(i api.IP) string { return i.Source }},
	}
}

func conflictTable() printer.Table[api.Conflict] {
	return printer.Table[api.Conflict]{
		{Title: "KIND", Text: func(c api.Conflict) string { return c.Kind }},
		{Title: "CODE", Text: func(c api.Conflict) string { return c.Code }},
		{Title: "SUBJECT", Text: func(c api.Conflict) string { return c.Subject }},
		{Title: "CLUSTERS", Text: func(c api.Conflict) string { return strings.Join(c.Clusters, ",") }},
		{Title: "SINCE", Text: func(c api.Conflict) string { return ago(&c.Since) }},
		{Title: "RULE", Wide: true, Text: func(c api.Conflict) string { return c.Rule }},
		{Title: "MESSAGE", Text: func(c api.Conflict) string { return c.Message }},
	}
}

func conflictName(c api.Conflict) string { return c.Kind + "/" + c.Subject }

func eventTable() printer.Table[api.Event] {
	return printer.Table[api.Event]{
		{Title: "ID", Right: true, Wide: true, Text: func(e api.Event) string { return strconv.FormatUint(e.ID, 10) }},
		{Title: "TIME", Text: func(e api.Event) string { return ago(&e.Time) }},
		{Title: "CLUSTER", Text: func(e api.Event) string { return e.Cluster }},
		{Title: "KIND", Text: func(e api.Event) string { return e.Kind }},
		{Title: "CODE", Text: func(e api.Event) string { return e.Code }},
		{Title: "OBJECT", Wide: true, Text: eventObject},
		{Title: "MESSAGE", Text: func(e api.Event) string { return e.Message }},
	}
}

// eventObject is what an event is about, in the form that get and describe take.
func eventObject(e api.Event) string { return strings.TrimSpace(e.Resource + " " + e.Name) }

func healthTable() printer.Table[api.Health] {
	return printer.Table[api.Health]{
		{Title: "NAME", Text: func(h api.Health) string { return h.Name }},
		{Title: "STATE", Text: func(h api.Health) string { return h.State }, Color: func(h api.Health) printer.Color { return wellColor(h.State == "ok") }},
		{Title: "CLUSTER", Wide: true, Text: func(h api.Health) string { return h.Cluster }},
		{Title: "LAST SUCCESS", Text: func(h api.Health) string { return ago(h.LastSuccess) }},
		{Title: "LAST FAILURE", Text: func(h api.Health) string { return ago(h.LastFailure) }},
		{Title: "FAILURES", Right: true, Wide: true, Text: func(h api.Health) string { return strconv.Itoa(h.ConsecutiveFailures) }},
		{Title: "MESSAGE", Text: func(h api.Health) string { return h.Message }},
	}
}

func pod(i api.IP) string {
	if i.Pod == "" {
		return ""
	}
	return i.Namespace + "/" + i.Pod
}

// labels lists labels on one line, labelLines each on its own.
func labels(m map[string]string) string { return strings.Join(labelLines(m), ",") }

func labelLines(m map[string]string) []string {
	texts := make([]string, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if m[key] == "" {
			texts = append(texts, key)
		} else {
			texts = append(texts, key+"="+m[key])
		}
	}
	return texts
}

func ago(t *time.Time) string {
	if t == nil {
		return ""
	}
	return printer.Duration(time.Since(*t)) + " ago"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// idText is the number, nothing for 0, which means none.
func idText(id uint32) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(id), 10)
}
