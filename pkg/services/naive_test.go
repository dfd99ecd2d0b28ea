package services

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// naive is a literal implementation of the rule.
func naive(parts []*Service) *view {
	v := &view{Affinity: "none"}
	exists := false
	byCluster := slices.SortedFunc(slices.Values(parts), func(a, b *Service) int { return cmp.Compare(a.Cluster, b.Cluster) })
	counts := naiveUse(byCluster)
	selected := naiveSelection(byCluster, counts)
	for _, p := range byCluster {
		reason := brings(p)
		if p.Sliced {
			reason += ", known from its endpoint slices alone"
		}
		v.Reasons = append(v.Reasons, reason)
		v.Shared = v.Shared || p.Shared
		if p.Cluster == "c" && (p.Shared || p.IncludeExternal) && p.Affinity != "" {
			v.Affinity = string(p.Affinity)
		}
		if !p.Shared && p.Cluster != "c" {
			continue
		}
		exists = true
		if p.Use == Withheld || p.Use == Withdrawn && !counts(p) {
			continue
		}
		for _, b := range p.Backends {
			v.Backends = append(v.Backends, backendText(p, b, counts(p) && selected[p.Cluster == "c"]))
		}
	}
	if !exists {
		return nil
	}
	return v
}

// naiveUse returns which clusters may receive traffic: those in full use. If these have no usable backend, demoted
// clusters as well; and if those have none either, withdrawn clusters as well.
func naiveUse(parts []*Service) func(*Service) bool {
	usable := map[BackendUse]bool{}
	for _, p := range parts {
		for _, b := range p.Backends {
			if (p.Shared || p.Cluster == "c") && (b.Ready() || b.Serving()) {
				usable[p.Use] = true
			}
		}
	}
	return func(p *Service) bool {
		switch p.Use {
		case Full:
			return true
		case Demoted:
			return !usable[Full]
		case Withdrawn:
			return !usable[Full] && !usable[Demoted]
		default:
			return false
		}
	}
}

// naiveSelection returns whether the local backends (true) and those of the other clusters (false) receive traffic; "c"
// is the local cluster.
func naiveSelection(parts []*Service, counts func(*Service) bool) map[bool]bool {
	var local *Service
	active, healthy := map[bool]int{}, map[bool]int{}
	shared := false
	for _, p := range parts {
		if p.Cluster == "c" {
			local = p
		}
		shared = shared || p.Shared
		if !counts(p) || !p.Shared && p.Cluster != "c" {
			continue
		}
		for _, b := range p.Backends {
			if !b.Ready() && !b.Serving() {
				continue
			}
			healthy[p.Cluster == "c"]++
			if !b.Terminating() {
				active[p.Cluster == "c"]++
			}
		}
	}
	switch {
	case local == nil:
		return map[bool]bool{true: true, false: true}
	case !local.Shared && !local.IncludeExternal, !shared:
		return map[bool]bool{true: true, false: false}
	case local.Affinity == wire.AffinityLocal:
		return map[bool]bool{true: true, false: active[true] == 0 && healthy[false] > 0}
	case local.Affinity == wire.AffinityRemote:
		return map[bool]bool{false: true, true: healthy[false] == 0 && healthy[true] > 0}
	}
	return map[bool]bool{true: true, false: true}
}

// takenByPolicy compares a service with the same service without demotions and withdrawals: the policy must not remove
// the last of anything.
func takenByPolicy(parts []*Service) string {
	without := make([]*Service, len(parts))
	for i, p := range parts {
		one := *p
		if one.Use != Withheld {
			one.Use = Full
		}
		without[i] = &one
	}
	with, full := Merge(parts), Merge(without)
	if with == nil {
		return ""
	}
	for what, n := range map[string]func(*Global) int{
		"backends": (*Global).NumBackends,
		"usable backends": func(g *Global) int {
			return countOf(g.Backends(), func(_ *Service, b Backend) bool { return b.Usable() })
		},
		"usable backends that get traffic": func(g *Global) int {
			return countOf(g.Backends(), g.Selection().Takes)
		},
	} {
		if n(full) > 0 && n(with) == 0 {
			return fmt.Sprintf("the policy took the last of %d %s", n(full), what)
		}
	}
	return ""
}

func countOf(of iter.Seq2[*Service, Backend], is func(*Service, Backend) bool) (n int) {
	for p, b := range of {
		if is(p, b) {
			n++
		}
	}
	return n
}

// naiveBackend merges the entries of all slices for an address. Usable entries count; the others count only if none is
// usable.
func naiveBackend(of []*wire.EndpointSlice, ip netip.Addr) (Backend, bool) {
	usable, rest := Backend{IP: ip, Conditions: NotReady | NotServing | IsTerminating}, Backend{IP: ip, Conditions: NotReady | NotServing | IsTerminating}
	isUsable, found := false, false
	for _, s := range of {
		for _, e := range s.Endpoints {
			if e.Addresses[0] != ip.String() {
				continue
			}
			found = true
			ready := e.Conditions.Ready == nil || *e.Conditions.Ready
			serving := ready
			if e.Conditions.Serving != nil {
				serving = *e.Conditions.Serving
			}
			into := &rest
			if ready || serving {
				isUsable, into = true, &usable
			}
			if ready {
				into.Conditions &^= NotReady
			}
			if serving {
				into.Conditions &^= NotServing
			}
			if e.Conditions.Terminating == nil || !*e.Conditions.Terminating {
				into.Conditions &^= IsTerminating
			}
			for to, from := range map[*string]*string{&into.Node: e.NodeName, &into.Zone: e.Zone, &into.Hostname: e.Hostname} {
				if *to == "" && from != nil {
					*to = *from
				}
			}
			for _, p := range s.Ports {
				if port := (Port{Name: *p.Name, Protocol: "TCP", Port: uint16(*p.Port)}); !slices.Contains(into.Ports, port) {
					into.Ports = append(into.Ports, port)
				}
			}
			sortPorts(into.Ports)
		}
	}
	if isUsable {
		return usable, true
	}
	return rest, found
}
