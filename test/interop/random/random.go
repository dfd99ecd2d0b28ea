// Package random makes objects from a seed, for tests that compare the objects that one side wrote with those
// that the other side read. A remote cluster's reader accepts every object, and encoding loses none of
// its data. Within these limits, values are as unusual as possible: the bounds of every field, all
// combinations of optional fields, the minimum and the maximum of everything.
//
// The same seed makes the same objects, call for call. A Maker is for one goroutine.
package random

import (
	"iter"
	"math/rand/v2"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// Cluster is the cluster whose objects are made.
type Cluster struct {
	Name                 string
	ID                   uint32
	MaxConnectedClusters uint32 // 255 or 511: how identities are divided
}

// Maker makes objects of a cluster. The number given to its methods is that of the
// object: it alone decides the name, so that the same number makes another version of
// the same object. Numbers begin with 0; there is an object for each below 32,768.
type Maker struct {
	cluster Cluster
	r       *rand.Rand
}

// New returns a maker of the cluster's objects.
func New(seed uint64, c Cluster) *Maker {
	return &Maker{cluster: c, r: rand.New(rand.NewPCG(seed, uint64(c.ID)))}
}

// Objects makes n objects of each kind, and the cluster's configuration.
func Objects(seed uint64, n int, c Cluster) model.Objects {
	m := New(seed, c)
	o := m.Some(0, n)
	o.ClusterConfigs = []model.ClusterConfig{m.ClusterConfig()}
	return o
}

// Some makes n objects of each kind, from the first on, but no configuration.
func (m *Maker) Some(first, n int) model.Objects {
	var o model.Objects
	for _, kind := range model.Published() {
		o.Add(m.OfKind(kind, first, n))
	}
	return o
}

// several makes n objects from the first on.
func several[T any](first, n int, make func(i int) T) []T {
	var all []T
	for i := range n {
		all = append(all, make(first+i))
	}
	return all
}

// pick returns one of the values.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// maybe returns nil as often as a pointer to the value.
func maybe[T any](r *rand.Rand, v T) *T {
	if r.IntN(2) == 0 {
		return nil
	}
	return &v
}

// percent is true so often.
func (m *Maker) percent(n int) bool { return m.r.IntN(100) < n }

func (m *Maker) flag() *bool { return maybe(m.r, m.percent(50)) }

// few returns how many there are of something: often none or one, seldom the most.
func (m *Maker) few(most int) int {
	switch n := m.r.IntN(100); {
	case n < 25:
		return 0
	case n < 50:
		return 1
	case n < 98:
		return min(2+m.r.IntN(3), most)
	default:
		return most
	}
}

// Chunks makes n objects of one kind, so many at once. Those of the kind
// clusterconfig are of n clusters, the others of the one given.
func Chunks(seed uint64, n, atOnce int, kind model.Kind, c Cluster) iter.Seq[model.Objects] {
	m := New(seed, c)
	return func(yield func(model.Objects) bool) {
		for first := 0; first < n; first += atOnce {
			if !yield(m.OfKind(kind, first, min(atOnce, n-first))) {
				return
			}
		}
	}
}

// OfKind makes n objects of a kind, from the first on.
func (m *Maker) OfKind(kind model.Kind, first, n int) model.Objects {
	var o model.Objects
	switch kind {
	case model.ClusterConfigs:
		o.ClusterConfigs = several(first, n, m.anyConfig)
	case model.Nodes:
		o.Nodes = several(first, n, m.Node)
	case model.Services:
		o.Services = several(first, n, m.Service)
	case model.EndpointSlices:
		o.EndpointSlices = several(first, n, m.EndpointSlice)
	case model.ServiceExports:
		o.ServiceExports = several(first, n, m.ServiceExport)
	case model.Identities:
		o.Identities = several(first, n, m.Identity)
	case model.Addresses:
		o.Addresses = several(first, n, m.Address)
	}
	return o
}

// anyConfig makes the configuration of the i-th other cluster of the mesh. Its
// MaxConnectedClusters matters only when it is 511.
func (m *Maker) anyConfig(i int) model.ClusterConfig {
	limit := m.cluster.MaxConnectedClusters
	config := m.ClusterConfig()
	config.Cluster = name("cluster-", i, 32)
	config.ID = pick(m.r, 1, 255, limit, 1+m.r.Uint32N(limit))
	if limit != 511 {
		config.MaxConnectedClusters = pick(m.r, uint32(0), 255, 511, 1<<32-1)
	}
	return config
}
