package claims

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Mode decides about claims that break a rule, except those inside the own networks, which never count.
type Mode string

// The modes.
const (
	Report  Mode = "report"  // they count, as with Cilium, and are findings
	Enforce Mode = "enforce" // they are findings and never count
)

// ParseMode parses a mode.
func ParseMode(text string) (Mode, error) {
	if m := Mode(text); m == Report || m == Enforce {
		return m, nil
	}
	return "", fmt.Errorf("%q is no mode: want %s or %s", text, Report, Enforce)
}

// Policy is the contents of a policy file.
type Policy struct {
	deny   bool // a cluster without an entry is refused
	grants map[string]*Grant
}

// Grant is what one cluster may claim. A nil Grant grants everything. A field that the file leaves out restricts
// nothing.
type Grant struct {
	id         uint32 // 0: any
	networks   *[]netip.Prefix
	namespaces *[]string
	services   *[]string
	identities *[]span
	text       string // the whole entry as it was read, for comparison
}

// span is a range of identities, both ends included.
type span struct{ first, last uint32 }

// ParseNetwork parses a network, without host bits.
func ParseNetwork(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() {
		return p, fmt.Errorf("%q is no network: want one such as 10.0.0.0/16, without host bits", text)
	}
	return p, nil
}

func parsePattern(text string) (string, error) {
	if _, err := path.Match(text, ""); err != nil || text == "" || strings.Contains(text, "/") {
		return "", fmt.Errorf("%q is no name: want one such as shop, or with * and ? as in team-*", text)
	}
	return text, nil
}

func parseService(text string) (string, error) {
	if _, err := path.Match(text, ""); err != nil || strings.Count(text, "/") != 1 {
		return "", fmt.Errorf("%q names no service: want NAMESPACE/NAME, each with * and ? as in shop/*", text)
	}
	return text, nil
}

func parseSpan(text string) (span, error) {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	a, errA := strconv.ParseUint(strings.TrimSpace(first), 10, 32)
	b, errB := strconv.ParseUint(strings.TrimSpace(last), 10, 32)
	if errA != nil || errB != nil || a > b {
		return span{}, fmt.Errorf("%q is no range of identities: want one such as 131072-135000, or a number", text)
	}
	return span{uint32(a), uint32(b)}, nil
}

// Of returns the claims that a cluster may make, nil for all, and reports whether it is admitted at all. A nil policy
// admits all.
func (p *Policy) Of(cluster string) (*Grant, bool) {
	if p == nil {
		return nil, true
	}
	g := p.grants[cluster]
	return g, g != nil || !p.deny
}

// Refusal is the reason why a cluster is not admitted with an ID.
type Refusal struct {
	Unlisted bool   // it has no entry, and the default is deny
	Pin      uint32 // the other ID that the file gives the cluster; 0: this is not the reason
	Owner    string // the other cluster to which the file gives the ID; empty: this is not the reason
	ID       uint32 // the ID of the cluster
}

// Error returns the reason.
func (r *Refusal) Error() string {
	switch {
	case r.Unlisted:
		return "the claim policy file has no entry for this cluster, and its default is deny"
	case r.Pin != 0:
		return fmt.Sprintf("it says that it has the cluster ID %d, and the claim policy file gives it %d", r.ID, r.Pin)
	default:
		return fmt.Sprintf("it says that it has the cluster ID %d, which the claim policy file gives to %s", r.ID, r.Owner)
	}
}

// Admit returns the reason why the file does not admit a cluster with an ID; nil when it admits it. The ID 0 means that
// it is not known yet: then Admit checks no pins.
func (p *Policy) Admit(cluster string, id uint32) *Refusal {
	if _, admitted := p.Of(cluster); !admitted {
		return &Refusal{Unlisted: true, ID: id}
	}
	if id == 0 {
		return nil
	}
	if pin := p.Pin(cluster); pin != 0 && pin != id {
		return &Refusal{Pin: pin, ID: id}
	}
	if owner := p.Pinned(id); owner != "" && owner != cluster {
		return &Refusal{Owner: owner, ID: id}
	}
	return nil
}

// Pin returns the cluster ID that the file gives to a cluster; 0 for none.
func (p *Policy) Pin(cluster string) uint32 {
	if g, _ := p.Of(cluster); g != nil {
		return g.id
	}
	return 0
}

// Pinned returns the cluster that the file gives an ID to; empty for none.
func (p *Policy) Pinned(id uint32) string {
	if p != nil && id != 0 {
		for name, g := range p.grants {
			if g.id == id {
				return name
			}
		}
	}
	return ""
}

// Equal reports whether both policies are equal for a cluster.
func (p *Policy) Equal(o *Policy, cluster string) bool {
	a, admittedA := p.Of(cluster)
	b, admittedB := o.Of(cluster)
	if admittedA != admittedB || (a == nil) != (b == nil) {
		return false
	}
	return a == nil || a.text == b.text
}

// Address reports whether the cluster may claim a prefix; if not, the error is the reason.
func (g *Grant) Address(p netip.Prefix) error {
	if g == nil || g.networks == nil || slices.ContainsFunc(*g.networks, func(n netip.Prefix) bool { return n.Bits() <= p.Bits() && n.Contains(p.Addr().Unmap()) }) {
		return nil
	}
	return fmt.Errorf("%s is in none of the networks that the policy file grants", p)
}

// Host is Address for a single address. An invalid or unspecified address needs no grant.
func (g *Grant) Host(a netip.Addr) error {
	if a = a.Unmap(); !a.IsValid() || a.IsUnspecified() {
		return nil
	}
	return g.Address(netip.PrefixFrom(a.WithZone(""), a.BitLen()))
}

// Namespace reports whether the cluster may have objects in a namespace; the empty one needs no grant.
func (g *Grant) Namespace(name string) error {
	if g == nil || g.namespaces == nil || name == "" || matches(*g.namespaces, name) {
		return nil
	}
	return fmt.Errorf("the namespace %s is none of those that the policy file grants", name)
}

// Service reports whether the cluster may export a service.
func (g *Grant) Service(namespace, name string) error {
	if err := g.Namespace(namespace); err != nil {
		return err
	}
	if g == nil || g.services == nil || matches(*g.services, namespace+"/"+name) {
		return nil
	}
	return fmt.Errorf("the service %s/%s is none of those that the policy file grants", namespace, name)
}

// Identity reports whether the cluster may use an identity number. Reserved ones are judged by [Privileged].
func (g *Grant) Identity(id uint32) error {
	if g == nil || g.identities == nil || id < wire.IdentityReservedEnd || slices.ContainsFunc(*g.identities, func(s span) bool { return s.first <= id && id <= s.last }) {
		return nil
	}
	return fmt.Errorf("the identity %d is in none of the ranges that the policy file grants", id)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

// Clusters returns the clusters with an entry, sorted.
func (p *Policy) Clusters() []string { return slices.Sorted(maps.Keys(p.grants)) }
