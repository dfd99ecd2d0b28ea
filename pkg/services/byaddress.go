package services

import (
	"hash/maphash"
	"math/bits"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/statedb"
)

// AddressIndex finds the global services that have an address as a backend in use, without reading the others. It is
// made with the first query, and each query first takes in the changes since the previous one: an agent without queries
// has no cost for it. It takes about 20 bytes for each backend, and 100 for each service.
//
// The index has the services that may have an address; the table then shows which of them have it. So entries need not
// be deleted from the index; old ones are left out when the index is full and is rebuilt.
//
// Its methods may be called by any goroutine; they run one at a time.
type AddressIndex struct {
	db    *statedb.DB
	table statedb.Table[*Global]
	seed  maphash.Seed

	mu       sync.Mutex // guards the fields below
	revision statedb.Revision
	names    []serviceName
	numbers  map[serviceName]uint32 // in names
	heads    []uint32               // the newest place with this hash, plus one; their number is a power of two
	places   []backendPlace         // never grows beyond its capacity
}

type serviceName struct{ namespace, name string }

// backendPlace records that a service has, or had, an address as a backend.
type backendPlace struct {
	hash    uint32 // of the address
	service uint32 // in names
	next    uint32 // the previous place with the same head, plus one; 0 for none
}

const (
	minPlaces = 1024
	// recentPlaces is how many of the newest places are searched for an existing entry, so that a service that changes
	// often is not added each time. An older entry may be added twice.
	recentPlaces = 32
)

// NewAddressIndex returns an index of a table of global services.
func NewAddressIndex(db *statedb.DB, table statedb.Table[*Global]) *AddressIndex {
	return &AddressIndex{db: db, table: table, seed: maphash.MakeSeed()}
}

// Find returns the services that have the address as a backend in use, sorted by
// namespace and name, as of the transaction that it returns with them.
func (x *AddressIndex) Find(addr netip.Addr) (statedb.ReadTxn, []*Global) {
	x.mu.Lock()
	defer x.mu.Unlock()
	txn := x.db.ReadTxn()
	x.update(txn)
	addr = addr.Unmap()
	hash := x.hash(addr)
	var candidates []uint32
	for at := x.heads[x.head(hash)]; at != 0; at = x.places[at-1].next {
		if p := x.places[at-1]; p.hash == hash {
			candidates = append(candidates, p.service)
		}
	}
	slices.Sort(candidates)
	var found []*Global
	for _, number := range slices.Compact(candidates) {
		name := x.names[number]
		if g, _, ok := x.table.Get(txn, GlobalByName(name.namespace, name.name)); ok && g.HasBackend(addr) {
			found = append(found, g)
		}
	}
	slices.SortFunc(found, func(a, b *Global) int { return strings.Compare(a.FullName(), b.FullName()) })
	return txn, found
}

// update takes in the changes since the last update.
func (x *AddressIndex) update(txn statedb.ReadTxn) {
	now := x.table.Revision(txn)
	if x.heads == nil {
		x.rebuild(txn)
	}
	if x.revision == now {
		return
	}
	for g := range x.table.LowerBound(txn, statedb.ByRevision[*Global](x.revision+1)) {
		if !x.add(g) {
			x.rebuild(txn)
			break
		}
	}
	x.revision = now
}

// rebuild makes the index again, with room for as many places as there are backends.
func (x *AddressIndex) rebuild(txn statedb.ReadTxn) {
	backends := 0
	for g := range x.table.All(txn) {
		for _, part := range g.Parts { // also those not in use: this may change with another part
			backends += len(part.Backends)
		}
	}
	room := max(minPlaces, backends+backends/4)
	x.heads = make([]uint32, 1<<bits.Len(uint(room/2)))
	x.places = make([]backendPlace, 0, room)
	x.names, x.numbers = nil, make(map[serviceName]uint32, x.table.NumObjects(txn))
	for g := range x.table.All(txn) {
		x.add(g)
	}
	x.revision = x.table.Revision(txn)
}

// add adds the backends of a service; false when there is no room for all.
func (x *AddressIndex) add(g *Global) bool {
	for _, part := range g.Parts {
		for i := range part.Backends {
			if !x.note(part.Backends[i].IP, g) {
				return false
			}
		}
	}
	return true
}

func (x *AddressIndex) note(addr netip.Addr, g *Global) bool {
	number := x.number(g)
	hash := x.hash(addr)
	head := &x.heads[x.head(hash)]
	for at, n := *head, 0; at != 0 && n < recentPlaces; n++ {
		p := x.places[at-1]
		if p.hash == hash && p.service == number {
			return true
		}
		at = p.next
	}
	if len(x.places) == cap(x.places) {
		return false
	}
	x.places = append(x.places, backendPlace{hash: hash, service: number, next: *head})
	*head = uint32(len(x.places))
	return true
}

// number returns the service's index in names. Only services with a backend get one.
func (x *AddressIndex) number(g *Global) uint32 {
	name := serviceName{g.Namespace, g.Name}
	n, known := x.numbers[name]
	if !known {
		n = uint32(len(x.names))
		x.names = append(x.names, name)
		x.numbers[name] = n
	}
	return n
}

func (x *AddressIndex) hash(addr netip.Addr) uint32 {
	return uint32(maphash.Comparable(x.seed, addr))
}

func (x *AddressIndex) head(hash uint32) uint32 { return hash & uint32(len(x.heads)-1) }
