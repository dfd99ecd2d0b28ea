// Package lookup shows the owner of an address.
package lookup

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/explain"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	format := printer.NewFormat(printer.Text, printer.JSON, printer.YAML)
	return c.Watched(command.WithOutput(&cobra.Command{
		Use:   "lookup ADDRESS|POD",
		Short: "Show the owner of an address, or of the address of a pod",
		Long: "Show the owner of an address: prefix, identity with labels, pod, node and cluster; and the claims that lost, with\n" +
			"the rule. Exit code 1: no cluster claims the address, or only a network contains it and a stale cluster may\n" +
			"claim the address itself.\n\nOf a POD, with or without NAMESPACE/, the command looks up its address.",
		Example: "  mesh-agent lookup 10.0.1.5\n  mesh-agent lookup 10.0.1.5 --watch\n  mesh-agent lookup default/web-0",
		Args:    command.Arguments(1, 1, "one ADDRESS or POD"),

		ValidArgsFunction: resource.CompleteAddress(c),
		RunE: c.Asking(func(cmd *cobra.Command, args []string, cl *client.Client) error {
			address, err := addressOf(cmd.Context(), cl, args[0])
			if err != nil {
				return err
			}
			l, err := cl.Lookup(cmd.Context(), address)
			if err != nil {
				return err
			}
			page := func(p *printer.Page) { Write(p, l, time.Now()) }
			return exit.Verdict(c.Answer(cmd, format, l, page), false, l.Match == nil || l.Why.Verdict.Code == codes.AddressUnknown)
		}),
	}, format))
}

// shownAddresses is the maximum number of addresses in an error.
const shownAddresses = 10

// copied returns the address in a text from logs and lists: with a port, brackets, the prefix length of a single
// address, or blanks. It returns the text if there is none.
func copied(text string) string {
	text = strings.TrimSpace(text)
	if a, err := netip.ParseAddrPort(text); err == nil {
		return a.Addr().String()
	}
	if p, err := netip.ParsePrefix(text); err == nil && p.IsSingleIP() {
		return p.Addr().String()
	}
	if inner, is := strings.CutPrefix(strings.TrimSuffix(text, "]"), "["); is {
		return inner
	}
	return text
}

// addressOf returns an address, or the address of the pod with this name.
func addressOf(ctx context.Context, cl *client.Client, name string) (string, error) {
	name = copied(name)
	if _, err := netip.ParseAddr(name); err == nil || strings.ContainsAny(name, ":%") {
		return name, nil // the agent explains the mistake
	}
	namespace, pod, named := strings.Cut(name, "/")
	if !named {
		namespace, pod = "", name
	}
	if pod == "" {
		return "", exit.Usagef("%q: want an IPv4 or IPv6 address, or the name of a pod that has one", name)
	}
	list, err := client.List[api.IP](ctx, cl, "ips", client.Query{Namespace: namespace, Contains: pod})
	if err != nil {
		return "", err
	}
	var found []string
	var address string
	for i, err := range list.All(ctx) {
		if err != nil {
			return "", err
		}
		if i.Pod == pod {
			prefix, _, _ := strings.Cut(i.Prefix, "/")
			address, found = prefix, append(found, fmt.Sprintf("%s (pod %s in %s)", prefix, resource.Pod(i), i.Cluster))
		}
	}
	switch n := len(found); {
	case n == 0:
		return "", exit.Usagef("%q: want an IPv4 or IPv6 address, or the name of a pod that has one; see 'mesh-agent get ips --contains %s'", name, pod)
	case n > shownAddresses:
		return "", exit.Usagef("%q has %d addresses: look up one of those of 'mesh-agent get ips --contains %s'", name, n, pod)
	case n > 1:
		return "", exit.Usagef("%q has %d addresses: look up one of %s", name, n, strings.Join(found, ", "))
	}
	return address, nil
}

// Write writes the owner of an address, or that no cluster claims it.
func Write(p *printer.Page, l *api.Lookup, now time.Time) {
	defer func() { explain.WriteWhy(p, &l.Why, now) }()
	if l.Match == nil {
		claims := "claims"
		if l.Why.Verdict.Code == codes.AddressUnknown {
			claims = "is known to claim"
		}
		p.Line("No cluster %s %s.", claims, l.IP)
		for _, s := range l.Services {
			p.Line("It is a backend of the service %s/%s.", s.Namespace, s.Name)
		}
		WriteUnconfirmed(p, l)
		return
	}
	m := l.Match
	p.Line("%s is %s", l.IP, printer.Painted{Text: owner(l), Color: printer.Bold})
	p.Blank()
	p.Fields(
		printer.F("Prefix", m.Prefix),
		printer.F("Cluster", fmt.Sprintf("%s (ID %d)", m.Cluster, m.ClusterID)),
		printer.F("Kind", m.Kind),
		printer.F("Identity", lookedUpIdentity(l)),
		printer.F("Pod", resource.Pod(*m)),
		printer.F("Node", node(l)),
		printer.F("Encryption key", printer.Number(uint32(m.EncryptionKey))),
		printer.F("Source", m.Source),
		printer.F("Services", printer.Join(l.Services, ", ", func(s api.ServiceName) string { return s.Namespace + "/" + s.Name })),
		printer.F("Known as of", clustertext.KnownAsOf(l.Freshness)),
	)
	WriteUnconfirmed(p, l)
	if len(l.Candidates) > 1 {
		p.Blank()
		printer.Rows(p, Candidates(), l.Candidates)
	}
}

// WriteUnconfirmed warns of clusters whose data may be out of date.
func WriteUnconfirmed(p *printer.Page, l *api.Lookup) {
	if len(l.Unconfirmed) > 0 {
		p.Blank()
		p.Text("Not known as of now, so this may have changed there: %s. See 'mesh-agent status'.", strings.Join(l.Unconfirmed, ", "))
	}
}

func owner(l *api.Lookup) string {
	m := l.Match
	switch {
	case m.Pod != "":
		return fmt.Sprintf("pod %s in cluster %s", resource.Pod(*m), m.Cluster)
	case m.Kind == "endpoint":
		return "in cluster " + m.Cluster
	case m.Kind == "pod-cidr":
		return "in the pod network of " + node(l)
	case l.Node != nil:
		return fmt.Sprintf("%s of node %s/%s", kindText(m.Kind), l.Node.Cluster, l.Node.Name)
	}
	return fmt.Sprintf("%s in cluster %s", kindText(m.Kind), m.Cluster)
}

func kindText(kind string) string {
	switch kind {
	case "node":
		return "an address"
	case "health":
		return "the health address"
	case "ingress":
		return "the ingress address"
	default:
		return kind
	}
}

func lookedUpIdentity(l *api.Lookup) string {
	text := fmt.Sprint(l.Match.Identity)
	if l.Identity == nil {
		return text + " (its labels are not known)"
	}
	return text + " " + printer.Labels(l.Identity.Labels)
}

func node(l *api.Lookup) string {
	switch {
	case l.Node == nil && l.Match.HostIP == "":
		return ""
	case l.Node == nil:
		return l.Match.HostIP
	case l.Match.HostIP == "":
		return l.Node.Cluster + "/" + l.Node.Name
	}
	return fmt.Sprintf("%s/%s (%s)", l.Node.Cluster, l.Node.Name, l.Match.HostIP)
}

// Candidates returns the table of all claims on an address.
func Candidates() printer.Table[api.Candidate] {
	entry := func(title string, text func(api.IP) string) printer.Column[api.Candidate] {
		return printer.Column[api.Candidate]{Title: title, Text: func(c api.Candidate) string { return text(c.Entry) }}
	}
	return printer.Table[api.Candidate]{
		entry("CLAIM", func(i api.IP) string { return i.Prefix }),
		entry("CLUSTER", func(i api.IP) string { return i.Cluster }),
		entry("KIND", func(i api.IP) string { return i.Kind }),
		entry("IDENTITY", func(i api.IP) string { return fmt.Sprint(i.Identity) }),
		{Title: "WHY", Text: func(c api.Candidate) string { return c.Reason }},
	}
}
