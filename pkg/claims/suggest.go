package claims

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Seen is the claims of one cluster, from which a policy is suggested.
type Seen struct {
	Name string
	ID   uint32 // 0: not known
	// Complete reports whether all of them are known; if not, only the ID is suggested.
	Complete   bool
	Pods       []netip.Prefix // networks that its nodes announce
	Nodes      []netip.Addr   // addresses of its nodes
	Claims     []netip.Prefix // of its endpoints, and the health and ingress addresses of its nodes
	Privileged []Claim        // those of them with a privileged reserved identity
	Other      []netip.Prefix // all others: tunnel endpoints and backends
	Namespaces []string
	Services   []string // NAMESPACE/NAME
	Refused    int      // entries that are refused now; they are not among the others
}

// Claim is a claim on a prefix with an identity.
type Claim struct {
	Prefix   netip.Prefix
	Identity uint32
}

// Suggest writes a policy file that grants each cluster its present claims, for review by an operator. It leaves out
// claims that break a rule, with the code of the rule, and names that Kubernetes does not allow. It does not extend a
// network into those of other clusters; own is the own cluster.
func Suggest(all []Seen, own Seen) []byte {
	var b bytes.Buffer
	b.WriteString(`# Suggested from what the clusters claim now. REVIEW IT: what breaks no rule is granted, also where a
# cluster should not have it. 'mesh-agent config check --connect --claim-policy-file' tells what
# it would refuse. docs/claims.md says what each line means.
default: allow  # a cluster without an entry may claim everything; deny: it is not read at all
clusters:`)
	all = slices.SortedFunc(slices.Values(all), func(x, y Seen) int { return strings.Compare(x.Name, y.Name) })
	if len(all) == 0 {
		b.WriteString(" {}")
	}
	b.WriteString("\n")
	rules := newRules(all, own.Pods)
	for i, s := range all {
		s.write(&b, rules, i, func(p netip.Prefix) bool {
			if own.has(p) {
				return true
			}
			for j := range all {
				if j != i && all[j].has(p) {
					return true
				}
			}
			return false
		})
	}
	return b.Bytes()
}

// has reports whether a network contains any claim of the cluster.
func (s *Seen) has(p netip.Prefix) bool {
	return slices.ContainsFunc(s.Pods, p.Overlaps) || slices.ContainsFunc(s.Nodes, p.Contains) ||
		slices.ContainsFunc(s.Claims, p.Overlaps) || slices.ContainsFunc(s.Other, p.Overlaps)
}

func (s *Seen) write(b *bytes.Buffer, rules *rules, i int, taken func(netip.Prefix) bool) {
	if s.ID == 0 {
		fmt.Fprintf(b, "  # %s has no ID yet: nothing is known of it, and it is not restricted\n  %q: {}\n", s.Name, s.Name)
		return
	}
	fmt.Fprintf(b, "  %q:\n    id: %d  # its cluster ID, which no other cluster can use\n", s.Name, s.ID)
	if !s.Complete {
		b.WriteString("    # It was not read completely: networks and namespaces are not restricted. Ask again when it is ready.\n")
		return
	}
	if s.Refused > 0 {
		fmt.Fprintf(b, "    # %d of its entries are refused now; what they claim is not granted here.\n", s.Refused)
	}
	s.writeNetworks(b, rules, i, taken)
	s.writeNames(b)
}

func (s *Seen) writeNetworks(b *bytes.Buffer, rules *rules, i int, taken func(netip.Prefix) bool) {
	breaking, breaks := make(map[string][]netip.Prefix), make(map[netip.Prefix]bool) // by the rule
	note := func(why string, p netip.Prefix) { breaking[why], breaks[p] = append(breaking[why], p), true }
	pods := Collapse(rules.judge(i, s.Pods, false, note))
	hosts := make([]netip.Prefix, len(s.Nodes))
	for i, a := range s.Nodes {
		hosts[i] = netip.PrefixFrom(a, a.BitLen())
	}
	hosted := rules.judge(i, hosts, false, note)
	claimed := rules.judge(i, without(slices.Clone(s.Claims), slices.Concat(pods, hosted)), true, note)
	reserved := without(s.reserved(), pods)
	for _, p := range reserved {
		note(fmt.Sprintf("%s, with a privileged identity", codes.ReservedIdentityClaimed), p)
	}
	// A network that breaks a rule is not granted for another reason either.
	granted := func(all []netip.Prefix) []netip.Prefix {
		return slices.DeleteFunc(all, func(p netip.Prefix) bool { return breaks[p] })
	}
	other := rules.judge(i, s.Other, false, note)
	nodes := covered(granted(without(hosted, pods)), taken)
	rest, widened := fewer(granted(without(slices.Concat(claimed, other), slices.Concat(pods, nodes))), rules.whose)
	b.WriteString("    networks:")
	if len(pods)+len(nodes)+len(rest) == 0 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	writeList(b, "of its pods, as its nodes announce them", pods)
	writeList(b, "of its nodes: extend these if nodes come and go", nodes)
	what := "of pods, tunnel endpoints and backends outside these networks"
	if widened {
		what += fmt.Sprintf(", in whole /%d and /%d since there are many", small4, small6)
	}
	writeList(b, what, rest)
	for _, why := range slices.Sorted(maps.Keys(breaking)) {
		writeLeftOut(b, why, slices.Compact(inOrder(breaking[why])))
	}
	if within := len(s.reserved()) - len(reserved); within > 0 {
		fmt.Fprintf(b, "    # %d addresses in these networks have a privileged identity, %s: 'mesh-agent get conflicts'.\n", within, codes.ReservedIdentityClaimed)
	}
}

func writeList(b *bytes.Buffer, what string, networks []netip.Prefix) {
	if len(networks) > 0 {
		fmt.Fprintf(b, "      # %s\n", what)
	}
	for _, p := range networks {
		fmt.Fprintf(b, "      - %q\n", p)
	}
}

// maxNamed is the maximum number of items that the comments of the file name.
const maxNamed = 20

func writeLeftOut[T any](b *bytes.Buffer, why string, all []T) {
	for i, one := range all {
		if i == maxNamed {
			fmt.Fprintf(b, "    # NOT GRANTED, and %d more such\n", len(all)-i)
			return
		}
		fmt.Fprintf(b, "    # NOT GRANTED, %s: %q\n", why, fmt.Sprint(one))
	}
}

func (s *Seen) writeNames(b *bytes.Buffer) {
	var names, odd []string
	for _, n := range slices.Compact(slices.Sorted(slices.Values(s.Namespaces))) {
		if isLabel(n) {
			names = append(names, fmt.Sprintf("%q", n))
		} else if n != "" {
			odd = append(odd, n)
		}
	}
	fmt.Fprintf(b, "    namespaces: [%s]  # of its pods, services and identities\n", strings.Join(names, ", "))
	writeLeftOut(b, "no name of a namespace", odd)
	services := slices.Compact(slices.Sorted(slices.Values(s.Services)))
	if slices.ContainsFunc(services, func(n string) bool { ns, name, _ := strings.Cut(n, "/"); return !isLabel(ns) || !isLabel(name) }) {
		return
	}
	if n := len(services); n > 0 && n <= maxNamed {
		fmt.Fprintf(b, "    # The names of its services are not restricted, and its identities only to the range of its ID. To restrict its services:\n    # services: [%s]\n",
			strings.Join(services, ", "))
		return
	}
	b.WriteString("    # The names of its services are not restricted, and its identities only to the range of its ID.\n")
}

// isLabel reports whether Kubernetes allows a name for namespaces and services (RFC 1123): it contains no pattern.
func isLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

// without returns those that are in none of the networks. There may be a hundred thousand of both.
func without(all, networks []netip.Prefix) []netip.Prefix {
	apart := Collapse(networks)
	return slices.DeleteFunc(all, func(p netip.Prefix) bool {
		at, _ := slices.BinarySearchFunc(apart, p, func(n, p netip.Prefix) int {
			if n.Addr().Compare(p.Addr()) <= 0 {
				return -1
			}
			return 1
		})
		return at > 0 && apart[at-1].Bits() <= p.Bits() && apart[at-1].Contains(p.Addr())
	})
}

// The lengths of a network that is small enough to be granted for the addresses in it: the usual size of one segment.
const (
	small4 = 24
	small6 = 64
)

func small(a netip.Addr) int { return byFamily(a, small4, small6) }

// covered returns, for each family, the small network that contains all of these networks, if no other cluster has a
// claim in it; else the networks themselves.
func covered(all []netip.Prefix, taken func(netip.Prefix) bool) []netip.Prefix {
	var out []netip.Prefix
	for _, is4 := range []bool{true, false} {
		var family []netip.Prefix
		for _, p := range all {
			if p.Addr().Is4() == is4 {
				family = append(family, p)
			}
		}
		if len(family) == 0 {
			continue
		}
		whole := netip.PrefixFrom(family[0].Addr(), small(family[0].Addr())).Masked()
		within := !slices.ContainsFunc(family, func(p netip.Prefix) bool { return p.Bits() < whole.Bits() || !whole.Contains(p.Addr()) })
		if len(family) > 1 && within && !taken(whole) {
			family = []netip.Prefix{whole}
		}
		out = append(out, family...)
	}
	return Collapse(out)
}

// maxRest is how many networks are listed individually.
const maxRest = 256

// fewer replaces networks by whole small ones if there are many, except where a cluster announces a pod network.
func fewer(all []netip.Prefix, taken func(netip.Prefix) bool) (networks []netip.Prefix, widened bool) {
	if all = Collapse(all); len(all) <= maxRest {
		return all, false
	}
	for i, p := range all {
		if n := small(p.Addr()); p.Bits() > n {
			if whole := netip.PrefixFrom(p.Addr(), n).Masked(); !taken(whole) {
				all[i] = whole
			}
		}
	}
	return Collapse(all), true
}

// inOrder compares networks; a network comes before those that it contains.
func inOrder(networks []netip.Prefix) []netip.Prefix {
	return slices.SortedFunc(slices.Values(networks), func(x, y netip.Prefix) int {
		return cmp.Or(x.Addr().Compare(y.Addr()), cmp.Compare(x.Bits(), y.Bits()))
	})
}

// Collapse returns the smallest set of networks with exactly the addresses of these, sorted, IPv4 first.
func Collapse(networks []netip.Prefix) []netip.Prefix {
	all := inOrder(networks)
	var out []netip.Prefix
	for _, p := range all {
		if n := len(out); n > 0 && out[n-1].Bits() <= p.Bits() && out[n-1].Contains(p.Addr()) {
			continue
		}
		out = append(out, p)
		for n := len(out); n > 1; n = len(out) { // two halves make a whole
			x, y := out[n-2], out[n-1]
			whole := netip.PrefixFrom(x.Addr(), x.Bits()-1).Masked()
			if x.Bits() == 0 || x.Bits() != y.Bits() || x == y || whole.Addr() != x.Addr() || !whole.Contains(y.Addr()) {
				break
			}
			out = append(out[:n-2], whole)
		}
	}
	return out
}
