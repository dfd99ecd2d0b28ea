package wire

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// AddrCluster is an address that may be annotated with a cluster ID:
// "10.0.0.1@2". The form never appears on the wire; it tells apart equal
// addresses of several clusters (wire.md §4.2). ClusterID 0 is none.
type AddrCluster struct {
	Addr      netip.Addr
	ClusterID uint32
}

// ParseAddrCluster reads an address with or without a cluster ID. Zones are not
// accepted.
func ParseAddrCluster(text string) (AddrCluster, error) {
	rest, id, err := cutClusterID(text)
	if err != nil {
		return AddrCluster{}, err
	}
	if err := validAddress(rest); err != nil {
		return AddrCluster{}, err
	}
	return AddrCluster{Addr: netip.MustParseAddr(rest), ClusterID: id}, nil
}

// String returns the text form; ClusterID 0 is not written.
func (a AddrCluster) String() string {
	if a.ClusterID == 0 {
		return a.Addr.String()
	}
	return AnnotateCluster(a.Addr.String(), a.ClusterID)
}

// PrefixCluster is a prefix that may be annotated with a cluster ID:
// "10.0.0.0/24@2". ClusterID 0 is none. Host bits are kept.
type PrefixCluster struct {
	Prefix    netip.Prefix
	ClusterID uint32
}

// ParsePrefixCluster reads a prefix with or without a cluster ID.
func ParsePrefixCluster(text string) (PrefixCluster, error) {
	rest, id, err := cutClusterID(text)
	if err != nil {
		return PrefixCluster{}, err
	}
	prefix, err := netip.ParsePrefix(rest)
	if err != nil {
		return PrefixCluster{}, err
	}
	return PrefixCluster{Prefix: prefix, ClusterID: id}, nil
}

// String returns the text form; ClusterID 0 is not written.
func (p PrefixCluster) String() string {
	if p.ClusterID == 0 {
		return p.Prefix.String()
	}
	return AnnotateCluster(p.Prefix.String(), p.ClusterID)
}

// IsSingleIP tells whether the prefix holds one address.
func (p PrefixCluster) IsSingleIP() bool { return p.Prefix.IsSingleIP() }

// AnnotateCluster appends a cluster ID to the text of an address or a prefix,
// even when it is 0.
func AnnotateCluster(text string, clusterID uint32) string {
	return text + "@" + strconv.FormatUint(uint64(clusterID), 10)
}

// cutClusterID splits a text at its last "@".
func cutClusterID(text string) (rest string, id uint32, err error) {
	i := strings.LastIndexByte(text, '@')
	if i < 0 {
		return text, 0, nil
	}
	if i == len(text)-1 {
		return "", 0, errors.New("empty cluster ID")
	}
	n, err := strconv.ParseUint(text[i+1:], 10, 32)
	if err != nil {
		return "", 0, fmt.Errorf("the cluster ID of %q cannot be read: %w", text, err)
	}
	return text[:i], uint32(n), nil
}
