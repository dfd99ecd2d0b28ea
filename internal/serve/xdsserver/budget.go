package xdsserver

import (
	"hash/crc32"
	"net/netip"
	"sync"

	"github.com/mesh-agent/mesh-agent/internal/base/quota"
)

// smallAnswer is the size of an answer that a stream gets in any case, in bytes, when it has confirmed all others.
const smallAnswer = 16 << 10

// What is counted for each name of a stream, and for each resource, besides their texts, in bytes.
const (
	nameOverhead       = 256
	resourceOverhead   = 512
	everythingOverhead = 64 // of each cluster, for a client that takes all
)

// costOf is what is counted for names of a stream.
func costOf(names []string) (bytes int64) {
	for _, name := range names {
		bytes += nameOverhead + int64(len(name))
	}
	return bytes
}

// amount counts bytes by owner.
type amount = quota.Quota[netip.Addr]

// newAmount has a quarter for each owner.
func newAmount(all int64) *amount { return quota.New[netip.Addr](all, all/4) }

// ownerOf is who is charged for a stream: the address of its peer (an IPv6 /64). The programs of this machine,
// over loopback and the unix socket, are two owners, between which their streams alternate: nothing tells
// them apart, and most clients are such.
func ownerOf(peer netip.Addr, stream uint64) netip.Addr {
	if peer.IsValid() && !peer.IsLoopback() {
		return peer
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, byte(stream % 2)})
}

// namesAtOnce is how many names the catalog looks at before it is the turn of others.
const namesAtOnce = 64

// turns let one stream of an owner at a time into the catalog, so that whoever else needs it waits for one turn of each
// owner at most, however many streams there are.
type turns [64]sync.Mutex

func (t *turns) take(owner netip.Addr) (end func()) {
	bytes := owner.As16()
	one := &t[crc32.ChecksumIEEE(bytes[:])%uint32(len(t))]
	one.Lock()
	return one.Unlock
}

// taking takes an amount for an owner.
type taking func(owner netip.Addr, bytes int64) error

// fewNames is how many names a stream may follow beyond the share of its owner, while there is room for all: others of
// the same address, such as the programs of this machine, do not keep a program from its services.
const fewNames = 64

// holding is something that is kept while somebody follows it. It is charged to the first of its followers
// that still follows it.
type holding struct {
	followers []follower
	bytes     int64
}

// follower is how many streams of an owner follow something.
type follower struct {
	owner   netip.Addr
	streams int
}

// join adds a stream. For the first one, there must be room for the bytes.
func (h *holding) join(take taking, owner netip.Addr, bytes int64) error {
	for i := range h.followers {
		if h.followers[i].owner == owner {
			h.followers[i].streams++
			return nil
		}
	}
	if len(h.followers) == 0 {
		if err := take(owner, bytes); err != nil {
			return err
		}
		h.bytes = bytes
	}
	h.followers = append(h.followers, follower{owner, 1})
	return nil
}

// leave removes a stream, and reports whether nobody is left. What others still follow is charged to the next
// of them, also when he has no room left.
func (h *holding) leave(kept *amount, owner netip.Addr) (last bool) {
	for i := range h.followers {
		if h.followers[i].owner != owner {
			continue
		}
		if h.followers[i].streams--; h.followers[i].streams > 0 {
			return false
		}
		h.followers = append(h.followers[:i], h.followers[i+1:]...)
		if i > 0 {
			return false
		}
		kept.Give(owner, h.bytes)
		if len(h.followers) == 0 {
			return true
		}
		kept.Give(h.followers[0].owner, -h.bytes)
		return false
	}
	return false
}

// resize changes how much it is, when there is room for more; force does without.
func (h *holding) resize(kept *amount, bytes int64, force bool) error {
	owner := h.followers[0].owner
	if force || bytes <= h.bytes {
		kept.Give(owner, h.bytes-bytes)
	} else if err := kept.Take(owner, bytes-h.bytes); err != nil {
		return err
	}
	h.bytes = bytes
	return nil
}
