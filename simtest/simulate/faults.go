package simulate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agents"
)

// fault is one kind of fault of a cluster. Without an end it happens at once.
type fault struct {
	name       string
	lasts      time.Duration // on average
	begin, end func(*cluster, *rand.Rand)
	disturbs   disturbs
}

// disturbs is who notices a fault of a kvstore, or of the way to it.
type disturbs uint8

const (
	everybody   disturbs = iota
	onlyWriters          // reads continue
	onlyAgent            // that of the cluster ends, or starts again
	onlyOthers           // there is nothing to notice at the kvstores
)

// faults are all kinds.
func faults() []fault {
	all := []fault{
		{name: "compact", begin: func(c *cluster, _ *rand.Rand) { c.Store.Compact() }},
		{ // its history is dropped again and again, also that which a slow reader has not read yet
			name: "compacting", lasts: 3 * time.Minute,
			begin: func(c *cluster, _ *rand.Rand) {
				ctx, stop := context.WithCancel(c.w.ctx)
				c.stopCompacting = stop
				go func() {
					for waiting.Sleep(ctx, 500*time.Millisecond) == nil {
						c.Store.Compact()
					}
				}()
			},
			end: func(c *cluster, _ *rand.Rand) { c.stopCompacting() },
		},
		{name: "expire", begin: func(c *cluster, _ *rand.Rand) { c.Store.ExpireLeases() }},
		{ // another client deletes some keys of a family, perhaps with their history, before readers have seen that
			name: "deletion", begin: func(c *cluster, r *rand.Rand) {
				of := c.history.families[r.IntN(len(c.history.families))]
				names := slices.Sorted(maps.Keys(c.history.now(of)))
				for range min(len(names), 1+r.IntN(5)) {
					c.Store.Unset(of.prefix + names[r.IntN(len(names))])
				}
				if r.IntN(2) == 0 {
					c.Store.Compact()
				}
			},
		},
		{ // another client writes values that no writer would
			name: "garbage", begin: func(c *cluster, r *rand.Rand) {
				of := c.history.families[r.IntN(len(c.history.families))]
				if c.hasOthers(of) {
					return // what another client writes counts
				}
				now := c.history.now(of)
				names := slices.Sorted(maps.Keys(now))
				for range min(len(names), 1+r.IntN(5)) {
					name := names[r.IntN(len(names))]
					c.history.foreign.Store(true)
					c.Store.Set(of.prefix+spoiledName(r, name), string(spoiled(r, now[name], now[names[r.IntN(len(names))]])))
					c.history.foreign.Store(false)
				}
			},
		},
		{ // its agent ends, and another client writes more keys of a family than a cluster may have
			name: "flood", lasts: 3 * time.Minute,
			begin: func(c *cluster, r *rand.Rand) {
				c.stop()
				of := c.history.families[r.IntN(len(c.history.families))]
				if c.hasOthers(of) {
					return // the next agent would leave these keys
				}
				for i := range c.w.Budget.Share(of.r).Keys {
					c.Store.Set(fmt.Sprintf("%s0-%03d", of.prefix, i), "{}")
				}
				if r.IntN(2) == 0 { // readers list again, and these keys come first
					c.Store.Compact()
					c.Store.Break(nil)
				}
			},
			end: func(c *cluster, _ *rand.Rand) { c.start() },
		},
		{name: "replace", begin: func(c *cluster, _ *rand.Rand) { c.Store.Replace() }},
		{name: "wipe", begin: func(c *cluster, _ *rand.Rand) { c.Store.Wipe() }},
		{ // the kvstore is restored from a backup that was made at the begin
			name: "backup", lasts: 2 * time.Minute,
			begin: func(c *cluster, _ *rand.Rand) { c.backup = c.Store.Backup() },
			end:   func(c *cluster, _ *rand.Rand) { c.Store.Restore(c.backup); c.backup = nil },
		},
		{ // its agent ends, and another one starts
			name: "stop", lasts: time.Minute, disturbs: onlyAgent,
			begin: func(c *cluster, _ *rand.Rand) { c.stop() },
			end:   func(c *cluster, _ *rand.Rand) { c.start() },
		},
		{ // the same without a last word: its agent can write nothing when it ends
			name: "crash", lasts: time.Minute, disturbs: onlyAgent,
			begin: func(c *cluster, _ *rand.Rand) {
				own := c.routes[c.Own.ID-1]
				var before bool
				own.change(func() { before, own.away = own.away, true })
				c.stop()
				own.change(func() { own.away = before })
			},
			end: func(c *cluster, _ *rand.Rand) { c.start() },
		},
		{ // its agent, that runs or one that starts, ends at one of its next requests, and can write nothing more
			name: "kill", lasts: time.Minute, disturbs: onlyAgent,
			begin: func(c *cluster, r *rand.Rand) {
				if r.IntN(2) == 0 {
					c.stop()
					c.start()
				}
				c.setTrap(1 + r.IntN(200))
			},
			end: func(c *cluster, _ *rand.Rand) {
				if c.setTrap(0); c.cancel != nil && !c.isRunning() {
					c.stop()
				}
				c.start()
			},
		},
		{ // its agent ends, and one starts that finds its states torn
			name: "torn", lasts: time.Minute, disturbs: onlyAgent,
			begin: func(c *cluster, _ *rand.Rand) { c.stop() },
			end: func(c *cluster, r *rand.Rand) {
				c.stop() // the end of another fault may have started one
				for _, dir := range c.w.States(c.Cluster) {
					if !c.active["unsaved"] {
						c.note(tear(dir, r))
					}
				}
				c.start()
			},
		},
		{ // its agent starts again, and can neither read nor save its states; they may be lost
			name: "unsaved", lasts: 3 * time.Minute, disturbs: onlyAgent,
			begin: func(c *cluster, _ *rand.Rand) {
				for _, dir := range c.w.States(c.Cluster) {
					c.note(os.Rename(dir, dir+".away"))
					c.note(os.WriteFile(dir, nil, 0o600))
				}
				c.stop()
				c.start()
			},
			end: func(c *cluster, r *rand.Rand) {
				for _, dir := range c.w.States(c.Cluster) {
					c.note(os.Remove(dir))
					if r.IntN(2) == 0 {
						c.note(os.RemoveAll(dir + ".away"))
						c.note(os.Mkdir(dir, 0o700))
					} else {
						c.note(os.Rename(dir+".away", dir))
					}
				}
			},
		},
		{ // its agent loses the client file of another cluster
			name: "unlink", lasts: 4 * time.Minute,
			begin: func(c *cluster, r *rand.Rand) {
				c.remote.leaves()
				c.unlinked = c.file(r)
				_ = os.Remove(c.unlinked.path) // another fault may have removed it
			},
			end: func(c *cluster, _ *rand.Rand) {
				c.remote.leaves()
				c.note(agents.WriteClientFile(c.unlinked.path, c.Cluster, c.unlinked.to))
			},
		},
		{ // its agent starts again without the client file of a cluster that it has copied
			name: "leave", lasts: 4 * time.Minute,
			begin: func(c *cluster, r *rand.Rand) {
				other := c.w.clusters[(int(c.Own.ID)+r.IntN(len(c.w.clusters)-1))%len(c.w.clusters)]
				c.left = link{c.w.Originals(c.Cluster, other.Cluster), other.Cluster}
				c.remote.leaves()
				c.stop()
				_ = os.Remove(c.left.path) // another fault may have removed it
				c.start()
			},
			end: func(c *cluster, _ *rand.Rand) {
				c.remote.leaves()
				c.note(agents.WriteClientFile(c.left.path, c.Cluster, c.left.to))
			},
		},
		{ // a client file is half-written, and its agent may start again with it
			name: "half", lasts: 3 * time.Minute,
			begin: func(c *cluster, r *rand.Rand) {
				c.half = c.file(r)
				c.note(os.WriteFile(c.half.path, []byte("endpoints: [http:"), 0o600))
				if r.IntN(2) == 0 {
					c.stop()
					c.start()
				}
			},
			end: func(c *cluster, _ *rand.Rand) { c.note(agents.WriteClientFile(c.half.path, c.Cluster, c.half.to)) },
		},
	}
	for _, f := range all {
		if slices.Contains([]string{"compact", "expire", "replace", "wipe"}, f.name) {
			all = append(all, f.duringWrite())
		}
	}
	all = append(all, hostile())
	all = append(all, memberFaults()...)
	for _, f := range networkFaults() {
		all = append(all, f.ofStore(), f.ofRoute())
		if f.end != nil && !f.ofKvstores {
			all = append(all, f.ofAPI())
		}
	}
	return all
}

// duringWrite is the fault between the next write and its answer.
func (f fault) duringWrite() fault {
	return fault{name: f.name + "-write", begin: func(c *cluster, r *rand.Rand) {
		c.net.change(func() {
			c.net.strike = func() {
				c.flaps.fault()
				f.begin(c, r)
			}
		})
	}}
}

// hasOthers reports whether the writer of the keys of a family leaves those of others.
func (c *cluster) hasOthers(of *recorded) bool {
	return of.prefix == of.r.Prefix(c.Own.Name, false) &&
		(of.r == wire.Identities || len(c.members) > 0 && (of.r == wire.Nodes || of.r == wire.IPs))
}

// spoiledName returns the name of a key, or one that is similar.
func spoiledName(r *rand.Rand, name string) string {
	switch r.IntN(6) {
	case 0:
		return name + "x"
	case 1:
		return name[:len(name)/2+1]
	case 2:
		return name + "/" + name
	}
	return name
}

// spoiled returns a value with an error, or that of another key.
func spoiled(r *rand.Rand, value, other []byte) []byte {
	value = slices.Clone(value)
	at := r.IntN(len(value) + 1)
	switch r.IntN(5) {
	case 0:
		return value[:at]
	case 1:
		return slices.Insert(value, at, byte(r.Uint32()))
	case 2:
		return bytes.Repeat([]byte("{"), r.IntN(10_000))
	case 3:
		return other
	}
	if at < len(value) {
		value[at] ^= 1 << r.IntN(8)
	}
	return value
}

// tear spoils the files in a directory, or removes them.
func tear(dir string, r *rand.Rand) error {
	files, err := os.ReadDir(dir)
	for _, file := range files {
		path := filepath.Join(dir, file.Name())
		content, failed := os.ReadFile(path)
		if r.IntN(4) == 0 {
			err = errors.Join(err, failed, os.Remove(path))
			continue
		}
		switch r.IntN(3) {
		case 0: // another ID, or another cluster
			content = bytes.Replace(content, fmt.Append(nil, 1+r.IntN(3)), fmt.Append(nil, 1+r.IntN(3)), 1+r.IntN(3))
		case 1: // two clusters have the IDs of each other
			two := regexp.MustCompile(`("c\d+":)(\d+)(.*?"c\d+":)(\d+)`)
			content = two.ReplaceAll(content, []byte("${1}${4}${3}${2}"))
		case 2:
			content = spoiled(r, content, content)
		}
		err = errors.Join(err, failed, os.WriteFile(path, content, 0o600))
	}
	return err
}

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

func faultOf(name string) (fault, bool) {
	all := faults()
	i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
	if i < 0 {
		return fault{}, false
	}
	return all[i], true
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
