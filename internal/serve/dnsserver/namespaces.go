package dnsserver

import (
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// keptNamespaces keeps the results of searches in large namespaces: the name of a service that was found, or the
// revision at which there was none. It may be used by any number of goroutines.
type keptNamespaces struct {
	mu  sync.Mutex
	all map[keptNamespace]found
}

type keptNamespace struct{ namespace, cluster string }

type found struct {
	service  string // its name; empty: none was found
	revision uint64 // of the services
	at       time.Time
}

// Bounds of the kept results. Small namespaces are searched again for each question.
const (
	largeNamespace     = 1000                   // services that a search has looked at
	mostNamespaces     = 1024                   // when there are more, all are removed
	namespacesInterval = 100 * time.Millisecond // how long a result without a service is used after a change
)

// hasNamespace reports whether a namespace has a shared service or, with a cluster, any service of that cluster.
func (a *answer) hasNamespace(namespace, cluster string) bool {
	counts := func(g *services.Global) bool {
		return cluster == "" && g.Shared() || cluster != "" && g.Part(cluster) != nil
	}
	key, k, table := keptNamespace{namespace, cluster}, &a.spaces, a.view.Services.Global()
	k.mu.Lock() // one search of a large namespace at a time
	defer k.mu.Unlock()
	revision, now := table.Revision(a.txn), a.view.Now()
	if last, is := k.all[key]; is {
		if last.service == "" && (last.revision == revision || now.Sub(last.at) < namespacesInterval && !now.Before(last.at)) {
			return false
		}
		if g, _, has := table.Get(a.txn, services.GlobalByName(namespace, last.service)); has && counts(g) {
			return true
		}
	}
	n, service := 0, ""
	for g := range services.GlobalByNamespace(a.txn, table, namespace) {
		if n++; counts(g) {
			service = g.Name
			break
		}
	}
	if n >= largeNamespace {
		if len(k.all) >= mostNamespaces || k.all == nil {
			k.all = make(map[keptNamespace]found)
		}
		k.all[keptNamespace{namespace, cluster}] = found{service, revision, now}
	}
	return service != ""
}
