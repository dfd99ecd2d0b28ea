// Package policy suggests a claim policy file from the current claims of the clusters.
package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/internal/cli/clustertext"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// New returns the command.
func New(c *command.Env) *cobra.Command {
	return command.Group("policy", "Create a claim policy file", policySuggestCommand(c))
}

func policySuggestCommand(c *command.Env) *cobra.Command {
	file := ""
	cmd := &cobra.Command{
		Use:   "suggest",
		Short: "Write a claim policy file from the current claims of the clusters",
		Long: "Write a file for --claim-policy-file from the claims that the running agent knows. It has the ID of each cluster,\n" +
			"the networks of its pods and nodes, and its namespaces. The file does not grant claims that break a rule\n" +
			"(docs/claims.md), except addresses in --pod-cidr and --service-cidr, which the command does not know. It names the\n" +
			"refused claims with their code. Review the file: it can still grant claims that a cluster should not have.",
		Example: "  mesh-agent policy suggest > claims.yaml\n  mesh-agent config check --connect --claim-policy-file claims.yaml",
		Args:    command.NoArgs,
		RunE: c.Asking(func(cmd *cobra.Command, _ []string, cl *client.Client) error {
			seen, err := see(cmd.Context(), cl)
			if err != nil {
				return err
			}
			for _, note := range seen.notes() {
				fmt.Fprintln(cmd.ErrOrStderr(), note)
			}
			return writeNew(file, claims.Suggest(seen.clusters(), seen.own), cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVar(&file, "output-file", "", "write to this new file, not to the standard output")
	return cmd
}

// writeNew writes to a new file, or to out when no file is given. It does not replace a file.
func writeNew(file string, text []byte, out io.Writer) error {
	if file == "" {
		_, err := out.Write(text)
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// seen are the claims of the clusters, from an agent's data.
type seen struct {
	of        map[string]*claims.Seen // the remote clusters, by name
	own       claims.Seen             // the own cluster
	notAsked  int                     // prefixes with several claims that were not looked up
	lookedAt  int                     // prefixes that were looked up
	uncertain []string                // clusters whose data is not complete
}

const maxContested = 2000 // maximum number of prefixes with claims of several clusters that are looked up

func see(ctx context.Context, cl *client.Client) (*seen, error) {
	s := &seen{of: make(map[string]*claims.Seen)}
	for _, of := range []func() error{
		func() error { return resource.Each(ctx, cl, "clusters", s.cluster) },
		func() error { return resource.Each(ctx, cl, "nodes", s.node) },
		func() error { return resource.Each(ctx, cl, "services", s.service) },
		func() error { return resource.Each(ctx, cl, "serviceexports", s.export) },
		func() error { return resource.Each(ctx, cl, "identities", s.identity) },
		func() error { return s.addresses(ctx, cl) },
	} {
		if err := of(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *seen) clusters() []claims.Seen {
	var all []claims.Seen
	for _, name := range slices.SortedFunc(maps.Keys(s.of), natural.Compare) {
		all = append(all, *s.of[name])
	}
	return all
}

// notes returns the limitations of the data for the file.
func (s *seen) notes() []string {
	var all []string
	if len(s.uncertain) > 0 {
		slices.SortFunc(s.uncertain, natural.Compare)
		all = append(all, "Not known completely, and not restricted in the file: "+strings.Join(s.uncertain, ", ")+".")
	}
	if s.notAsked > 0 {
		all = append(all, fmt.Sprintf("%d addresses have claims of several clusters; of %d of them only the one that counts is in the file.", s.lookedAt+s.notAsked, s.notAsked))
	}
	return all
}

func (s *seen) cluster(c api.Cluster) {
	one := &claims.Seen{Name: c.Name, ID: c.ID, Complete: c.ID != 0, Refused: clustertext.Sum(c.Rejected)}
	for r, synced := range c.Synced.All() {
		one.Complete = one.Complete && (*synced || !r.Describe().Required())
	}
	s.of[c.Name] = one
	if !one.Complete {
		s.uncertain = append(s.uncertain, c.Name)
	}
}

func (s *seen) node(n api.Node) {
	c := s.whose(n.Cluster)
	for _, text := range n.PodCIDRs {
		network(text, func(p netip.Prefix) { c.Pods = append(c.Pods, p) })
	}
	for _, a := range n.Addresses {
		network(a.IP, func(p netip.Prefix) { c.Nodes = append(c.Nodes, p.Addr()) })
	}
	for _, text := range slices.Concat(n.HealthIPs, n.IngressIPs) {
		network(text, func(p netip.Prefix) { c.Claims = append(c.Claims, p) })
	}
}

// whose returns the claims of a cluster. For the own cluster, which the policy does not restrict, they are kept, too,
// because other clusters must not claim its addresses.
func (s *seen) whose(cluster string) *claims.Seen {
	if c := s.of[cluster]; c != nil {
		return c
	}
	return &s.own
}

func network(text string, take func(netip.Prefix)) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return // a host name, or empty
		}
		p = netip.PrefixFrom(a.Unmap().WithZone(""), a.Unmap().BitLen())
	}
	take(p.Masked())
}

func other(c *claims.Seen, text string) {
	network(text, func(p netip.Prefix) { c.Other = append(c.Other, p) })
}

func (s *seen) service(svc api.Service) {
	for _, in := range svc.Clusters {
		if c := s.of[in.Cluster]; c != nil {
			c.Namespaces = append(c.Namespaces, svc.Namespace)
			c.Services = append(c.Services, svc.Namespace+"/"+svc.Name)
		}
	}
	for _, b := range svc.Backends {
		other(s.whose(b.Cluster), b.IP)
	}
}

func (s *seen) export(x api.ServiceExport) {
	if c := s.of[x.Cluster]; c != nil {
		c.Namespaces = append(c.Namespaces, x.Namespace)
		c.Services = append(c.Services, x.Namespace+"/"+x.Name)
	}
}

func (s *seen) identity(i api.Identity) {
	if c := s.of[i.Cluster]; c != nil {
		for key, value := range i.Labels {
			if key[strings.Index(key, ":")+1:] == wire.LabelNamespace { // with or without a source
				c.Namespaces = append(c.Namespaces, value)
			}
		}
	}
}

// addresses adds all claims on addresses. The list has the winning claims; for a prefix with several claims, a lookup
// returns the others.
func (s *seen) addresses(ctx context.Context, cl *client.Client) error {
	var contested []netip.Prefix
	err := resource.Each(ctx, cl, "ips", func(ip api.IP) {
		s.claim(ip)
		if p, err := netip.ParsePrefix(ip.Prefix); err == nil && ip.Claims > 1 {
			contested = append(contested, p)
		}
	})
	if err != nil {
		return err
	}
	asked := contested[:min(len(contested), maxContested)]
	s.lookedAt, s.notAsked = len(asked), len(contested)-len(asked)
	for _, p := range asked {
		l, err := cl.Lookup(ctx, p.Addr().String())
		if err != nil {
			return err
		}
		for _, claim := range l.Candidates {
			s.claim(claim.Entry)
		}
	}
	return nil
}

func (s *seen) claim(ip api.IP) {
	c := s.whose(ip.Cluster)
	other(c, ip.HostIP)
	c.Namespaces = append(c.Namespaces, ip.Namespace)
	if ip.Kind == ipcache.KindNode.String() || ip.Kind == ipcache.KindPodCIDR.String() {
		other(c, ip.Prefix)
		return
	}
	network(ip.Prefix, func(p netip.Prefix) {
		c.Claims = append(c.Claims, p)
		if claims.Privileged(ip.Identity, false) && ip.Kind != ipcache.KindHealth.String() && ip.Kind != ipcache.KindIngress.String() {
			c.Privileged = append(c.Privileged, claims.Claim{Prefix: p, Identity: ip.Identity})
		}
	})
}
