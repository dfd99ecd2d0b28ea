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
// until it has kept one for that long: each change withdraws and lists everything.
const (
	maxFlips   = 5
	flipWindow = 10 * time.Minute
)

// ids hands out cluster IDs: one owner each, first come wins, held until the owner's file is gone
// (wire.md §2.3). The own cluster's ID is taken from the start. The policy file may pin IDs;
// without a pin, the ID that a cluster had before a restart is kept for it while it is away.
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
	id uint32      // the one that it came with last
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

// Admit reports whether the cluster may come with the ID at all; the error is an
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

// steady notes the ID that the cluster comes with, and refuses one that changes it
// all the time; mu is held.
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

// Release takes back the cluster's ID, if it holds one.
func (x *ids) Release(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if id, has := x.of[name]; has {
		delete(x.owner, id)
		delete(x.of, name)
	}
}

// keep forgets what is remembered of clusters that have no client file any more.
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
