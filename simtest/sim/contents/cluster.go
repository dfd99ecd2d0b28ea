package contents

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// DefaultKeysPerLease is how many keys Cilium attaches to one lease (spec wire.md §5).
const DefaultKeysPerLease = 1000

// Limits of a description.
const (
	maxNodes    = 8190
	maxServices = 100_000
	maxPods     = 10_000_000
	// spareIdentities are reserved for churn; a description cannot use them.
	spareIdentities = 1024
)

// Mode is the writer of a cluster's keys, and their place (spec wire.md §0).
type Mode int

// The modes.
const (
	// Remote is a cluster whose apiserver writes into an etcd of its own.
	Remote Mode = iota
	// Cached is a copy of a cluster that KVStoreMesh made. All copies are in one etcd (spec wire.md §1.1).
	Cached
	// Local is the reader's own cluster, in kvstore mode: no canaries, and
	// identities without leases. A mesh has at most one.
	Local
)

func (m Mode) String() string { return [...]string{"remote", "cached", "local"}[m] }

// Cluster describes one simulated cluster. The same description always gives the same contents.
type Cluster struct {
	// Name and ID identify the cluster in the mesh (spec wire.md §2.3).
	Name string
	ID   uint32
	// Mode is Remote unless set.
	Mode Mode
	// MaxConnectedClusters is 255 or 511 and determines the layout of identities.
	MaxConnectedClusters uint32

	// Nodes is the number of nodes, at most 8,190.
	Nodes int
	// Services is the number of exported global services, at most 100,000.
	Services int
	// Backends is the number of pods behind each service, if there are enough pods. Services beyond the number of
	// identities share their pods.
	Backends int
	// Identities is the number of identities: one per workload.
	Identities int
	// Addresses is the number of pods, and so of IP entries.
	Addresses int

	// EndpointSlices writes services also as endpoint slices, the default of Cilium 1.20. Without it, the cluster looks
	// like one of 1.19: the capability and the canary are absent too.
	EndpointSlices bool
	// SlicesOnly writes services as endpoint slices alone.
	SlicesOnly bool
	// ServiceExports writes one ServiceExport for each service and announces the capability as enabled. The canary is
	// always there.
	ServiceExports bool

	// PodRange replaces the default range of pod addresses; the zero value is
	// the default (see the comment of the package).
	PodRange netip.Prefix
	// KeysPerLease is the number of keys that share one lease; 0 is DefaultKeysPerLease.
	KeysPerLease int
	// Seed determines names, identity numbers, labels and the sequence of changes.
	Seed uint64
}

// Default returns the description of a small cluster as Cilium 1.20 would write it, to be adapted.
func Default(name string, id uint32) Cluster {
	return Cluster{
		Name: name, ID: id, MaxConnectedClusters: 255,
		Nodes: 5, Services: 20, Backends: 4, Identities: 40, Addresses: 200,
		EndpointSlices: true, KeysPerLease: DefaultKeysPerLease, Seed: 1,
	}
}

// Validate returns an error with everything that is wrong with the description.
func (c Cluster) Validate() error {
	var errs []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if err := wire.ValidateClusterName(c.Name); err != nil {
		refuse(true, "cluster name %q: %w", c.Name, err)
	}
	if err := wire.ValidateMaxConnectedClusters(c.MaxConnectedClusters); err != nil {
		errs = append(errs, err)
	} else {
		refuse(c.ID < 1 || c.ID > c.MaxConnectedClusters, "cluster ID %d is not in 1..%d", c.ID, c.MaxConnectedClusters)
	}
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
		refuse(size.got < 0 || size.got > size.max, "%s: %d is not in 0..%d", size.what, size.got, size.max)
	}
	refuse(c.Addresses > 0 && c.Nodes < 1, "addresses need at least one node")
	refuse(c.Addresses > 0 && c.Identities < 1, "addresses need at least one identity")
	refuse(c.Services > 0 && c.Identities < 1, "services need at least one identity")
	refuse(c.SlicesOnly && !c.EndpointSlices, "services as slices only need endpoint slices")
	if len(errs) == 0 && c.Nodes > 0 {
		_, err := planAddresses(c)
		refuse(err != nil, "%w", err)
	}
	return errors.Join(errs...)
}

// Validate checks each description, that names and IDs differ, and that at most one
// is the local one.
func Validate(clusters []Cluster) error {
	var errs []error
	local := ""
	names, ids := map[string]bool{}, map[uint32]string{}
	for _, c := range clusters {
		if err := c.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", c.Name, err))
		}
		if names[c.Name] {
			errs = append(errs, fmt.Errorf("two clusters are named %s", c.Name))
		}
		if other, ok := ids[c.ID]; ok {
			errs = append(errs, fmt.Errorf("clusters %s and %s have the same ID %d", other, c.Name, c.ID))
		}
		names[c.Name], ids[c.ID] = true, c.Name
		if c.Mode == Local && local != "" {
			errs = append(errs, fmt.Errorf("clusters %s and %s are both the local one", local, c.Name))
		} else if c.Mode == Local {
			local = c.Name
		}
	}
	return errors.Join(errs...)
}

// maxIdentities is the size of the cluster's range of identities, without the spare ones for churn.
func (c Cluster) maxIdentities() int {
	if c.MaxConnectedClusters == 511 {
		return 1<<15 - spareIdentities
	}
	return 1<<16 - spareIdentities
}

// Keys is the number of keys of the cluster's state before any churn, without configuration, canaries and heartbeat.
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

// Config is the cluster configuration as Cilium 1.20 writes it.
func (c Cluster) Config() Op {
	cfg := wire.ClusterConfig{ID: c.ID, Capabilities: c.capabilities()}
	return Op{Key: wire.ClusterConfigKey(c.Name), Value: cfg.Encode()}
}

func (c Cluster) capabilities() wire.Capabilities {
	caps := wire.Capabilities{
		SyncedCanaries:        c.Mode != Local,
		Cached:                c.Mode == Cached,
		MaxConnectedClusters:  c.MaxConnectedClusters,
		ServiceExportsEnabled: &c.ServiceExports,
	}
	switch {
	case c.SlicesOnly:
		caps.EndpointSlicesExportMode = wire.EndpointSlicesOnly
	case c.EndpointSlices:
		caps.EndpointSlicesExportMode = wire.EndpointSlicesBoth
	}
	return caps
}

// Canaries are the resources that are announced as synced, including optional ones that are disabled.
func (c Cluster) Canaries() []wire.Resource {
	if c.Mode == Local {
		return nil
	}
	return slices.DeleteFunc(wire.Resources(), func(r wire.Resource) bool {
		return !r.Describe().Optional && !c.capabilities().Exports(r)
	})
}
