package sim

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// DefaultKeysPerLease is how many keys Cilium attaches to one lease (spec
// wire.md §5).
const DefaultKeysPerLease = 1000

// Limits of a description.
const (
	maxNodes    = 8190
	maxServices = 100_000
	maxPods     = 10_000_000
	// spareIdentities are kept out of a description's reach, for churn.
	spareIdentities = 1024
)

// Mode says who writes a cluster's keys, and where (spec wire.md §0).
type Mode int

// The modes.
const (
	// Remote is a cluster whose apiserver writes into an etcd of its own.
	Remote Mode = iota
	// Cached is a copy of a cluster that KVStoreMesh made. All of them are in one
	// etcd (spec wire.md §1.1).
	Cached
	// Local is the reader's own cluster, in kvstore mode: no canaries, and
	// identities without leases. A mesh has at most one.
	Local
)

func (m Mode) String() string { return [...]string{"remote", "cached", "local"}[m] }

// Cluster describes one simulated cluster. The same description always gives
// the same contents.
type Cluster struct {
	// Name and ID identify the cluster in the mesh (spec wire.md §2.3).
	Name string
	ID   uint32
	// Mode is Remote unless set.
	Mode Mode
	// MaxConnectedClusters is 255 or 511 and decides the layout of identities.
	MaxConnectedClusters uint32

	// Nodes is how many nodes the cluster has, at most 8,190.
	Nodes int
	// Services is how many global services the cluster exports, at most 100,000.
	Services int
	// Backends is how many pods stand behind each service, as far as there are
	// enough pods. Services beyond the number of identities share their pods.
	Backends int
	// Identities is how many identities the cluster has: one per workload.
	Identities int
	// Addresses is how many pods, and so IP entries, the cluster has.
	Addresses int

	// EndpointSlices writes services also as endpoint slices, the default of
	// Cilium 1.20. Without, the cluster looks like one of 1.19: the capability
	// and the canary are absent too.
	EndpointSlices bool
	// SlicesOnly writes services as endpoint slices alone.
	SlicesOnly bool
	// ServiceExports writes one ServiceExport for each service and announces
	// the capability as enabled. The canary is there either way.
	ServiceExports bool

	// PodRange replaces the default range of pod addresses; the zero value is
	// the default (see the package comment).
	PodRange netip.Prefix
	// KeysPerLease is how many keys share one lease; 0 is DefaultKeysPerLease.
	KeysPerLease int
	// Seed decides names, identity numbers, labels and the sequence of changes.
	Seed uint64
}

// Default returns the description of a small cluster as Cilium 1.20 would
// write it, to be adapted.
func Default(name string, id uint32) Cluster {
	return Cluster{
		Name: name, ID: id, MaxConnectedClusters: 255,
		Nodes: 5, Services: 20, Backends: 4, Identities: 40, Addresses: 200,
		EndpointSlices: true, KeysPerLease: DefaultKeysPerLease, Seed: 1,
	}
}

// Validate reports everything that is wrong with the description, in words.
func (c Cluster) Validate() error {
	return errors.Join(c.validateIdentity(), c.validateSizes(), c.validateRelations())
}

func (c Cluster) validateIdentity() error {
	var errs []error
	if err := wire.ValidateClusterName(c.Name); err != nil {
		errs = append(errs, fmt.Errorf("cluster name %q: %w", c.Name, err))
	}
	if err := wire.ValidateMaxConnectedClusters(c.MaxConnectedClusters); err != nil {
		errs = append(errs, err)
	} else if c.ID < 1 || c.ID > c.MaxConnectedClusters {
		errs = append(errs, fmt.Errorf("cluster ID %d is not in 1..%d", c.ID, c.MaxConnectedClusters))
	}
	return errors.Join(errs...)
}

func (c Cluster) validateSizes() error {
	var errs []error
	for _, size := range []struct {
		what     string
		got, max int
	}{
		{"nodes", c.Nodes, maxNodes},
		{"services", c.Services, maxServices},
		{"backends", c.Backends, maxPods},
		{"identities", c.Identities, c.maxIdentities()},
		{"addresses", c.Addresses, maxPods},
		{"keys per lease", c.KeysPerLease, maxPods},
	} {
		if size.got < 0 || size.got > size.max {
			errs = append(errs, fmt.Errorf("%s: %d is not in 0..%d", size.what, size.got, size.max))
		}
	}
	return errors.Join(errs...)
}

// validateRelations checks what one size asks of another.
func (c Cluster) validateRelations() error {
	var errs []error
	if c.Addresses > 0 && c.Nodes < 1 {
		errs = append(errs, errors.New("addresses need at least one node"))
	}
	if c.Addresses > 0 && c.Identities < 1 {
		errs = append(errs, errors.New("addresses need at least one identity"))
	}
	if c.Services > 0 && c.Identities < 1 {
		errs = append(errs, errors.New("services need at least one identity"))
	}
	if c.SlicesOnly && !c.EndpointSlices {
		errs = append(errs, errors.New("services as slices only need endpoint slices"))
	}
	if len(errs) == 0 && c.Nodes > 0 && c.Nodes <= maxNodes {
		if _, err := planAddresses(c); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// maxIdentities is the size of the cluster's range of identities, less some
// for churn.
func (c Cluster) maxIdentities() int {
	if c.MaxConnectedClusters == 511 {
		return 1<<15 - spareIdentities
	}
	return 1<<16 - spareIdentities
}

// Keys is how many keys the cluster's state has before any churn, without
// configuration, canaries and heartbeat.
func (c Cluster) Keys() int {
	keys := c.Nodes + c.Identities + c.Addresses
	if !c.SlicesOnly {
		keys += c.Services
	}
	if c.EndpointSlices {
		keys += c.Services
	}
	if c.ServiceExports {
		keys += c.Services
	}
	return keys
}

func (c Cluster) keysPerLease() int {
	if c.KeysPerLease == 0 {
		return DefaultKeysPerLease
	}
	return c.KeysPerLease
}
