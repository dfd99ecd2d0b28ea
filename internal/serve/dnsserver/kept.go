package dnsserver

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// keptKey is what something is kept for, in the case of the service: a question's own case does not matter.
type keptKey struct {
	kind            keptKind
	namespace, name string // of the service
	cluster         string // whose backends alone are meant; empty for those of all
	port, protocol  string // of a part; empty for all ports
}

type keptKind uint8

// What is kept.
const (
	keptPart  keptKind = iota // a [part]
	keptPorts                 // the [ports] of a service
	keptHosts                 // the [hosts] of a cluster's part in a service
)

// kept is something that follows from a service, as long as the service is the same object, which it does not
// keep in memory.
type kept struct {
	key     keptKey
	service weak.Pointer[services.Global]
	value   any
	bytes   int64
}

func (e *kept) is(key *keptKey, g *services.Global) bool {
	return e != nil && e.key == *key && e.service.Value() == g
}

// Bounds of what is kept, in bytes.
const (
	mostKept    = 16 << 20
	mostKeptOne = mostKept / 8 // what takes more is made for each question
	keptSize    = 256          // of an entry without its value and its texts
)

// keptAnswers has what was made for questions before, in a bounded number of bytes. Something new takes the
// place of its old version, or of one of few others; then others go, in turns, until there is room. It may be
// used by any number of goroutines.
type keptAnswers struct {
	seed   maphash.Seed
	all    [4096]keptPlaces
	making [64]sync.Mutex // of what has the same places, by turns: many ask for it at once

	mu    sync.Mutex // guards changes of all, and the following
	bytes int64
	next  int // which goes next
}

// keptPlaces are those where something may be: if there was one alone, two that have the same would take turns.
type keptPlaces [4]atomic.Pointer[kept]

func (p *keptPlaces) find(key *keptKey, g *services.Global) *kept {
	for i := range p {
		if e := p[i].Load(); e.is(key, g) {
			return e
		}
	}
	return nil
}

// placeFor is where something new goes; next decides when there is something else everywhere.
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

// remember returns what is kept for a service, or makes it; bytes is the memory that it takes.
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

// put keeps something, and drops others when there is no room.
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
