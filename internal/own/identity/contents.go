package identity

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Mapping is an identity as it stands in the kvstore.
type Mapping struct {
	ID       uint64
	Key      string // the labels, as stored
	Revision int64
}

// Reference says that a node uses an identity.
type Reference struct {
	Key  string // as it stands in the path
	Node string
	ID   uint64
}

// Use is an address that is published with an identity.
type Use struct {
	Address string
	ID      uint32
}

// Malformed is an entry that cannot be read.
type Malformed struct{ Key, Why string }

// Pace is how many mappings were made lately.
type Pace struct {
	Made int
	In   time.Duration // 0: not known
}

// Contents are the entries of one cluster's kvstore that have to do with its
// identities, as far as they were read.
type Contents struct {
	Mappings   []Mapping
	Unreadable []Mapping // whose text is no set of labels; Malformed has them too
	References []Reference
	Uses       []Use
	Malformed  []Malformed
	Pace       Pace
}

// Published counts the addresses that are published with each identity.
func (c *Contents) Published() map[uint64]int {
	n := make(map[uint64]int)
	for _, u := range c.Uses {
		n[uint64(u.ID)]++
	}
	return n
}

// usage applies the rule of garbage collection to the contents.
func (c *Contents) usage() *allocator.Usage {
	u := allocator.NewUsage()
	for _, m := range slices.Concat(c.Mappings, c.Unreadable) {
		u.Mapping(m.ID, m.Key, m.Revision)
	}
	for _, r := range c.References {
		u.Reference(r.Key, r.ID)
	}
	return u
}

// Users are the nodes that use each mapping, by its number.
func (c *Contents) Users() map[uint64][]string {
	u, users := c.usage(), make(map[uint64][]string)
	for _, r := range c.References {
		if uses, _ := u.Reference(r.Key, r.ID); uses {
			users[r.ID] = append(users[r.ID], r.Node)
		}
	}
	return users
}

// Unused are the mappings of the cluster's range that no node uses, as a round of garbage collection
// finds them ([allocator.Usage]), with their revisions.
func (c *Contents) Unused(of Owner) allocator.StaleIDs {
	first, last := of.Range()
	return c.usage().Unused(uint64(first), uint64(last))
}

// Collectable reports whether garbage collection may judge by references. Where addresses are published with identities
// that have no reference, it would delete every identity in use. The contents must have been read as deep as
// [Addresses].
func (c *Contents) Collectable(of Owner) error {
	unused := c.Unused(of)
	published := c.Published()
	for _, m := range c.Mappings {
		if _, is := unused[m.ID]; is && published[m.ID] > 0 {
			n := published[m.ID]
			return fmt.Errorf("identity %d has no reference, though addresses (%d) are published with it. "+
				"A cluster whose identities are objects of Kubernetes has no references at all: collect garbage there, not here. "+
				"Else restart the agents of those nodes first; 'mesh-agent identity check' says more", m.ID, n)
		}
	}
	return nil
}

// Place is where a kvstore has the identities of a cluster and the addresses that
// are published with them.
type Place struct {
	Paths     wire.AllocationPaths
	Addresses string // the prefix of those of the default network
}

// OwnPlace is where a cluster's own kvstore has them.
func OwnPlace() Place {
	return Place{wire.IdentityAllocation, wire.IPs.Prefix("", false)}
}

// CachedPlace is where a mirror has copies of those of another cluster; there are no references.
func CachedPlace(cluster string) Place {
	return Place{wire.CachedIdentities(cluster), wire.IPs.Prefix(cluster, true)}
}

type reader struct {
	client kvstore.Client
	paths  wire.AllocationPaths
	c      *Contents
}

// Depth says how much is read of the contents.
type Depth int

// The depths. Each reads what the one before it does.
const (
	// Allocations are the mappings and the references.
	Allocations Depth = iota
	// Addresses are those that are published with identities, which are most of a cluster's keys.
	Addresses
	// History is how many mappings were made lately.
	History
)

// Read reads the contents of the kvstore, as far as depth says: the mappings, then the references,
// then the addresses. They are thus of different revisions; what [Check] says of a single entry may
// have been true for a moment only while writers work.
func Read(ctx context.Context, client kvstore.Client, place Place, depth Depth) (*Contents, error) {
	r := &reader{client, place.Paths, &Contents{}}
	at, err := r.list(ctx, r.paths.Mappings(), r.mapping)
	if err != nil {
		return nil, err
	}
	if _, err := r.list(ctx, r.paths.References(), r.reference); err != nil {
		return nil, err
	}
	if depth >= Addresses {
		if _, err := r.list(ctx, place.Addresses, r.use); err != nil {
			return nil, err
		}
	}
	if err := r.addMissing(ctx); err != nil {
		return nil, err
	}
	if depth >= History {
		if err := r.pace(ctx, at); err != nil {
			return nil, err
		}
	}
	return r.c, nil
}

// pace counts the mappings that were made in the time over which the kvstore still
// has its history. at is where they were read.
func (r *reader) pace(ctx context.Context, at kvstore.Position) error {
	since, span, err := history(ctx, r.client, at)
	if err != nil || span == 0 {
		return err
	}
	r.c.Pace.In = span
	for _, m := range r.c.Mappings {
		if m.Revision > since {
			r.c.Pace.Made++
		}
	}
	return nil
}

func (r *reader) list(ctx context.Context, prefix string, each func(name string, kv *kvstore.KeyValue) error) (kvstore.Position, error) {
	at, err := r.client.List(ctx, prefix, func(p kvstore.Page) error {
		for i := range p.Items {
			kv := &p.Items[i]
			if err := each(string(kv.Key[len(prefix):]), kv); err != nil {
				r.c.Malformed = append(r.c.Malformed, Malformed{string(kv.Key), err.Error()})
			}
		}
		return nil
	})
	if err != nil {
		return at, fmt.Errorf("reading the identities: %w", err)
	}
	return at, nil
}

func (r *reader) mapping(name string, kv *kvstore.KeyValue) error {
	id, err := allocator.MappingID(name)
	if err != nil {
		return err
	}
	m := Mapping{id, string(kv.Value), kv.ModRevision}
	if _, err := (Key{}).PutKey(m.Key); err != nil {
		r.c.Unreadable = append(r.c.Unreadable, m)
		return err
	}
	r.c.Mappings = append(r.c.Mappings, m)
	return nil
}

func (r *reader) reference(name string, kv *kvstore.KeyValue) error {
	key, node, id, err := allocator.ReadReference(name, kv.Value)
	if err != nil {
		return err
	}
	r.c.References = append(r.c.References, Reference{key, node, id})
	return nil
}

func (r *reader) use(name string, kv *kvstore.KeyValue) error {
	ip, err := wire.DecodeIP(name, kv.Value, wire.Expect{}) // in any range
	if err != nil {
		return err
	}
	r.c.Uses = append(r.c.Uses, Use{name, ip.Identity})
	return nil
}

// addMissing adds the mappings that references have and the list had not, since they
// were made meanwhile.
func (r *reader) addMissing(ctx context.Context) error {
	known := make(map[uint64]bool, len(r.c.Mappings))
	for _, m := range slices.Concat(r.c.Mappings, r.c.Unreadable) {
		known[m.ID] = true
	}
	for _, ref := range r.c.References {
		if known[ref.ID] {
			continue
		}
		known[ref.ID] = true
		kv, _, err := r.client.Get(ctx, r.paths.Mapping(ref.ID))
		if err != nil {
			return fmt.Errorf("reading the identities: %w", err)
		}
		if kv == nil {
			continue
		}
		if err := r.mapping(string(wire.EncodeAllocatedID(ref.ID)), kv); err != nil {
			r.c.Malformed = append(r.c.Malformed, Malformed{string(kv.Key), err.Error()})
		}
	}
	return nil
}
