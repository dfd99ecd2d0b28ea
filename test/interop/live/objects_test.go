package live

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// many is how many objects of each kind the large tests have: 1000, or INTEROP_OBJECTS.
func many(t *testing.T) int {
	t.Helper()
	text := os.Getenv("INTEROP_OBJECTS")
	if text == "" {
		return 1000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("INTEROP_OBJECTS: %v", err)
	}
	return n
}

// maker makes the objects of a cluster.
type maker struct {
	interop.Maker
	r     *rand.Rand
	first int // number of the first address
}

// apart returns a maker whose addresses begin with that number: two clusters have none in common.
func (m maker) apart(first int) maker {
	m.first = first
	return m
}

func newMaker(seed uint64, cluster string, id uint32) maker {
	return maker{Maker: interop.NewMaker(seed, cluster, id), r: rand.New(rand.NewPCG(seed, uint64(id)))}
}

// object makes the i-th object of a kind, with a new version at each call.
func (m maker) object(kind model.Kind, i int) model.Objects {
	if kind == model.Addresses {
		i += m.first
	}
	return m.Object(kind, i)
}

// some picks this many of the numbers below n.
func (m maker) some(n, count int) []int { return m.r.Perm(n)[:count] }
