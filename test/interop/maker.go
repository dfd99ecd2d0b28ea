package interop

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
	"github.com/mesh-agent/mesh-agent/test/interop/random"
)

// largest is the longest value that is written: etcd takes requests of 1.5 MiB.
const largest = 1 << 20

// Maker makes random objects of a cluster that go through an etcd: it has room for them, and they
// have no named ports of any protocol, of which Cilium's readers complain.
type Maker struct{ *random.Maker }

// NewMaker returns a maker for a cluster in a mesh of 255.
func NewMaker(seed uint64, cluster string, id uint32) Maker {
	return Maker{random.New(seed, random.Cluster{Name: cluster, ID: id, MaxConnectedClusters: 255})}
}

// Object makes the i-th object of a kind, each time another version.
func (m Maker) Object(kind model.Kind, i int) model.Objects {
	for {
		o := m.OfKind(kind, i, 1)
		for a := range o.Addresses {
			o.Addresses[a].NamedPorts = slices.DeleteFunc(o.Addresses[a].NamedPorts, func(p model.NamedPort) bool { return p.Protocol == "ANY" })
		}
		if len(ours.Encode(o)[0].Value) <= largest {
			return o
		}
	}
}

// Objects makes the objects of each kind with these numbers.
func (m Maker) Objects(from, to int) model.Objects {
	var all model.Objects
	for _, kind := range model.Published() {
		for i := from; i < to; i++ {
			all.Add(m.Object(kind, i))
		}
	}
	return all
}

// Config is the configuration of a cluster as the API server of a mesh publishes it.
func Config(cluster string, id uint32) model.ClusterConfig {
	return model.ClusterConfig{
		Cluster: cluster, ID: id, SyncedCanaries: true, MaxConnectedClusters: 255,
		ServiceExportsEnabled: new(true), EndpointSlicesExportMode: "services-and-endpointslices",
	}
}

// SeedEnv gives the seed of random objects, to repeat a run.
const SeedEnv = "INTEROP_SEED"

// Seed returns the seed of the test's random objects, and prints it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(SeedEnv); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		Must(t, err)
	}
	t.Logf("to repeat: %s=%d", SeedEnv, seed)
	return seed
}
