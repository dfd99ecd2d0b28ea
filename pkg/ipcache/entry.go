package ipcache

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unique"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Kind is the kind of a claim. The order is that of precedence: an address that a cluster publishes for an endpoint
// precedes addresses derived from its nodes.
type Kind uint8

// The kinds, strongest first.
const (
	KindHost    Kind = iota // an address, as published
	KindCIDR                // a prefix, as published; if it is a single address, a host precedes it (wire.md §4.2)
	KindNode                // an address of a node
	KindPodCIDR             // the pod network of a node: a route until a pod's own address is known
	KindHealth              // a node's health endpoint
	KindIngress             // a node's ingress
)

// String returns the name that users see: a published address and a published
// prefix are both an "endpoint".
func (k Kind) String() string {
	names := [...]string{"endpoint", "endpoint", "node", "pod-cidr", "health", "ingress"}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Claimant is the cluster of a claim. There is one for each cluster, shared by its entries.
type Claimant struct {
	Name string
	ID   uint32
}

// compare orders clusters: the lower ID precedes.
func (c *Claimant) compare(o *Claimant) int {
	return cmp.Or(cmp.Compare(c.ID, o.ID), strings.Compare(c.Name, o.Name))
}

// Spec has the contents of a new entry.
type Spec struct {
	// Prefix has the length of the address for a host. Host bits are kept only to distinguish claims.
	Prefix        netip.Prefix
	Cluster       *Claimant
	Kind          Kind
	Source        wire.Source
	Identity      uint32
	EncryptionKey uint8
	HostIP        netip.Addr // the node that hosts it; invalid, or "::", for none
	Namespace     string     // of the pod, if it is one
	Name          string     // the pod's, or the node's for the kinds that are derived from nodes
	Ports         []wire.NamedPort
}

// Entry is one claim of one cluster on one prefix. It is immutable, and small: there may be a
// million. (It must have no method Copy or IsoCopy: the B-tree would call it.)
type Entry struct {
	at        address // with host bits
	host      address // zero for none
	cluster   *Claimant
	namespace unique.Handle[string] // zero for none
	name      string
	ports     *[]wire.NamedPort // nil for none, which is usual
	identity  uint32
	key       uint8
	kind      Kind
	source    wire.Source
	bits      uint8 // the prefix's length, of the mapped form for IPv4; noBits when the prefix is not valid
}

// noBits is the length of an invalid prefix.
const noBits = 255

// NewEntry makes an entry. A mapped address becomes the IPv4 address. An entry without a valid prefix claims nothing.
func NewEntry(s Spec) *Entry {
	e := &Entry{
		at: pack(s.Prefix.Addr()), bits: noBits, host: pack(s.HostIP),
		cluster: s.Cluster, name: s.Name, identity: s.Identity,
		key: s.EncryptionKey, kind: s.Kind, source: s.Source,
	}
	if s.Prefix.IsValid() {
		e.bits = placeOf(s.Prefix).bits
	}
	if s.Namespace != "" { // few different ones: each is stored once, as long as it is used
		e.namespace = unique.Make(s.Namespace)
	}
	if len(s.Ports) > 0 {
		ports := s.Ports
		e.ports = &ports
	}
	return e
}

// String returns a description such as "10.1.0.7/32 of east: pod default/web-0, identity 66536".
func (e *Entry) String() string {
	what := e.kind.String()
	switch {
	case e.namespace != (unique.Handle[string]{}):
		what = "pod " + e.Namespace() + "/" + e.Pod()
	case e.NodeName() != "":
		what += " of " + e.NodeName()
	}
	return fmt.Sprintf("%s of %s: %s, identity %d", e.Prefix(), e.cluster.Name, what, e.identity)
}

// Prefix returns the claimed prefix, without host bits.
func (e *Entry) Prefix() netip.Prefix {
	if !e.valid() {
		return netip.Prefix{}
	}
	return e.place().prefix()
}

func (e *Entry) valid() bool { return e.bits != noBits }

func (e *Entry) place() place { return place{e.at.masked(e.bits), e.bits} }

// Cluster returns the cluster that claims it.
func (e *Entry) Cluster() *Claimant { return e.cluster }

// Kind returns the kind of the claim.
func (e *Entry) Kind() Kind { return e.kind }

// Source returns the source of the claim.
func (e *Entry) Source() wire.Source { return e.source }

// Identity returns the numeric security identity.
func (e *Entry) Identity() uint32 { return e.identity }

// EncryptionKey returns the index of the key, 0 for none.
func (e *Entry) EncryptionKey() uint8 { return e.key }

// HostIP returns the address of the node that hosts the prefix; invalid for none.
func (e *Entry) HostIP() netip.Addr {
	if e.host == (address{}) {
		return netip.Addr{}
	}
	return e.host.unpack()
}

// Namespace returns the pod's namespace; empty when it is no pod.
func (e *Entry) Namespace() string {
	if e.namespace == (unique.Handle[string]{}) {
		return ""
	}
	return e.namespace.Value()
}

// Pod returns the pod's name; empty when it is no pod.
func (e *Entry) Pod() string {
	if e.fromNode() {
		return ""
	}
	return e.name
}

// NodeName returns the node that the claim is derived from; empty for endpoints.
func (e *Entry) NodeName() string {
	if e.fromNode() {
		return e.name
	}
	return ""
}

// Ports returns the named ports; nil for none. They must not be changed.
func (e *Entry) Ports() []wire.NamedPort {
	if e.ports == nil {
		return nil
	}
	return *e.ports
}

func (e *Entry) fromNode() bool { return e.kind >= KindNode }

// Compare orders the claims on one prefix: the winner is the least. The stronger source precedes, then the kind, then
// the lower cluster ID, then the owner. Equal means that it is the same claim; its contents may differ.
func (e *Entry) Compare(o *Entry) int {
	order, _ := e.compare(o)
	return order
}

// compare also returns the rule that decided.
func (e *Entry) compare(o *Entry) (int, Rule) {
	if c := cmp.Compare(o.source, e.source); c != 0 {
		return c, RuleSource
	}
	if c := cmp.Compare(e.kind, o.kind); c != 0 {
		return c, RuleKind
	}
	if c := e.cluster.compare(o.cluster); c != 0 {
		return c, RuleCluster
	}
	if e.kind == KindCIDR {
		return e.at.compare(o.at), RuleOwner
	}
	if e.fromNode() {
		return strings.Compare(e.name, o.name), RuleOwner
	}
	return 0, RuleOwner
}

// same reports whether both are the same claim: equal in owner and kind.
func (e *Entry) same(o *Entry) bool {
	return e.Compare(o) == 0
}

// equal reports whether both claims have the same contents.
func (e *Entry) equal(o *Entry) bool {
	a, b := *e, *o
	a.cluster, b.cluster = nil, nil
	a.ports, b.ports = nil, nil
	return a == b && *e.cluster == *o.cluster && slices.Equal(e.Ports(), o.Ports())
}

// About how much memory an entry takes: itself, and its places in the indexes.
const (
	costEntry = 112 + 128
	costPort  = 48
)

// Cost returns about how many bytes the entry takes in memory, with its places in the cache.
func (e *Entry) Cost() int { return costEntry + len(e.name) + costPort*len(e.Ports()) }
