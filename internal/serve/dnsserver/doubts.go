package dnsserver

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// doubts finds the clusters whose data may be out of date. It is used for each question, and looks at the clusters at
// most once per doubtInterval. Its methods may be called by any goroutine.
type doubts struct {
	view  *view.View
	ready atomic.Bool // MayDeny was true once, and stays true
	last  atomic.Pointer[unconfirmed]
}

// unconfirmed has the clusters whose services are not known to be up to date at a moment.
type unconfirmed struct {
	at       time.Time
	clusters []string
}

// doubtInterval is the maximum age of the list of unconfirmed clusters.
const doubtInterval = time.Second

func (d *doubts) isReady() bool {
	if d.ready.Load() {
		return true
	}
	ready, _ := d.view.MayDeny()
	if ready {
		d.ready.Store(true)
	}
	return ready
}

func (d *doubts) unconfirmed() []string {
	now := d.view.Now()
	last := d.last.Load()
	if last == nil || now.Sub(last.at) >= doubtInterval || now.Before(last.at) {
		s := view.Snapshot{Known: d.view.ClustersByName()}
		last = &unconfirmed{now, s.Unconfirmed(view.Families(view.Services)...)}
		d.last.Store(last)
	}
	return last.clusters
}

// staleFor returns a text with the clusters that an answer depends on and that are not known to be up to date; empty
// for none. The answer for a service depends on the clusters that have a part in it. A negative answer depends on all
// clusters.
func (d *doubts) staleFor(a *answer) string {
	if a.fixed {
		return ""
	}
	all := d.unconfirmed()
	if len(all) > 0 && a.service != nil {
		all = slices.DeleteFunc(slices.Clone(all), func(cluster string) bool {
			return a.service.Part(cluster) == nil || a.ownPartOnly && !a.service.Part(cluster).Local()
		})
	}
	switch {
	case len(all) == 0:
		return ""
	case len(all) > mostNamed:
		return "not known as of now: " + strings.Join(all[:mostNamed], ", ") + " and others"
	}
	return "not known as of now: " + strings.Join(all, ", ")
}

const mostNamed = 3 // clusters that are named in an answer
