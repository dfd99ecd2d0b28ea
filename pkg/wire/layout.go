package wire

import (
	"errors"
	"fmt"
)

// The two settings that a mesh may have for the number of clusters (wire.md §2.3).
const (
	MaxConnectedClusters255 uint32 = 255
	MaxConnectedClusters511 uint32 = 511
)

// Layout divides the 24 bits of a numeric identity among the clusters of a mesh
// (wire.md §2.3); the bits above are a scope. The zero value is the layout for 255 clusters.
type Layout struct {
	wide bool // 511 clusters: 9 bits of cluster ID, 15 bits of identity
}

// NewLayout returns the layout for a mesh of at most so many clusters; only 255 and 511 exist.
func NewLayout(maxConnectedClusters uint32) (Layout, error) {
	if err := ValidateMaxConnectedClusters(maxConnectedClusters); err != nil {
		return Layout{}, err
	}
	return Layout{wide: maxConnectedClusters == MaxConnectedClusters511}, nil
}

// ValidateMaxConnectedClusters accepts 255 and 511.
func ValidateMaxConnectedClusters(n uint32) error {
	if n == MaxConnectedClusters255 || n == MaxConnectedClusters511 {
		return nil
	}
	return fmt.Errorf("--max-connected-clusters=%d is invalid; supported values are [%d, %d]",
		n, MaxConnectedClusters255, MaxConnectedClusters511)
}

// Max returns the highest cluster ID.
func (l Layout) Max() uint32 {
	if l.wide {
		return MaxConnectedClusters511
	}
	return MaxConnectedClusters255
}

// Shift returns the number of bits of an identity within its cluster.
func (l Layout) Shift() uint {
	if l.wide {
		return 15
	}
	return 16
}

// Range returns the first and the last identity that a cluster may allocate.
// Cluster 0 (no mesh) begins above the reserved identities. A cluster ID that
// no identity can hold has an empty range: min > max.
func (l Layout) Range(cluster uint32) (min, max uint32) {
	if cluster>>(32-l.Shift()) != 0 {
		return 1, 0
	}
	min = cluster << l.Shift()
	max = min + 1<<l.Shift() - 1
	if cluster == 0 {
		min = IdentityReservedEnd
	}
	return min, max
}

// Contains reports whether an identity lies in the range of a cluster.
func (l Layout) Contains(cluster, identity uint32) bool {
	lo, hi := l.Range(cluster)
	return lo <= identity && identity <= hi
}

// ErrClusterIDReserved is the error for cluster ID 0, which means "no mesh".
var ErrClusterIDReserved = errors.New("ClusterID 0 is reserved")

// ValidateClusterID accepts 1 to [Layout.Max]. The error is [ErrClusterIDReserved] for 0.
func (l Layout) ValidateClusterID(id uint32) error {
	switch {
	case id == 0:
		return ErrClusterIDReserved
	case id > l.Max():
		return fmt.Errorf("ClusterID > %d is not supported", l.Max())
	default:
		return nil
	}
}
