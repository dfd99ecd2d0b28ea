package xdsserver

import (
	"hash/crc32"
	"net/netip"
	"sync"

	"github.com/mesh-agent/mesh-agent/internal/base/quota"
)

// smallAnswer is the size of an answer that is always sent to a stream that has confirmed all others, in bytes.
const smallAnswer = 16 << 10

// The bytes that are counted for each name of a stream, and for each resource, besides their texts.
const (
	nameOverhead       = 256
	resourceOverhead   = 512
	everythingOverhead = 64 // for each cluster, when a client follows all
)

// costOf is the number of bytes that are counted for names of a stream.
func costOf(names []string) (bytes int64) {
	for _, name := range names {
		bytes += nameOverhead + int64(len(name))
	}
	return bytes
}

// amount counts bytes by owner.
type amount = quota.Quota[netip.Addr]

// newAmount returns an amount in which each owner may have a quarter.
func newAmount(all int64) *amount { return quota.New[netip.Addr](all, all/4) }

// ownerOf returns the owner that is charged for a stream: the address of its peer (an IPv6 /64). The programs of this
// machine, over loopback and the unix socket, cannot be distinguished, and most clients are on this machine. So they
// count as two owners, and their streams alternate between these.
func ownerOf(peer netip.Addr, stream uint64) netip.Addr {
	if peer.IsValid() && !peer.IsLoopback() {
		return peer
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, byte(stream % 2)})
}

// namesAtOnce is how many names a stream adds to the catalog before others have their turn.
const namesAtOnce = 64

// turns let one stream of an owner at a time change the catalog. So other users of the catalog wait for at most one
// turn of each owner, however many streams there are.
type turns [64]sync.Mutex

func (t *turns) take(owner netip.Addr) (end func()) {
	bytes := owner.As16()
	one := &t[crc32.ChecksumIEEE(bytes[:])%uint32(len(t))]
	one.Lock()
	return one.Unlock
}

// taking takes bytes for an owner.
type taking func(owner netip.Addr, bytes int64) error

// fewNames is how many names a stream may follow above the share of its owner, as long as the total has room. So other
// clients of the same address, such as the programs of this machine, do not keep a program from its services.
const fewNames = 64

// holding is something that is kept while at least one stream follows it. It is charged to the owner that has followed
// it for the longest time.
type holding struct {
	followers []follower
	bytes     int64
}

// follower is an owner, with the number of its streams that follow something.
type follower struct {
	owner   netip.Addr
	streams int
}

// join adds a stream. For the first one, it takes the bytes, which may fail.
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

// leave removes a stream, and reports whether none is left. If there are other owners, the next one is charged, even
// if that owner has no room left.
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
		kept.Release(owner, h.bytes)
		if len(h.followers) == 0 {
			return true
		}
		kept.Release(h.followers[0].owner, -h.bytes)
		return false
	}
	return false
}

// resize changes the number of bytes. For more bytes there must be room, except with force.
func (h *holding) resize(kept *amount, bytes int64, force bool) error {
	owner := h.followers[0].owner
	if force || bytes <= h.bytes {
		kept.Release(owner, h.bytes-bytes)
	} else if err := kept.Reserve(owner, bytes-h.bytes); err != nil {
		return err
	}
	h.bytes = bytes
	return nil
}
