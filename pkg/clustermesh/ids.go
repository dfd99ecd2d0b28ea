package clustermesh

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// A cluster whose ID changes more than maxFlips times within flipWindow is refused
// until it has kept one ID for that long: each change withdraws and lists everything.
const (
	maxFlips   = 5
	flipWindow = 10 * time.Minute
)

// ids reserves cluster IDs. Each ID has one owner: the first cluster that requests it, until the owner's
// file is removed (wire.md §2.3). The own cluster's ID is reserved from the start. The policy file may pin
// IDs. Without a pin, the ID that a cluster had before a restart is kept for it while it is not connected.
type ids struct {
	own     string // the own cluster
	granted *claims.Current
	memory  *idMemory
	now     func() time.Time

	mu    sync.Mutex
	owner map[uint32]string
	of    map[string]uint32
	last  map[string]*flips
}

// flips are the latest changes of a cluster's ID.
type flips struct {
	id uint32      // the latest ID
	at []time.Time // the latest changes, at most maxFlips+1
}

func newIDs(own string, id uint32, granted *claims.Current, stateDir string, log *slog.Logger) *ids {
	x := &ids{
		own: own, granted: granted, memory: newIDMemory(stateDir, log), now: time.Now,
		owner: make(map[uint32]string), of: make(map[string]uint32), last: make(map[string]*flips),
	}
	if id != 0 {
		x.owner[id] = own
	}
	return x
}

// Admit reports whether the cluster may use the ID at all; the error is an
// [*remotecluster.Inadmissible].
func (x *ids) Admit(name string, id uint32) error {
	if refused := x.granted.Policy().Admit(name, id); refused != nil {
		code := codes.ClusterIDNotPinned
		if refused.Unlisted {
			code = codes.ClusterNotAdmitted
		}
		return &remotecluster.Inadmissible{Code: code, Withdraw: true, Why: refused.Error()}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.steady(name, id); err != nil {
		return err
	}
	x.memory.left(name, id)
	return nil
}

// steady records the ID of the cluster, and refuses a cluster that changes its ID
// too often; mu is held.
func (x *ids) steady(name string, id uint32) error {
	f, now := x.last[name], x.now()
	if f == nil {
		x.last[name] = &flips{id: id}
		return nil
	}
	if f.id != id {
		f.id = id
		f.at = append(f.at, now)
		f.at = f.at[max(0, len(f.at)-maxFlips-1):]
	}
	if len(f.at) <= maxFlips || f.at[0].Before(f.at[len(f.at)-1].Add(-flipWindow)) || now.Sub(f.at[len(f.at)-1]) >= flipWindow {
		return nil
	}
	return &remotecluster.Inadmissible{
		Code: codes.ClusterIDUnsteady,
		Why: fmt.Sprintf("its cluster ID has changed more than %d times within %s: nothing is read of it until it has kept one for that long",
			maxFlips, flipWindow),
	}
}

// Reserve gives the ID to the cluster. Another ID that the cluster has is released
// only when the cluster gets the new one.
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
	if owner := x.memory.owner(id); owner != "" && owner != name && x.granted.Policy().Pin(name) != id {
		return &remotecluster.IDConflict{ID: id, Holder: owner, Remembered: true}
	}
	if has {
		delete(x.owner, held)
	}
	x.owner[id], x.of[name] = name, id
	x.memory.note(name, id)
	return nil
}

// Release releases the cluster's ID, if it has one.
func (x *ids) Release(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if id, has := x.of[name]; has {
		delete(x.owner, id)
		delete(x.of, name)
	}
}

// keep removes the remembered data of clusters that no longer have a client file.
func (x *ids) keep(wanted func(name string) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.memory.keep(wanted)
	for name := range x.last {
		if !wanted(name) {
			delete(x.last, name)
		}
	}
}
