package simulate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/simtest/agents"
)

// world is a mesh under simulation, and its judge.
type world struct {
	*agents.World
	clusters []*cluster
	ctx      context.Context
	objects  Objects
	scale    int // times the mesh of most campaigns: a reader can continue only after the first objects
	judge    *judge
	journal  *journal
	seen     *situations

	judging sync.WaitGroup // of what outlives the agents

	mu       sync.Mutex
	logged   map[loggedIn]int // numbers of messages; guarded by mu
	said     []string         // messages while all must be quiet; guarded by mu
	quiet    bool             // guarded by mu
	findings []error          // what the judge found, and what failed; guarded by mu
}

// cluster is a cluster with the faults that it has now.
type cluster struct {
	*agents.Cluster
	w       *world
	history *history
	net     network // of all that read and write its kvstore
	api     network // to its Kubernetes API
	remote  *remoteSlices
	// members are the nodes that register themselves, and allocation has the identities that they allocate.
	members    []*member
	allocation *allocation
	routes     []*network // from the programs of the cluster to the kvstore of each cluster, in their order

	active               map[string]bool     // faults that have begun and not ended
	over                 map[string]*network // the route that a fault is about
	flaps                flaps
	lies                 lies // to the other clusters
	stopCompacting       context.CancelFunc
	backup               *memory.Backup
	unlinked, left, half link

	// The running agent, and what it shows; cancel is nil when none runs.
	cancel  context.CancelFunc
	ended   chan error
	screens []*screen
	readers []*reader
	clients []*follower
	// subscribers outlive agents, and keep what they have.
	subscribers []*subscriber
	copied      *copied
}

// link is a client file, and the cluster that it leads to.
type link struct {
	path string
	to   *agents.Cluster
}

// newWorld returns a running mesh, which ends with ctx.
func newWorld(ctx context.Context, p agents.Params, notes *journal, seen *situations, seed uint64, size Size) (*world, error) {
	var names []string
	for i := range size.Clusters {
		names = append(names, fmt.Sprint("c", i+1))
	}
	w := &world{ctx: ctx, objects: size.Objects, scale: size.scale(), journal: notes, seen: seen, logged: make(map[loggedIn]int)}
	w.judge = newJudge(w)
	p.Log = slog.New(seen.of(w.found, w.hear))
	p.Budget = size.budget()
	all, err := agents.New(p, names...)
	if err != nil {
		return nil, err
	}
	w.World = all
	for i, one := range all.Clusters {
		c := &cluster{Cluster: one, w: w, history: newHistory(one, all.Clusters), allocation: newAllocation(one.Own), active: make(map[string]bool), over: make(map[string]*network), flaps: flaps{faults: newTrouble(), reading: newTrouble()}}
		for i, to := range all.Clusters {
			n := &network{store: all.Route(one, to), seen: seen, rng: rand.New(rand.NewPCG(seed, uint64(1000*c.Own.ID)+uint64(i)))}
			n.store.SetFault(n.fault)
			n.store.SetLiar(n.lie)
			c.routes = append(c.routes, n)
		}
		c.members = newMembers(c, seed)
		c.remote = newRemoteSlices(c)
		c.api.rng = rand.New(rand.NewPCG(seed, uint64(500+i)))
		c.API.SetFault(c.api.request)
		c.API.SetObserver(c.remote.written)
		c.net.store, c.net.seen = c.Store, seen
		c.net.rng = rand.New(rand.NewPCG(seed, uint64(i+1)))
		c.Store.SetPageSize(10)
		c.Store.SetFragmentSize(3)
		c.Store.SetRecorder(func(at kvstore.Position, changes []kvstore.Event) {
			for _, e := range changes {
				notes.note("%s %d %s %s %s", one.Own.Name, at.Revision, e.Type, e.Key, e.Value)
			}
			w.found(c.history.record(changes, c))
			if len(c.members) > 0 {
				w.found(c.allocation.record(changes))
			}
		})
		c.Store.SetFault(c.net.fault)
		description{rand.New(rand.NewPCG(seed, uint64(100+i))), one, size.Objects, func(string) {}}.fill()
		w.clusters = append(w.clusters, c)
	}
	for _, c := range w.clusters {
		c.run()
		c.subscribers = subscribers(c)
		for _, s := range c.subscribers {
			w.judging.Go(func() { w.found(s.run(ctx)) })
		}
		for _, m := range c.members {
			m.start()
		}
	}
	return w, nil
}

// named returns a cluster by its name.
func (w *world) named(name string) *cluster {
	return w.clusters[slices.IndexFunc(w.clusters, func(c *cluster) bool { return c.Own.Name == name })]
}

// found notes what must not be.
func (w *world) found(err error) {
	if err == nil {
		return
	}
	w.journal.note("found: %v", err)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.findings) < 10 { // the journal has all
		w.findings = append(w.findings, err)
	}
}

// maxMessages is how many messages the programs of a cluster may write to the log in a minute: twice as many as were seen.
const maxMessages = 500

// hear notes a message of an agent, if all must be quiet or there are too many.
func (w *world) hear(agent, message string) {
	minute := loggedIn{agent, time.Now().Truncate(time.Minute)}
	w.mu.Lock()
	w.logged[minute]++
	n := w.logged[minute]
	if w.quiet {
		w.said = append(w.said, message)
	}
	w.mu.Unlock()
	if n == maxMessages {
		w.found(fmt.Errorf("%s: the programs of %s have written %d messages to the log in this minute, the last one: %s", clock(time.Now()), agent, n, message))
	}
}

// loggedIn is a minute of the log of an agent.
type loggedIn struct {
	agent  string
	minute time.Time
}

// listen begins or ends the time in which all must be quiet, and returns the messages.
func (w *world) listen(quiet bool) (said []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	said, w.said, w.quiet = w.said, nil, quiet
	return said
}

// verdict returns everything that was found.
func (w *world) verdict() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.findings...)
}

func (c *cluster) note(err error) { c.w.found(err) }

func (c *cluster) run() {
	ctx, cancel := context.WithCancel(c.w.ctx)
	c.cancel, c.ended, c.copied = cancel, make(chan error, 1), newCopied(c)
	agent, ended, copied := c.Cluster, c.ended, c.copied
	c.screens, c.readers = nil, nil
	for i, m := range []*mesh.Mesh{c.Mesh, c.Direct} {
		s, err := newScreen(c, m, m == c.Mesh)
		c.note(err)
		c.screens = append(c.screens, s)
		whose := c.Own.Name + map[bool]string{true: "", false: "'s program"}[m == c.Mesh]
		c.readers = append(c.readers, newReader(whose, m, rand.New(rand.NewPCG(uint64(c.Own.ID), uint64(i))), 500*c.w.scale))
	}
	clients, err := followers(c)
	c.note(err)
	c.clients = clients
	screens, readers := c.screens, c.readers
	c.flaps.start()
	go func() {
		var judging sync.WaitGroup
		for _, s := range screens {
			judging.Go(func() { s.follow(ctx, copied.look) })
		}
		for _, r := range readers {
			judging.Go(func() { c.note(r.run(ctx)) })
		}
		for _, f := range clients {
			judging.Go(func() { c.note(f.run(ctx)) })
		}
		err := agent.Run(ctx)
		judging.Wait()
		for _, s := range screens {
			s.close()
		}
		ended <- err
	}()
}

// isUndisturbed reports whether no fault was active, from some time before a time until now, that could delay a change of a
// key of a cluster, or of its copy in this one, or cause one.
func (c *cluster) isUndisturbed(of string, at time.Time) bool {
	return c.flaps.undisturbed(at) && c.w.named(of).flaps.undisturbed(at)
}

// isReadable reports whether no fault was active, from some time before a time until now, that could delay the knowledge of
// the kvstore of a cluster.
func (c *cluster) isReadable(of string, at time.Time) bool {
	return c.flaps.readable(at) && c.w.named(of).flaps.readable(at)
}

// mustBeCurrent reports whether a program of the cluster that reads the kvstore of another one directly must know it as of now.
func (c *cluster) mustBeCurrent(of string, now time.Time) bool {
	whole, full := c.w.named(of).flaps.isWhole(now)
	must := whole && c.flaps.readable(now)
	if must && full {
		c.w.seen.note(readsFull)
	}
	return must
}

// stop ends the agent, if it runs, and start starts another one, if none runs.
func (c *cluster) stop() {
	if c.cancel == nil {
		return
	}
	c.cancel()
	if err := <-c.ended; !errors.Is(err, context.Canceled) {
		c.note(fmt.Errorf("the agent of %s ended with %w", c.Own.Name, err))
	}
	c.cancel = nil
}

// isRunning reports whether an agent runs, which was not ended by a trap.
func (c *cluster) isRunning() bool { return c.cancel != nil && len(c.ended) == 0 }

func (c *cluster) start() {
	if c.cancel != nil {
		return
	}
	c.setTrap(0)
	c.note(c.w.Renew(c.Cluster))
	c.run()
}

// file returns a client file of the agent.
func (c *cluster) file(r *rand.Rand) link {
	others := slices.DeleteFunc(slices.Clone(c.w.Clusters), func(o *agents.Cluster) bool { return o == c.Cluster })
	other := others[r.IntN(len(others))]
	if r.IntN(2) == 0 {
		return link{c.w.Originals(c.Cluster, other), other}
	}
	return link{c.w.Copies(c.Cluster, other), c.Cluster}
}

// do makes a step. A fault that lasts does not begin again, and one that has not begun does not end, so that each part
// of a plan is a plan.
func (w *world) do(s Step) {
	c := w.clusterOf(s)
	w.journal.note("%s", s)
	c.flaps.step(s)
	name, ends := cutEnding(s.Do)
	f, is := faultOf(name)
	switch {
	case !is:
		description{s.rng(), c.Cluster, w.objects, c.remote.asks}.do(s.Do)
	case ends && c.active[name]:
		delete(c.active, name)
		f.end(c, s.rng())
	case !ends && !c.active[name]:
		w.seen.note(begins + name)
		if isSpoiling(name) {
			c.allocation.spoil()
		}
		c.active[name] = f.end != nil
		f.begin(c, s.rng())
	}
}

// heal ends all faults.
func (w *world) heal() {
	for i, c := range w.clusters {
		c.net.change(func() { c.net.strike = nil })
		for _, f := range faults() {
			if c.active[f.name] {
				w.do(Step{Cluster: i, Do: ending + f.name})
			}
		}
	}
}

// sleepUntil waits until the time since the start has passed.
func sleepUntil(start time.Time, at time.Duration) { time.Sleep(time.Until(start.Add(at))) }
