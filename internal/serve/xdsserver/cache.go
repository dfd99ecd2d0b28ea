package xdsserver

import (
	"maps"
	"strconv"
	"sync"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// maxAnswer bounds the resources of one answer, in bytes: gRPC clients refuse messages of more than 4 MiB, and lose
// their stream. The other resources are sent when the client has confirmed this answer.
const maxAnswer = 3 << 20

// maxRemoved bounds the removed resources that are known while a cluster is unread. Above the limit, each absent resource counts as removed.
const maxRemoved = 10_000

// resourceCache has the encoded resources of one type, and answers the watches of streams. A watch is answered once;
// go-control-plane makes the next one when the client has confirmed the answer.
type resourceCache struct {
	kind   kind
	prefix string // of versions; unique to this process
	// Requests with the type alone: go-control-plane reads no other field of the request of an answer.
	ofType      *discovery.DiscoveryRequest
	ofTypeDelta *discovery.DeltaDiscoveryRequest

	// unread reports whether resources that are not here may exist, since a cluster was not read; nil: never.
	unread func() bool

	mu      sync.Mutex
	removed map[string]struct{} // resources that were removed while unread, at most maxRemoved
	updates uint64
	version string // of the last update
	entries map[string]entry
	watches map[string]map[*watch]struct{} // by name
	all     map[*watch]struct{}            // those that follow everything
}

// entry is a resource, with the version in which it was last changed.
type entry struct {
	*body
	since string
}

// watch is a stream that waits for an answer, which is sent to one of the channels.
type watch struct {
	sub   cache.Subscription
	whole chan cache.Response
	delta chan cache.DeltaResponse
}

func newResourceCache(k kind, prefix string) *resourceCache {
	return &resourceCache{
		kind: k, prefix: prefix, version: prefix + "0",
		ofType: &discovery.DiscoveryRequest{TypeUrl: k.url()}, ofTypeDelta: &discovery.DeltaDiscoveryRequest{TypeUrl: k.url()},
		entries: make(map[string]entry), removed: make(map[string]struct{}), watches: make(map[string]map[*watch]struct{}), all: make(map[*watch]struct{}),
	}
}

// CreateWatch answers a state-of-the-world request, now or when there is a change.
func (r *resourceCache) CreateWatch(request *cache.Request, sub cache.Subscription, to chan cache.Response) func() {
	first := request.GetResponseNonce() == "" // always answered, as the client waits for it
	return r.create(&watch{sub: sub, whole: to}, first)
}

// CreateDeltaWatch answers an incremental request, now or when there is a change.
func (r *resourceCache) CreateDeltaWatch(request *cache.DeltaRequest, sub cache.Subscription, to chan cache.DeltaResponse) func() {
	return r.create(&watch{sub: sub, delta: to}, sub.IsWildcard() && request.GetResponseNonce() == "")
}

func (r *resourceCache) create(w *watch, always bool) (cancel func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answer(w, always) {
		return func() {}
	}
	if w.sub.IsWildcard() {
		r.all[w] = struct{}{}
	} else {
		for name := range w.sub.SubscribedResources() {
			if r.watches[name] == nil {
				r.watches[name] = make(map[*watch]struct{})
			}
			r.watches[name][w] = struct{}{}
		}
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.remove(w)
	}
}

// remove removes a watch, if it is there; r.mu is held.
func (r *resourceCache) remove(w *watch) {
	delete(r.all, w)
	if w.sub.IsWildcard() {
		return
	}
	for name := range w.sub.SubscribedResources() {
		delete(r.watches[name], w)
		if len(r.watches[name]) == 0 {
			delete(r.watches, name)
		}
	}
}

// update replaces and removes resources, and answers the watches that wait for them.
func (r *resourceCache) update(changed map[string]*body, gone []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.updates++
	r.version = r.prefix + strconv.FormatUint(r.updates, 10)
	concerned := make(map[*watch]struct{})
	concern := func(name string) { maps.Copy(concerned, r.watches[name]) }
	for name, b := range changed {
		delete(r.removed, name)
		if r.entries[name].body != b {
			r.entries[name] = entry{b, r.version}
			concern(name)
		}
	}
	unread := r.isUnread()
	if !unread {
		clear(r.removed)
	}
	for _, name := range gone {
		delete(r.entries, name)
		concern(name)
		if unread && len(r.removed) < maxRemoved {
			r.removed[name] = struct{}{}
		}
	}
	maps.Copy(concerned, r.all)
	for w := range concerned {
		if r.answer(w, false) {
			r.remove(w)
		}
	}
}

// answer answers a watch if its client lacks a change, or always, and reports whether it did. r.mu is held.
func (r *resourceCache) answer(w *watch, always bool) bool {
	changed, gone := r.difference(w)
	switch {
	case len(changed)+len(gone) == 0 && !always:
		return false
	case w.whole != nil && r.kind.complete():
		changed = r.followed(w.sub)
	case w.whole != nil && len(changed) == 0 && !always: // such an answer cannot report that a resource is gone
		return false
	default:
		changed = r.page(changed)
	}
	a := &answer{from: r, names: changed, gone: gone, version: r.version, known: maps.Clone(w.sub.ReturnedResources())}
	for _, name := range changed {
		e := r.entries[name]
		a.bodies = append(a.bodies, e.body)
		a.known[name] = w.versionOf(e)
	}
	for _, name := range gone {
		delete(a.known, name)
	}
	if w.whole != nil {
		w.whole <- wholeAnswer{a} // the channel has room for one
	} else {
		w.delta <- deltaAnswer{a}
	}
	return true
}

// versionOf returns the version of a resource in the form that the client of the watch reports.
func (w *watch) versionOf(e entry) string {
	if w.whole != nil {
		return e.since
	}
	return e.body.version()
}

// difference returns the followed resources that the client does not have in the current version, and the resources
// that it has but that are gone or no longer followed. r.mu is held.
func (r *resourceCache) difference(w *watch) (changed, gone []string) {
	known, names, everything := w.sub.ReturnedResources(), w.sub.SubscribedResources(), w.sub.IsWildcard()
	look := func(name string, e entry) {
		if version, ok := known[name]; !ok || version != w.versionOf(e) {
			changed = append(changed, name)
		}
	}
	if everything {
		for name, e := range r.entries {
			look(name, e)
		}
	} else {
		for name := range names {
			if e, ok := r.entries[name]; ok {
				look(name, e)
			}
		}
	}
	unread := sync.OnceValue(r.isUnread)
	for name := range known {
		_, exists := r.entries[name]
		_, follows := names[name]
		switch {
		case !follows && !everything:
			gone = append(gone, name)
		case exists, follows && r.kind == endpointKind: // held back
		case r.isRemoved(name) || !unread():
			gone = append(gone, name)
		}
	}
	return changed, gone
}

// isUnread reports whether a resource that is absent may exist. A client that has it, from another agent or from this one
// before it started again, keeps it meanwhile. r.mu is held.
func (r *resourceCache) isUnread() bool { return r.unread != nil && r.unread() }

func (r *resourceCache) isRemoved(name string) bool {
	_, is := r.removed[name]
	return is || len(r.removed) == maxRemoved
}

// absent returns the resources that a client has and that are not here.
func (r *resourceCache) absent(sub cache.Subscription) (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range sub.ReturnedResources() {
		if _, exists := r.entries[name]; !exists {
			names = append(names, name)
		}
	}
	return names
}

// followed returns the names that a client follows and that have a resource; r.mu is held.
func (r *resourceCache) followed(sub cache.Subscription) (names []string) {
	if sub.IsWildcard() {
		for name := range r.entries {
			names = append(names, name)
		}
		return names
	}
	for name := range sub.SubscribedResources() {
		if _, ok := r.entries[name]; ok {
			names = append(names, name)
		}
	}
	return names
}

// length is the number of resources.
func (r *resourceCache) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.entries)
}

// page returns the first of these resources that fit into one answer, at least one; r.mu is held.
func (r *resourceCache) page(names []string) []string {
	size := 0
	for i, name := range names {
		if size += r.entries[name].size(name) + len(name) + answerOverhead; size > maxAnswer && i > 0 {
			return names[:i]
		}
	}
	return names
}
