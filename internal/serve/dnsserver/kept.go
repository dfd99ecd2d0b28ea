package dnsserver

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// keptKey is the key of a kept value. Its names have the case of the service, so the case of the question does not
// matter.
type keptKey struct {
	kind            keptKind
	namespace, name string // of the service
	cluster         string // the cluster whose backends are used; empty: all clusters
	port, protocol  string // of a part; empty for all ports
}

type keptKind uint8

// Kinds of kept values.
const (
	keptPart  keptKind = iota // a [part]
	keptPorts                 // the [ports] of a service
	keptHosts                 // the [hosts] of a cluster's part in a service
)

// kept is a value that was made from a service. It is valid as long as the service is the same object. The reference
// is weak, so it does not keep the service in memory.
type kept struct {
	key     keptKey
	service weak.Pointer[services.Global]
	value   any
	bytes   int64
}

func (e *kept) is(key *keptKey, g *services.Global) bool {
	return e != nil && e.key == *key && e.service.Value() == g
}

// Bounds of the kept values, in bytes.
const (
	mostKept    = 16 << 20
	mostKeptOne = mostKept / 8 // a larger value is made again for each question
	keptSize    = 256          // of an entry without its value and its texts
)

// keptAnswers keeps values that were made for earlier questions, in a bounded number of bytes. A new entry replaces
// its old version, or one of the few others in its places. Then other entries are removed, in turn, until there is
// room. It may be used by any number of goroutines.
type keptAnswers struct {
	seed   maphash.Seed
	all    [4096]keptPlaces
	making [64]sync.Mutex // for entries with the same places: one is made at a time, as many questions may need it at once

	mu    sync.Mutex // guards changes of all, and the fields below
	bytes int64
	next  int // the counter that selects the next entry to remove
}

// keptPlaces has the places for an entry. With only one place, two entries for the same place would replace each other
// again and again.
type keptPlaces [4]atomic.Pointer[kept]

func (p *keptPlaces) find(key *keptKey, g *services.Global) *kept {
	for i := range p {
		if e := p[i].Load(); e.is(key, g) {
			return e
		}
	}
	return nil
}

// placeFor returns the place for a new entry. If all places have other entries, next selects one of them.
func (p *keptPlaces) placeFor(key *keptKey, next int) *atomic.Pointer[kept] {
	place := &p[next%len(p)]
	for i := range p {
		switch e := p[i].Load(); {
		case e == nil:
			place = &p[i]
		case e.key == *key:
			return &p[i]
		}
	}
	return place
}

// remember returns the value that is kept for a service, or makes it; bytes is the memory that it takes.
func remember[T any](k *keptAnswers, key keptKey, g *services.Global, make func() (made T, bytes int64)) T {
	at := maphash.Comparable(k.seed, key) % uint64(len(k.all))
	if e := k.all[at].find(&key, g); e != nil {
		return e.value.(T)
	}
	turn := &k.making[at%uint64(len(k.making))]
	turn.Lock()
	defer turn.Unlock()
	if e := k.all[at].find(&key, g); e != nil {
		return e.value.(T)
	}
	made, bytes := make()
	if bytes <= mostKeptOne {
		key.namespace, key.name, key.cluster = strings.Clone(key.namespace), strings.Clone(key.name), strings.Clone(key.cluster)
		key.port, key.protocol = strings.Clone(key.port), strings.Clone(key.protocol)
		bytes += int64(keptSize + len(key.namespace) + len(key.name) + len(key.cluster) + len(key.port) + len(key.protocol))
		k.put(&k.all[at], &kept{key, weak.Make(g), made, bytes})
	}
	return made
}

// put keeps an entry, and removes others until there is room.
func (k *keptAnswers) put(at *keptPlaces, e *kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next++
	k.swap(at.placeFor(&e.key, k.next), e)
	for k.bytes > mostKept {
		k.next = (k.next + 1) % len(k.all)
		for i := range k.all[k.next] {
			if place := &k.all[k.next][i]; place.Load() != e {
				k.swap(place, nil)
			}
		}
	}
}

func (k *keptAnswers) swap(place *atomic.Pointer[kept], e *kept) {
	if e != nil {
		k.bytes += e.bytes
	}
	if old := place.Swap(e); old != nil {
		k.bytes -= old.bytes
	}
}
