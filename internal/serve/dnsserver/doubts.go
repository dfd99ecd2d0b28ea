package dnsserver

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// doubts is what is not known as of now. It is asked for with each question, and found out at most
// once in a while. Its methods may be called by any goroutine.
type doubts struct {
	view  *view.View
	ready atomic.Bool // which the view stays
	last  atomic.Pointer[unconfirmed]
}

// unconfirmed are the clusters whose services are not known as of a moment.
type unconfirmed struct {
	at       time.Time
	clusters []string
}

// doubtInterval is how old the list of unconfirmed clusters may be.
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

// staleFor says which clusters an answer rests on that are not known as of now; empty for none. A
// service rests on those that have a part in it, a name that is not found on all of them.
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

const mostNamed = 3 // clusters, in an answer
