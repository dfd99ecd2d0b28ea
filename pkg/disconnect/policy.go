package disconnect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Delays are the times of the policy. [DefaultDelays] has the defaults and their reasons.
type Delays struct {
	// Demote is the time since its services were last known to be up to date after which a cluster is demoted; 0 means
	// never.
	Demote time.Duration
	// Withdraw is the time since the same moment after which it is withdrawn; 0 means never, and otherwise it is not
	// before Demote.
	Withdraw time.Duration
	// Silence is how long the heartbeat of a cluster whose etcd answers may be missing until it is demoted; 0 means
	// that it is never demoted for this. Silence never withdraws.
	Silence time.Duration
	// Restore is how long evidence must be good without a break until a cluster is kept again. It must be greater than
	// 0.
	Restore time.Duration
}

// DefaultDelays returns the delays for production.
func DefaultDelays() Delays {
	return Delays{
		// A restart of a clustermesh-apiserver with a new image takes a minute or less, and its backends work
		// meanwhile. Demoting costs little: traffic goes to other clusters if these have backends; otherwise nothing
		// changes.
		Demote: 2 * time.Minute,
		// After a quarter of an hour without contact, pods have been replaced and their addresses given to others.
		// Before that, withdrawing would only cost capacity, for a node's maintenance or a restore of etcd.
		Withdraw: 15 * time.Minute,
		// The heartbeat is written once a minute. Ten missing heartbeats show that changes in the cluster are no longer
		// written. But its etcd answers, so the known entries may well be correct, and are not withdrawn.
		Silence: 10 * time.Minute,
		// Several probes, and longer than the first restarts of a crash loop take: a server that starts and stops
		// repeatedly is not restored in between.
		Restore: 30 * time.Second,
	}
}

// Policy has the delays for each cluster.
type Policy struct {
	Delays                     // of clusters without their own delays
	Clusters map[string]Delays // complete ones, by cluster
}

// DefaultPolicy returns a policy with the default delays for every cluster.
func DefaultPolicy() Policy { return Policy{Delays: DefaultDelays()} }

// Of returns the delays of a cluster.
func (p Policy) Of(cluster string) Delays {
	if d, own := p.Clusters[cluster]; own {
		return d
	}
	return p.Delays
}

// ParsePolicy parses a policy from options on top of the defaults: demote, withdraw, silence and restore, each for all
// clusters, or for one as CLUSTER.demote and so on. The error names every wrong key and value.
func ParsePolicy(options map[string]string) (Policy, error) {
	p := DefaultPolicy()
	var errs []error
	keys := slices.SortedFunc(maps.Keys(options), func(a, b string) int { // options for all clusters come first
		return cmp.Or(cmp.Compare(strings.Count(a, "."), strings.Count(b, ".")), cmp.Compare(a, b))
	})
	for _, key := range keys {
		if err := p.set(key, options[key]); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", key, options[key], err))
		}
	}
	if len(errs) == 0 {
		errs = append(errs, p.validate())
	}
	return p, errors.Join(errs...)
}

// set applies one option. Those for all clusters must come before those for one.
func (p *Policy) set(key, value string) error {
	cluster, name := "", key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		cluster, name = key[:i], key[i+1:]
		if err := wire.ValidateClusterName(cluster); err != nil {
			return fmt.Errorf("%q is no name of a cluster, which %w", cluster, err)
		}
	}
	d := p.Of(cluster)
	field := map[string]*time.Duration{
		"demote": &d.Demote, "withdraw": &d.Withdraw, "silence": &d.Silence, "restore": &d.Restore,
	}[name]
	if field == nil {
		return errors.New("want demote, withdraw, silence or restore, or one of these behind the name of a cluster, as in east.demote")
	}
	span, err := time.ParseDuration(value)
	switch {
	case err != nil || span < 0:
		return errors.New("want a duration with its unit, such as 90s or 5m, or 0 for never")
	case span == 0 && name == "restore":
		return errors.New("want more than 0: otherwise a cluster with an unstable connection changes every service each time")
	}
	*field = span
	if cluster == "" {
		p.Delays = d
		return nil
	}
	if p.Clusters == nil {
		p.Clusters = make(map[string]Delays)
	}
	p.Clusters[cluster] = d
	return nil
}

// validate finds delays that contradict each other.
func (p *Policy) validate() error {
	check := func(prefix string, d Delays) error {
		if d.Demote > 0 && d.Withdraw > 0 && d.Withdraw < d.Demote {
			return fmt.Errorf("%swithdraw=%q: want at least %sdemote, which is %s, or 0 for never", prefix, d.Withdraw, prefix, d.Demote)
		}
		return nil
	}
	errs := []error{check("", p.Delays)}
	for _, cluster := range slices.Sorted(maps.Keys(p.Clusters)) {
		errs = append(errs, check(cluster+".", p.Clusters[cluster]))
	}
	return errors.Join(errs...)
}
