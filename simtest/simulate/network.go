package simulate

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

// networkFault is a kind of fault of a network.
type networkFault struct {
	name       string
	lasts      time.Duration
	begin, end func(*network, *rand.Rand)
	disturbs   disturbs
	ofKvstores bool // the Kubernetes API does not have it
}

// over is the fault of the network that pick chooses at each begin.
func (f networkFault) over(name string, pick func(*cluster, *rand.Rand) *network) fault {
	one := fault{name: name, lasts: f.lasts, disturbs: f.disturbs, begin: func(c *cluster, r *rand.Rand) {
		c.over[name] = pick(c, r)
		f.begin(c.over[name], r)
	}}
	if f.end != nil {
		one.end = func(c *cluster, r *rand.Rand) { f.end(c.over[name], r) }
	}
	return one
}

func networkFaults() []networkFault {
	return []networkFault{
		{ // nothing arrives, and that is known
			name: "away", lasts: time.Minute,
			begin: func(n *network, _ *rand.Rand) {
				n.change(func() { n.away = true })
				if n.store != nil {
					n.store.Break(errAway)
				}
			},
			end: func(n *network, _ *rand.Rand) { n.change(func() { n.away = false }) },
		},
		{ // nothing is answered, and then everything
			name: "frozen", lasts: 40 * time.Second,
			begin: func(n *network, _ *rand.Rand) { n.change(func() { n.freeze(&n.isFrozen) }) },
			end:   func(n *network, _ *rand.Rand) { n.change(func() { n.melt(&n.isFrozen) }) },
		},
		{ // the same from one of the next requests on
			name: "stalling", lasts: 40 * time.Second,
			begin: func(n *network, r *rand.Rand) { n.change(func() { n.freezesIn = 1 + r.IntN(30) }) },
			end:   func(n *network, _ *rand.Rand) { n.change(func() { n.freezesIn = 0; n.melt(&n.isStalled) }) },
		},
		{ // requests are answered, and events do not arrive
			name: "deaf", lasts: 40 * time.Second, ofKvstores: true,
			begin: func(n *network, _ *rand.Rand) { n.change(func() { n.heard = make(chan struct{}) }) },
			end:   func(n *network, _ *rand.Rand) { n.change(func() { close(n.heard); n.heard = nil }) },
		},
		{ // requests are lost, or their answers
			name: "lossy", lasts: 2 * time.Minute,
			begin: func(n *network, r *rand.Rand) {
				n.change(func() { n.lost, n.unanswered = 0.3*r.Float64(), 0.3*r.Float64() })
			},
			end: func(n *network, _ *rand.Rand) { n.change(func() { n.lost, n.unanswered = 0, 0 }) },
		},
		{
			name: "slow", lasts: 2 * time.Minute,
			begin: func(n *network, r *rand.Rand) {
				n.change(func() { n.late = time.Duration(r.IntN(3000)) * time.Millisecond })
			},
			end: func(n *network, _ *rand.Rand) { n.change(func() { n.late = 0 }) },
		},
		{ // the rights of the users are gone: open streams continue
			name: "denied", lasts: time.Minute,
			begin: func(n *network, _ *rand.Rand) { n.change(func() { n.denied = true }) },
			end:   func(n *network, _ *rand.Rand) { n.change(func() { n.denied = false }) },
		},
		{ // etcd is at its quota: it refuses what needs room, and reads and deletions continue
			name: "full", lasts: 5 * time.Minute, disturbs: onlyWriters, ofKvstores: true,
			begin: func(n *network, _ *rand.Rand) { n.change(func() { n.isFull = true }) },
			end:   func(n *network, _ *rand.Rand) { n.change(func() { n.isFull = false }) },
		},
		{name: "cut", begin: func(n *network, _ *rand.Rand) { n.store.Break(nil) }},
	}
}

// ofStore is the fault of all networks of the kvstore of a cluster.
func (f networkFault) ofStore() fault {
	return f.over(f.name, func(c *cluster, _ *rand.Rand) *network { return &c.net })
}

// ofRoute is the fault of the network between the programs of a cluster and one kvstore, which others reach.
func (f networkFault) ofRoute() fault {
	return f.over("route-"+f.name, func(c *cluster, r *rand.Rand) *network { return c.routes[r.IntN(len(c.routes))] })
}

// ofAPI is the fault of the network to the Kubernetes API of a cluster.
func (f networkFault) ofAPI() fault {
	one := f.over("api-"+f.name, func(c *cluster, _ *rand.Rand) *network { return &c.api })
	one.disturbs = onlyOthers
	return one
}

var (
	errAway = errors.New("no route to host")
	errLost = errors.New("the request timed out")
)

// network is a way to a kvstore. It loses nothing, unless something below is set.
type network struct {
	store      *memory.Store // a session over the network; nil: it leads to something else
	seen       *situations   // of writes; nil where store is
	mu         sync.Mutex
	rng        *rand.Rand
	away       bool
	denied     bool
	isFull     bool // what needs room is refused
	isFrozen   bool
	isStalled  bool
	thaw       chan struct{} // nil unless it is frozen or stalled
	freezesIn  int           // requests until it is stalled; 0: it will not be
	heard      chan struct{} // nil unless events do not arrive
	lost       float64       // probability that a request is lost
	unanswered float64       // the same of the answer
	late       time.Duration // maximum delay
	lies       float64       // probability that a part of an answer is false
	trap       *trap         // nil: none
	strike     func()        // happens after the next write, before its answer; nil: nothing
}

// trap ends an agent at one of its requests.
type trap struct {
	left   atomic.Int64 // requests until then
	spring func()
}

// step counts a request. The agent that sends it may have ended afterwards.
func (t *trap) step() {
	if t != nil && t.left.Add(-1) == 0 {
		t.spring()
	}
}

// setTrap ends the running agent at its request of this number, after which its own kvstore is away; 0: it does not, and
// the kvstore is not away any longer.
func (c *cluster) setTrap(number int) {
	own, t := c.routes[c.Own.ID-1], (*trap)(nil)
	if cancel := c.cancel; number > 0 && cancel != nil {
		t = &trap{spring: func() {
			own.change(func() { own.away = true })
			cancel()
		}}
		t.left.Store(int64(number))
	}
	for _, n := range c.routes {
		n.change(func() { n.trap = t })
	}
	if number == 0 {
		own.change(func() { own.away = false })
	}
}

func (n *network) change(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// freeze begins that nothing is answered, for one reason, and melt ends it, when there is no other. mu is held.
func (n *network) freeze(why *bool) {
	if *why = true; n.thaw == nil {
		n.thaw = make(chan struct{})
	}
}

func (n *network) melt(why *bool) {
	*why = false
	if n.thaw != nil && !n.isFrozen && !n.isStalled {
		close(n.thaw)
		n.thaw = nil
	}
}

// fault is the [memory.Fault] of the kvstore.
func (n *network) fault(ctx context.Context, op, _ string) error {
	lost, unanswered, late, err := n.carry(ctx, op)
	switch {
	case err != nil:
		return err
	case lost:
		return errLost
	case unanswered:
		return memory.Afterwards(errLost)
	case op == "update" && n.strikes():
		return memory.Delayed(2 * strikeAfter)
	case late > 0:
		return memory.Delayed(late)
	}
	return nil
}

// strikeAfter is the time between a write and the fault that happens before its answer.
const strikeAfter = 300 * time.Millisecond

// strikes reports whether a fault happens during a write.
func (n *network) strikes() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	strike := n.strike
	if n.strike = nil; strike != nil {
		time.AfterFunc(strikeAfter, strike)
	}
	return strike != nil
}

// request makes a request of something that is no kvstore.
func (n *network) request(ctx context.Context, do func() error) error {
	lost, unanswered, late, err := n.carry(ctx, "")
	switch {
	case err != nil:
		return err
	case lost:
		return errLost
	}
	err = do()
	if unanswered {
		err = errLost
	}
	return cmp.Or(waiting.Sleep(ctx, late), err)
}

// needNoRight are the operations of a kvstore for which a user needs no right.
func needNoRight() []string { return []string{"recv", "progress", "grant lease", "keep leases alive"} }

// isWrite reports whether an operation of a kvstore can change its contents.
func isWrite(op string) bool {
	return slices.Contains([]string{"put", "delete", "delete prefix", "update", "lock", "unlock"}, op)
}

// needsRoom reports whether an etcd at its quota refuses an operation. An update with deletions only would pass.
func needsRoom(op string) bool {
	return slices.Contains([]string{"put", "update", "lock", "grant lease"}, op)
}

// isEven decides between two cases.
func (n *network) isEven() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rng.IntN(2) == 0
}

// carry carries a request to the other end, unless there is an error, and decides whether it is lost, or its answer, or
// how late that is.
func (n *network) carry(ctx context.Context, op string) (lost, unanswered bool, late time.Duration, err error) {
	n.mu.Lock()
	trap := n.trap
	n.mu.Unlock()
	trap.step()
	n.mu.Lock()
	if n.freezesIn > 0 && op != "recv" {
		if n.freezesIn--; n.freezesIn == 0 {
			n.freeze(&n.isStalled)
		}
	}
	away, denied, isFull, thaw := n.away, n.denied && !slices.Contains(needNoRight(), op), n.isFull && needsRoom(op), n.thaw
	if op == "recv" && thaw == nil {
		thaw = n.heard
	}
	if op == "progress" { // it is sent and not waited for
		thaw = nil
	} else if n.late > 0 {
		late = time.Duration(n.rng.Int64N(int64(n.late))) / 2
	}
	lost, unanswered = n.rng.Float64() < n.lost, n.rng.Float64() < n.unanswered
	n.mu.Unlock()
	switch {
	case away:
		return false, false, 0, errAway
	case denied:
		return false, false, 0, kvstore.ErrPermissionDenied
	case isFull:
		return false, false, 0, kvstore.ErrNoSpace
	}
	if thaw != nil {
		select {
		case <-thaw:
		case <-ctx.Done():
			if isWrite(op) && n.isEven() {
				return false, false, 0, memory.Stray(thaw, func() { n.seen.note(stray) }, ctx.Err())
			}
			return false, false, 0, ctx.Err()
		}
	}
	if late > 0 && op != "recv" {
		err = waiting.Sleep(ctx, late)
	}
	return lost, unanswered, late, err
}
