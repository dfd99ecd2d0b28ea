package dnsserver

import (
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// keptNamespaces has what was found in large namespaces: a service that shows that there is one, or that there was none
// at a revision. It may be used by any number of goroutines.
type keptNamespaces struct {
	mu  sync.Mutex
	all map[keptNamespace]found
}

type keptNamespace struct{ namespace, cluster string }

type found struct {
	service  string // in the namespace; empty for none
	revision uint64 // of the services
	at       time.Time
}

// Bounds of what is kept of namespaces. Whoever asks for small ones again has them looked through again.
const (
	largeNamespace     = 1000                   // services that were looked at
	mostNamespaces     = 1024                   // when there are more, all are forgotten
	namespacesInterval = 100 * time.Millisecond // how old it may be that there was no service
)

// hasNamespace reports whether there is a service in a namespace, or one of a cluster.
func (a *answer) hasNamespace(namespace, cluster string) bool {
	counts := func(g *services.Global) bool {
		return cluster == "" && g.Shared() || cluster != "" && g.Part(cluster) != nil
	}
	key, k, table := keptNamespace{namespace, cluster}, &a.spaces, a.view.Services.Global()
	k.mu.Lock() // one at a time looks through a large one
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
