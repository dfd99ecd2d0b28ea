package findings

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// Mesh is what a Watch asks about the clusters. Its methods answer at once.
type Mesh interface {
	// Clusters describes every cluster at this moment, sorted by name.
	Clusters() []remotecluster.Status
	// Local describes the own cluster, when its kvstore is read.
	Local() (remotecluster.Status, bool)
	// Revision grows with every change of a cluster's state.
	Revision() uint64
}

// How often a Watch looks.
const (
	clustersInterval = 200 * time.Millisecond // at the clusters, when something changed about them
	countsInterval   = time.Second            // at their counts, which change without it
	addressesPause   = 10 * time.Millisecond  // between two looks at the addresses, so that many come at once
)

// Watch derives the findings.
type Watch struct {
	findings *Findings
	mesh     Mesh
	ips      *ipcache.Cache

	page      []ipcache.Change
	revision  uint64 // of the cache, up to where its changes are known
	clusters  []remotecluster.Status
	own       []remotecluster.Status // the own cluster, if its kvstore is read
	seen      uint64                 // the mesh's revision when clusters was taken
	looked    time.Time              // when that was
	conflicts map[string]Kind        // by prefix: those that there are
}

// NewWatch returns a watch that has not looked yet.
func NewWatch(f *Findings, mesh Mesh, ips *ipcache.Cache) *Watch {
	return &Watch{findings: f, mesh: mesh, ips: ips, page: make([]ipcache.Change, 0, 1024), conflicts: make(map[string]Kind)}
}

// Run looks until ctx ends. It is called once.
func (w *Watch) Run(ctx context.Context) error {
	tick := time.NewTicker(clustersInterval)
	defer tick.Stop()
	w.Look(time.Now())
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case now := <-tick.C:
			w.Look(now)
		case <-w.ips.Changed(w.revision):
			if err := waiting.Sleep(ctx, addressesPause); err != nil {
				return err
			}
			// The clusters wait for the tick: while hundreds of them begin, each
			// change of an address would have all of them looked at.
			came, gone := w.addresses()
			w.findings.apply(time.Now(), came, gone, nil)
		}
	}
}

// Look takes everything that is new to the tables. Run calls it; it is called by
// one goroutine at a time.
func (w *Watch) Look(now time.Time) {
	came, gone := w.addresses()
	happened, more, less := w.meshChanges(now)
	w.findings.apply(now, append(came, more...), append(gone, less...), happened)
}

// addresses finds the conflicts that came and went since the last look.
func (w *Watch) addresses() (came []*Conflict, gone []string) {
	touched := make(map[netip.Prefix]bool)
	for {
		changes, held := w.ips.Since(w.revision, w.page)
		if !held {
			return w.everyAddress()
		}
		for _, ch := range changes {
			if ch.Conflict {
				touched[ch.Prefix()] = true
			}
		}
		w.revision += uint64(len(changes))
		if len(changes) < cap(w.page) {
			break
		}
	}
	prefixes := make([]netip.Prefix, 0, len(touched))
	for p := range touched {
		prefixes = append(prefixes, p)
	}
	slices.SortFunc(prefixes, netip.Prefix.Compare)
	return w.judge(prefixes)
}

// everyAddress looks at everything again: more has changed than is held.
func (w *Watch) everyAddress() (came []*Conflict, gone []string) {
	w.revision = w.ips.Revision()
	s := w.ips.Snapshot() // what has changed since it was made, or is still to be in it, comes as changes
	if at := s.Revision(); at < w.revision {
		w.revision = at
	}
	prefixes := slices.Collect(s.Contested())
	known := make(map[string]bool, len(prefixes))
	for _, p := range prefixes {
		known[p.String()] = true
	}
	for subject := range w.conflicts {
		if p, err := netip.ParsePrefix(subject); err == nil && !known[subject] {
			prefixes = append(prefixes, p)
		}
	}
	return w.judge(prefixes)
}

// judge compares the claims on some prefixes with the conflicts that are known.
func (w *Watch) judge(prefixes []netip.Prefix) (came []*Conflict, gone []string) {
	for _, p := range prefixes {
		claims, conflict := w.ips.Contest(p)
		subject := p.String()
		before, was := w.conflicts[subject]
		if conflict {
			c := addressConflict(p, claims)
			w.conflicts[subject] = c.Kind
			came = append(came, c)
		} else {
			delete(w.conflicts, subject)
		}
		if was && (!conflict || w.conflicts[subject] != before) {
			gone = append(gone, string(before)+"/"+subject)
		}
	}
	return came, gone
}

// meshChanges tells what became of the clusters since the last look.
func (w *Watch) meshChanges(now time.Time) (happened []Event, came []*Conflict, gone []string) {
	revision := w.mesh.Revision()
	if revision == w.seen && now.Sub(w.looked) < countsInterval {
		return nil, nil, nil
	}
	clusters := w.mesh.Clusters()
	happened = clusterEvents(w.clusters, clusters)
	if own, is := w.mesh.Local(); is {
		happened = append(happened, ownEvents(w.own, own)...)
		w.own = []remotecluster.Status{own}
	}
	came, gone = idConflicts(w.clusters, clusters)
	w.clusters, w.seen, w.looked = clusters, revision, now
	return happened, came, gone
}
