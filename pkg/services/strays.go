package services

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"

	"github.com/cilium/statedb"
)

// Judge decides which addresses no remote cluster can have as backends (docs/claims.md). Its methods may be called by
// several goroutines.
type Judge interface {
	// Breaches calls visit for those of the addresses that break a rule, with the rule and the problem.
	Breaches(addrs iter.Seq[netip.Addr], visit func(addr netip.Addr, rule uint8, what fmt.Stringer))
	// Enforces reports whether such backends are not used.
	Enforces() bool
}

// Stray counts the backends of a part that break one rule of the [Judge].
type Stray struct {
	Rule     uint8
	Backends int
	Barred   bool       // they are not used, and not among the backends of the part
	Example  netip.Addr // the first one
	Why      string     // the problem with the example
}

// Strays returns the number of backends that break a rule, by rule, in the order of the rules. Only parts of remote
// clusters have any.
func (s *Service) Strays() []Stray {
	if s.strays == nil {
		return nil
	}
	return *s.strays
}

// Barred returns how many backends are not used because they break a rule.
func (s *Service) Barred() (n int) {
	for _, one := range s.Strays() {
		if one.Barred {
			n += one.Backends
		}
	}
	return n
}

// JudgeBackends sets the judge for backends of remote clusters. It must be called before anything is applied.
func (s *Services) JudgeBackends(j Judge) { s.judge = j }

// JudgeAgain judges all backends of remote clusters again, after the rules of the judge have changed.
func (s *Services) JudgeAgain() {
	if s.judge == nil {
		return
	}
	s.write(func(txn statedb.WriteTxn, t *touched) {
		for g := range s.global.All(txn) {
			for _, p := range g.Parts {
				if p.strays != nil || s.strays(p) != nil {
					t.add(p.Cluster, p.Namespace, p.Name)
				}
			}
		}
	})
}

// judged returns a part with the result of the judge for its backends; nil stays nil.
func (s *Services) judged(p *Service) *Service {
	strays := s.strays(p)
	if strays == nil {
		return p
	}
	w := *p
	w.strays = &strays
	if !s.judge.Enforces() {
		return &w
	}
	barred := make(map[netip.Addr]struct{})
	s.breaches(p, func(a netip.Addr, _ uint8, _ fmt.Stringer) { barred[a] = struct{}{} })
	w.Backends = slices.DeleteFunc(slices.Clone(p.Backends), func(b Backend) bool {
		_, is := barred[b.IP]
		return is
	})
	return &w
}

// strays counts the backends of a part that break a rule; nil when none does.
func (s *Services) strays(p *Service) (found []Stray) {
	if s.judge == nil || p == nil || p.Local() || !p.Shared || len(p.Backends) == 0 {
		return nil
	}
	s.breaches(p, func(a netip.Addr, rule uint8, what fmt.Stringer) {
		i := slices.IndexFunc(found, func(o Stray) bool { return o.Rule == rule })
		if i < 0 {
			i = len(found)
			found = append(found, Stray{Rule: rule, Barred: s.judge.Enforces(), Example: a, Why: what.String()})
		}
		found[i].Backends++
	})
	slices.SortFunc(found, func(a, b Stray) int { return int(a.Rule) - int(b.Rule) })
	return found
}

func (s *Services) breaches(p *Service, visit func(netip.Addr, uint8, fmt.Stringer)) {
	s.judge.Breaches(func(yield func(netip.Addr) bool) {
		for i := range p.Backends {
			if !yield(p.Backends[i].IP) {
				return
			}
		}
	}, visit)
}
