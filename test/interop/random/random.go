// Package random makes objects from a seed, for tests that compare what one side
// wrote with what the other read. Every object is one that a remote cluster's reader
// accepts and that survives its encoding whole; within that, values are as odd as
// they may be: the bounds of every field, what is there and what is not in all
// combinations, the least and the most of everything.
//
// The same seed makes the same objects, call for call. A Maker is for one goroutine.
package random

import (
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
	return model.Objects{
		Nodes:          several(first, n, m.Node),
		Services:       several(first, n, m.Service),
		EndpointSlices: several(first, n, m.EndpointSlice),
		ServiceExports: several(first, n, m.ServiceExport),
		Identities:     several(first, n, m.Identity),
		Addresses:      several(first, n, m.Address),
	}
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
