package xdsserver

import (
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// podChanges finds the namespaces whose pods have changed. It belongs to one goroutine.
type podChanges struct {
	view     *view.View
	revision uint64 // changes up to it were read; 0 at first, as the resources that clients follow may be older than podChanges
	some     []ipcache.Change
}

func newPodChanges(v *view.View) podChanges {
	return podChanges{view: v, some: make([]ipcache.Change, 0, 1024)}
}

// next returns the namespaces whose pods have changed since the last call; all is true when there were too many
// changes.
func (p *podChanges) next() (namespaces map[string]struct{}, all bool) {
	newest := p.view.IPs.Revision()
	namespaces = make(map[string]struct{})
	for p.revision < newest {
		some, held := p.view.IPs.Since(p.revision, p.some)
		if !held {
			p.revision = newest
			return nil, true
		}
		for _, change := range some {
			for _, e := range []*ipcache.Entry{change.Before, change.After} {
				if e != nil && e.Pod() != "" {
					namespaces[e.Namespace()] = struct{}{}
				}
			}
		}
		p.revision += uint64(len(some))
	}
	clear(p.some[:cap(p.some)]) // so that removed entries can be freed
	return namespaces, false
}

// lookAtPods updates the followed services that have backends of both families, if pods in their namespaces have
// changed. Changes of pods do not change the services themselves.
func (f *changes) lookAtPods() {
	f.mu.Lock()
	dual := f.dualStack()
	f.mu.Unlock()
	namespaces, all := f.pods.next()
	if !all {
		dual = slices.DeleteFunc(dual, func(s serviceName) bool { _, changed := namespaces[s.namespace]; return !changed })
	}
	if len(dual) == 0 {
		return
	}
	changed := make(map[serviceName]struct{}, len(dual))
	for _, s := range dual {
		changed[s] = struct{}{}
	}
	f.update(changed)
}

// dualStack returns the followed services in which a cluster has backends of both families; c.mu is held.
func (c *catalog) dualStack() (all []serviceName) {
	for s, targets := range c.targets {
		for _, a := range targets {
			if a.now != nil && a.now.dual {
				all = append(all, s)
				break
			}
		}
	}
	return all
}
