package clustermesh

import (
	"sync"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// ids hands out cluster IDs: one owner each, first come wins, held until the
// owner's file is gone (wire.md §2.3). The own cluster's ID is taken from the
// start.
type ids struct {
	own   string // the own cluster
	mu    sync.Mutex
	owner map[uint32]string
	of    map[string]uint32
}

func newIDs(own string, id uint32) *ids {
	x := &ids{own: own, owner: make(map[uint32]string), of: make(map[string]uint32)}
	if id != 0 {
		x.owner[id] = own
	}
	return x
}

// Reserve gives the ID to the cluster. One that holds another ID gives that
// back only when it got the new one.
func (x *ids) Reserve(name string, id uint32) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	held, has := x.of[name]
	if has && held == id {
		return nil
	}
	if owner, taken := x.owner[id]; taken {
		return &remotecluster.IDConflict{ID: id, Holder: owner, Own: owner == x.own}
	}
	if has {
		delete(x.owner, held)
	}
	x.owner[id], x.of[name] = name, id
	return nil
}

// Release takes back the cluster's ID, if it holds one.
func (x *ids) Release(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if id, has := x.of[name]; has {
		delete(x.owner, id)
		delete(x.of, name)
	}
}
