package findings

import (
	"fmt"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// strays finds the remote clusters with claims that break a rule: one conflict for
// each cluster and rule, however many claims there are.
type strays struct {
	ips       *ipcache.Cache
	revision  uint64 // of the last tallies
	conflicts *conflictSet
}

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
	d.conflicts.setAll(all, v)
}

// strayConflict returns the conflict for the claims of a cluster that break a rule. Its message has only a rough
// number: the exact one may change with every batch.
func strayConflict(t ipcache.Tally) *Conflict {
	rule, name := t.Rule.Info(), t.Cluster.Name
	c := &Conflict{
		Kind: KindClaim, Code: rule.Conflict, Subject: name + "/" + rule.Topic, Clusters: []string{name}, Rule: rule.Text,
	}
	b := t.Example.Breach
	if t.Rule == ipcache.RuleForeignNetwork {
		c.Clusters = []string{name, b.Whose}
		if t.Barred {
			c.Clusters = []string{b.Whose, name}
		}
	}
	effect := "the agent uses such claims, as Cilium does, unless --claim-policy=enforce is set"
	if t.Barred {
		effect = "the agent does not use such claims"
	}
	c.Message = fmt.Sprintf("%s of %s %s, such as %s: %s; %s", roughly(t.Claims, "claim"), name, predicate(rule, t.Claims), t.Example.Entry.Prefix(), b, effect)
	return c
}

// predicate returns the text of a rule for a number of claims or backends.
func predicate(rule ipcache.RuleInfo, n int) string {
	if n == 1 {
		return rule.Is
	}
	return rule.Are
}

// roughly formats a number of things, rounded down to its first digit, so that it seldom changes.
func roughly(n int, noun string) string {
	power := 1
	for n/power >= 10 {
		power *= 10
	}
	if power == 1 {
		return printer.Count(n, noun)
	}
	return fmt.Sprintf("at least %d %ss", n/power*power, noun)
}
