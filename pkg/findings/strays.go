package findings

import (
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// strays finds the remote clusters with claims that break a rule: one conflict for
// each cluster and rule, however many claims there are.
type strays struct {
	ips      *ipcache.Cache
	revision uint64 // of the tallies that were looked at last
	book     *book
}

func newStrays(ips *ipcache.Cache) *strays { return &strays{ips: ips, book: newBook()} }

func (d *strays) look(v *verdicts) {
	tallies, revision := d.ips.Tallies(d.revision)
	if revision == d.revision {
		return
	}
	d.revision = revision
	all := make([]*Conflict, len(tallies))
	for i, t := range tallies {
		all[i] = strayConflict(t)
	}
	d.book.settleAll(all, v)
}

// strayConflict is the conflict that the claims of a cluster make which break a
// rule. Its words have the number only roughly: it may change with every batch.
func strayConflict(t ipcache.Tally) *Conflict {
	code, topic, what := strayCode(t.Rule)
	name := t.Cluster.Name
	c := &Conflict{
		Kind: KindClaim, Code: code, Subject: name + "/" + topic, Clusters: []string{name}, Rule: ruleText(t.Rule),
	}
	b := t.Example.Breach
	if t.Rule == ipcache.RuleForeignNetwork {
		c.Clusters = []string{name, b.Whose}
		if t.Barred {
			c.Clusters = []string{b.Whose, name}
		}
	}
	effect := "they count, as with Cilium, until --claim-policy=enforce"
	if t.Barred {
		effect = "they do not count"
	}
	c.Message = fmt.Sprintf("%s claims of %s %s, such as %s: %s; %s", roughly(t.Claims), name, what, t.Example.Entry.Prefix(), b, effect)
	return c
}

// strayCode is the code of a rule, with its name within a subject, and what claims
// do that break it.
func strayCode(r ipcache.Rule) (code codes.Code, topic, what string) {
	switch r {
	case ipcache.RuleOwnNetwork:
		return codes.OwnNetworkClaimed, "own-network", "are inside the own networks"
	case ipcache.RuleSpecialUse:
		return codes.SpecialUseClaimed, "special-use", "are on addresses for special use"
	case ipcache.RuleForeignNetwork:
		return codes.ForeignNetworkClaimed, "foreign-network", "are inside pod networks of other clusters"
	default:
		return codes.ReservedIdentityClaimed, "reserved-identity", "have privileged identities"
	}
}

func ruleText(r ipcache.Rule) string {
	switch r {
	case ipcache.RuleOwnNetwork:
		return "the own networks are never a remote's"
	case ipcache.RuleSpecialUse:
		return "nobody has addresses for special use"
	case ipcache.RuleForeignNetwork:
		return "an address in a pod network is of a cluster whose nodes announce it"
	default:
		return "a remote does not vouch for privileged identities"
	}
}

// roughly is a number with its first digit only, so that it seldom changes.
func roughly(n int) string {
	power := 1
	for n/power >= 10 {
		power *= 10
	}
	if power == 1 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("at least %d", n/power*power)
}
