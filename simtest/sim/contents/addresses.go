package contents

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// reservedAddresses is the number of reserved first addresses of a node's pod range: network, router, health, ingress.
const reservedAddresses = 4

// Offsets into a node's pod range.
const (
	offsetRouter  = 1
	offsetHealth  = 2
	offsetIngress = 3
)

// addressPlan computes the addresses of nodes and pods.
type addressPlan struct {
	pods     netip.Prefix // the range that contains the pod ranges of all nodes
	nodeBits int          // prefix length of one node's pod range
	nodes    netip.Addr   // address before the first node's
	perNode  uint32       // how many pods fit on one node
}

// planAddresses picks the ranges for c as described in the package comment.
func planAddresses(c Cluster) (addressPlan, error) {
	p := addressPlan{nodes: nodeBase(c)}
	wanted := bits.Len(uint(podsPerNode(c) + reservedAddresses))
	for _, block := range podBlocks(c) {
		host := hostBits(block, wanted, c.Nodes)
		if host == 0 {
			continue
		}
		p.pods = block
		p.nodeBits = block.Addr().BitLen() - host
		p.perNode = uint32(min(1<<min(host, 24)-reservedAddresses-1, maxPods))
		return p, nil
	}
	return p, fmt.Errorf("pod range %s is too small for %d addresses on %d nodes: use a larger one", c.PodRange, c.Addresses, c.Nodes)
}

// podsPerNode is the number of pods for which a node must have room, including churn.
func podsPerNode(c Cluster) int {
	n := (c.Addresses + c.Nodes - 1) / c.Nodes
	return n + n/8 + 8
}

// podBlocks lists the ranges to try, in order.
func podBlocks(c Cluster) []netip.Prefix {
	if c.PodRange.IsValid() {
		return []netip.Prefix{c.PodRange.Masked()}
	}
	var blocks []netip.Prefix
	if c.ID <= 255 {
		blocks = append(blocks, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(c.ID), 0, 0}), 16))
	}
	large := plus(netip.AddrFrom4([4]byte{16}), uint64(c.ID), 19)
	var six [16]byte
	copy(six[:], []byte{0xfd, 0x00, 0x00, 0x10, byte(c.ID >> 8), byte(c.ID)})
	return append(blocks, netip.PrefixFrom(large, 13), netip.PrefixFrom(netip.AddrFrom16(six), 48))
}

// hostBits is the number of address bits that distinguish pods of one node when count nodes share the block and each
// needs wanted bits; 0 when they do not fit.
func hostBits(block netip.Prefix, wanted, count int) int {
	free := block.Addr().BitLen() - block.Bits() - bits.Len(uint(count-1))
	switch {
	case free < wanted:
		return 0
	case block.Addr().Is6() && free >= 64:
		return 64
	case block.Addr().Is6():
		return free
	default:
		return max(wanted, min(free, 8))
	}
}

func nodeBase(c Cluster) netip.Addr {
	if c.Nodes <= 1<<11-2 {
		return plus(netip.AddrFrom4([4]byte{172, 16}), uint64(c.ID), 11)
	}
	return plus(netip.AddrFrom4([4]byte{100, 64}), uint64(c.ID), 13)
}

// nodeIP is the InternalIP of node i.
func (p addressPlan) nodeIP(i int) netip.Addr { return plus(p.nodes, uint64(i)+1, 0) }

// podCIDR is the pod range of node i.
func (p addressPlan) podCIDR(i int) netip.Prefix {
	shift := p.pods.Addr().BitLen() - p.nodeBits
	return netip.PrefixFrom(plus(p.pods.Addr(), uint64(i), shift), p.nodeBits)
}

// at is the address with the given offset in the pod range of node i.
func (p addressPlan) at(i int, offset uint32) netip.Addr {
	return plus(p.podCIDR(i).Addr(), uint64(offset), 0)
}

// frontendIP is the cluster IP of service s.
func frontendIP(s int) netip.Addr {
	return plus(netip.AddrFrom4([4]byte{198, 18}), uint64(s)+1, 0)
}

// plus adds n<<shift to an address; in IPv6 to one of its halves, without carry.
func plus(a netip.Addr, n uint64, shift int) netip.Addr {
	if a.Is4() {
		raw := a.As4()
		binary.BigEndian.PutUint32(raw[:], binary.BigEndian.Uint32(raw[:])+uint32(n<<shift))
		return netip.AddrFrom4(raw)
	}
	raw := a.As16()
	half := raw[8:]
	if shift >= 64 {
		half, shift = raw[:8], shift-64
	}
	binary.BigEndian.PutUint64(half, binary.BigEndian.Uint64(half)+n<<shift)
	return netip.AddrFrom16(raw)
}

// Divide splits a range into n equal ranges, for the pods of n clusters.
func Divide(whole netip.Prefix, n int) ([]netip.Prefix, error) {
	whole = whole.Masked()
	length := whole.Bits() + bits.Len(uint(max(n, 1)-1))
	shift := whole.Addr().BitLen() - length
	if shift < 0 || whole.Addr().Is6() && shift < 64 {
		return nil, fmt.Errorf("range %s is too small for %d clusters", whole, n)
	}
	parts := make([]netip.Prefix, n)
	for i := range parts {
		parts[i] = netip.PrefixFrom(plus(whole.Addr(), uint64(i), shift), length)
	}
	return parts, nil
}
