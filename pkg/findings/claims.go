package findings

import (
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// claims finds the prefixes that several clusters claim. The cache itself has all contested prefixes, so only the found
// conflicts are kept here.
type claims struct {
	ips       *ipcache.Cache
	page      []ipcache.Change
	revision  uint64 // of the cache, up to which its changes were read
	conflicts *conflictSet
}

// look judges the prefixes that have changed since the last look.
func (d *claims) look(v *verdicts) {
	touched := make(map[netip.Prefix]bool)
	for {
		changes, held := d.ips.Since(d.revision, d.page)
		if !held {
			d.lookAtAll(v)
			return
		}
		for _, ch := range changes {
			if ch.Conflict {
				touched[ch.Prefix()] = true
			}
		}
		d.revision += uint64(len(changes))
		if len(changes) < cap(d.page) {
			break
		}
	}
	d.judge(maps.Keys(touched), v)
	d.conflicts.judgeMore(func(key string) { d.judgeKey(key, v) })
}

// lookAtAll judges everything again, when there were more changes than the cache keeps.
func (d *claims) lookAtAll(v *verdicts) {
	d.revision = d.ips.Revision()
	s := d.ips.Snapshot() // changes that are not in the snapshot are read at the next look
	if at := s.Revision(); at < d.revision {
		d.revision = at
	}
	d.judge(s.Contested(), v)
	for _, key := range d.conflicts.keys() {
		d.judgeKey(key, v)
	}
}

// judgeKey judges the prefix of a conflict again.
func (d *claims) judgeKey(key string, v *verdicts) {
	if p, err := netip.ParsePrefix(subjectOf(key)); err == nil {
		d.judge(func(yield func(netip.Prefix) bool) { yield(p) }, v)
	}
}

// judge compares the claims on some prefixes with the known conflicts.
func (d *claims) judge(prefixes iter.Seq[netip.Prefix], v *verdicts) {
	for p := range prefixes {
		claims, conflict := d.ips.Contest(p)
		var now *Conflict
		if conflict {
			now = addressConflict(p, claims)
		}
		for _, kind := range []Kind{KindIP, KindNodeIP} {
			if now != nil && now.Kind == kind {
				d.conflicts.set(now.Key(), now, v)
			} else {
				d.conflicts.set(key(kind, p.String()), nil, v)
			}
		}
	}
}

// addressConflict returns the conflict between the claims on a prefix, of which the first is the winner; nil when all
// are pod networks: networks judges these together with overlaps. The claims must be of more than one cluster.
func addressConflict(p netip.Prefix, claims []*ipcache.Entry) *Conflict {
	kind := kindOf(claims)
	if kind == KindPodCIDR {
		return nil
	}
	c := &Conflict{Kind: kind, Code: codes.AddressConflict, Subject: p.String()}
	if kind == KindNodeIP {
		c.Code = codes.NodeIPConflict
	}
	winner := claims[0]
	var rival *ipcache.Entry // the strongest claim of another cluster
	for _, e := range claims {
		if name := e.Cluster().Name; !c.Involves(name) {
			c.Clusters = append(c.Clusters, name)
		}
		if rival == nil && *e.Cluster() != *winner.Cluster() {
			rival = e
		}
	}
	c.Rule = rival.Weakness(winner)
	c.Message = fmt.Sprintf("%s is claimed by %s; %s counts (%s). Traffic for the others goes there: give each cluster addresses of its own",
		p, list(c.Clusters), winner.Cluster().Name, c.Rule)
	return c
}

// kindOf returns the kind of the conflict between claims on one prefix.
func kindOf(claims []*ipcache.Entry) Kind {
	all := func(is func(ipcache.Kind) bool) bool {
		return !slices.ContainsFunc(claims, func(e *ipcache.Entry) bool { return !is(e.Kind()) })
	}
	switch {
	case all(func(k ipcache.Kind) bool { return k == ipcache.KindPodCIDR }):
		return KindPodCIDR
	case all(func(k ipcache.Kind) bool {
		return k == ipcache.KindNode || k == ipcache.KindHealth || k == ipcache.KindIngress
	}):
		return KindNodeIP
	default:
		return KindIP
	}
}
