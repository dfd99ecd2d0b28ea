package faults

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// listing is the effect of a fault on the mesh's data: whether the mesh must list again.
type listing int

const (
	staysKnown listing = iota // the sessions continue
	mayBeListed
	isListed // earlier data no longer count
)

// fault is one kind of fault. begin and end return when the fault has begun and ended on the server; the mesh notices
// it later.
type fault struct {
	name string
	// away: while it lasts the mesh gets no changes, and must report that; it keeps its entries.
	away bool
	// down: no client can write to the server while it lasts.
	down bool
	// withdrawn: the mesh must forget the cluster, as it begins and as it ends.
	withdrawn bool
	listed    listing

	begin, end func(*cluster, step)
	// meanwhile, if set, has to hold at some time while the fault lasts.
	meanwhile func(*cluster, remotecluster.Status) bool
}

// faults are all kinds.
func faults() []fault {
	locked := func(c *cluster, _ step) { c.proxies[c.open].lock() }
	unlocked := func(c *cluster, _ step) { c.proxies[c.open].unlock() }
	relieved := func(c *cluster, _ step) { c.proxies[c.open].relieve() }
	spoilt := func(kind string, attributes map[string]int) func(*cluster, step) {
		return func(c *cluster, _ step) { c.proxies[c.open].spoil(kind, attributes) }
	}
	configured := func(c *cluster, _ step) { c.must(c.configure(c.config())) }
	return []fault{
		{
			name: "kill", away: true, down: true, listed: mayBeListed,
			begin: func(c *cluster, _ step) { c.etcd.Kill(c.w.t) },
			end:   func(c *cluster, _ step) { c.etcd.Restart(c.w.t); c.connect() },
		},
		{
			name: "freeze", away: true, down: true, listed: mayBeListed,
			begin: func(c *cluster, _ step) { c.etcd.Freeze(c.w.t) },
			end:   func(c *cluster, _ step) { c.etcd.Thaw(c.w.t) },
		},
		{name: "reset", away: true, listed: mayBeListed, begin: spoilt("reset_peer", nil), end: relieved},
		{name: "black-hole", away: true, listed: mayBeListed, begin: spoilt("timeout", nil), end: relieved},
		{name: "refuse", away: true, listed: mayBeListed, begin: locked, end: unlocked},
		{
			name: "slow", listed: mayBeListed,
			begin: func(c *cluster, _ step) {
				c.proxies[c.open].spoil("latency", map[string]int{"latency": 40, "jitter": 30})
				c.proxies[c.open].spoil("bandwidth", map[string]int{"rate": 200})
			},
			end: relieved,
		},
		{
			name: "slicer", listed: mayBeListed,
			begin: spoilt("slicer", map[string]int{"average_size": 100, "size_variation": 50, "delay": 100}), end: relieved,
		},
		{
			name: "slow-close", away: true, down: true, listed: mayBeListed,
			begin: func(c *cluster, _ step) {
				c.proxies[c.open].spoil("slow_close", map[string]int{"delay": 700})
				c.etcd.Kill(c.w.t)
			},
			end: func(c *cluster, _ step) {
				c.etcd.Restart(c.w.t)
				c.connect()
				c.proxies[c.open].relieve()
			},
		},
		{
			name: "compact", away: true, listed: mayBeListed, begin: locked,
			end: func(c *cluster, s step) {
				c.must(c.compact())
				unlocked(c, s)
			},
		},
		{ // another replica with the same data
			name: "replace", away: true, listed: isListed,
			begin: func(c *cluster, s step) {
				locked(c, s)
				c.refill(s, c.etcd.RestartAsOther)
			},
			end: unlocked,
		},
		{ // the same, with the same etcd cluster ID, and with revisions above the earlier ones
			name: "wipe-and-overtake", away: true, listed: isListed,
			begin: func(c *cluster, s step) {
				locked(c, s)
				before := c.revision()
				c.refill(s, c.etcd.RestartEmpty)
				c.overtake(before)
			},
			end: unlocked,
		},
		{ // a backup is made, the mesh sees more changes, and then the server is restored from the backup
			name: "restore-and-overtake", listed: mayBeListed,
			begin: func(c *cluster, s step) {
				locked(c, s)
				c.must(c.w.until(c.name+" to be missed", func() bool { return !c.w.status(c).Ready }))
				c.pause(false)
				c.backup = c.etcd.Backup(c.w.t)
				c.connect()
				c.unpause()
				unlocked(c, s)
				c.mayList()
			},
			meanwhile: func(c *cluster, _ remotecluster.Status) bool { return c.well() },
			end: func(c *cluster, s step) {
				locked(c, s)
				before := c.revision()
				c.pause(true)
				c.etcd.RestartFrom(c.w.t, c.backup)
				c.connect()
				c.must(c.rewound())
				c.overtake(before)
				unlocked(c, s)
			},
		},
		{ // a slow list must not be reported as newer than it is
			name: "list-slowly", away: true, listed: isListed,
			begin: func(c *cluster, s step) {
				locked(c, s)
				c.refill(s, c.etcd.RestartAsOther)
			},
			end: func(c *cluster, s step) {
				c.unpause()
				c.proxies[c.open].spoil("latency", map[string]int{"latency": 30, "jitter": 10})
				unlocked(c, s)
				c.must(c.w.until(c.name+" to be listed slowly", c.well))
				c.proxies[c.open].relieve()
			},
		},
		{ // emptied while the mesh watches: without a configuration the mesh keeps its entries
			name: "empty", away: true, withdrawn: true, listed: isListed,
			begin: func(c *cluster, _ step) { c.etcd.RestartEmpty(c.w.t); c.connect() },
			end:   configured,
		},
		{
			name: "remove-file", withdrawn: true, listed: isListed,
			begin: func(c *cluster, _ step) { c.gone = true; c.must(os.Remove(c.file())) },
			end:   func(c *cluster, _ step) { c.gone = false; c.must(c.writeFile("")) },
			meanwhile: func(_ *cluster, st remotecluster.Status) bool {
				return st.Name == "" // the status no longer has the cluster
			},
		},
		{ // rewritten with the same contents, and then with those of the other proxy
			name: "rewrite-file", listed: mayBeListed,
			begin: func(c *cluster, _ step) { c.must(c.writeFile("")) },
			end: func(c *cluster, _ step) {
				c.open = 1 - c.open
				c.must(c.writeFile(""))
			},
		},
		{
			name: "change-id", withdrawn: true, listed: isListed,
			begin: func(c *cluster, _ step) { c.rename(c.id + 10) },
			end:   func(c *cluster, _ step) { c.rename(c.id - 10) },
			meanwhile: func(c *cluster, st remotecluster.Status) bool {
				return st.ID == c.id
			},
		},
		{ // and a new session waits for it
			name: "delete-config", away: true, listed: mayBeListed,
			begin: func(c *cluster, s step) {
				c.must(c.put(change{key: wire.ClusterConfigKey(c.name)}))
				c.must(c.writeFile(fmt.Sprintf("# %d\n", s.n)))
			},
			end: configured,
			meanwhile: func(_ *cluster, st remotecluster.Status) bool {
				return strings.Contains(st.Message, "waiting for the cluster configuration")
			},
		},
		{
			name: "spoil-config", listed: staysKnown,
			begin: func(c *cluster, _ step) { c.must(c.put(change{wire.ClusterConfigKey(c.name), []byte("{")})) },
			end:   configured,
			meanwhile: func(_ *cluster, st remotecluster.Status) bool {
				return st.State == remotecluster.Degraded && strings.Contains(st.Message, wire.ClusterConfigPrefix)
			},
		},
		{
			name: "reconfigure", listed: mayBeListed,
			begin: func(c *cluster, _ step) {
				cfg := c.config()
				cfg.Capabilities.MaxConnectedClusters = 511
				c.must(c.configure(cfg))
			},
			end: configured,
		},
		{
			name: "heartbeat", listed: staysKnown,
			begin: func(c *cluster, _ step) { c.hush(true) },
			end:   func(c *cluster, _ step) { c.hush(false) },
			meanwhile: func(_ *cluster, st remotecluster.Status) bool {
				return st.State == remotecluster.Degraded && strings.Contains(st.Message, "heartbeat")
			},
		},
	}
}

func faultOf(name string) (fault, bool) {
	all := faults()
	i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
	if i < 0 {
		return fault{}, false
	}
	return all[i], true
}

// strike begins a fault. Everything before it has been seen by the mesh.
func (c *cluster) strike(f fault, s step) error {
	if f.away {
		seen, err := c.read()
		if err != nil {
			return err
		}
		c.frozen = &seen
	}
	if f.down || f.withdrawn || f.listed == isListed {
		c.pause(f.withdrawn || f.listed == isListed)
	}
	c.lasting = &f
	f.begin(c, s)
	c.moved = c.moved || f.withdrawn
	return c.meanwhile(f)
}

// meanwhile waits until the mesh has noticed the fault.
func (c *cluster) meanwhile(f fault) error {
	if f.away {
		if err := c.w.until(c.name+" not to be ready during "+f.name, func() bool { return !c.w.status(c).Ready }); err != nil {
			return err
		}
	}
	if f.meanwhile == nil {
		return nil
	}
	return c.w.until("what "+f.name+" does to "+c.name, func() bool { return f.meanwhile(c, c.w.status(c)) })
}

// heal ends the fault that lasts.
func (c *cluster) heal(s step) error {
	f := c.lasting
	if f == nil {
		return nil
	}
	c.lasting, c.frozen = nil, nil
	f.end(c, s)
	if f.listed == isListed {
		if err := c.willList(); err != nil {
			return err
		}
	} else if f.listed == mayBeListed {
		c.mayList()
	}
	c.moved = c.moved || f.withdrawn
	c.unpause()
	return c.w.until(c.name+" to be ready after "+f.name, c.well)
}

// well reports whether the mesh has handled everything that happened to the cluster, except changes of its contents.
func (c *cluster) well() bool {
	st := c.w.status(c)
	return st.State == remotecluster.Ready && st.ID == c.id && reflect.DeepEqual(*st.Capabilities, c.config().Capabilities) &&
		slices.Equal(st.Endpoints, []string{"http://" + c.proxies[c.open].addr()})
}

func (c *cluster) revision() int64 {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := c.kv.Get(ctx, wire.HeartbeatKey)
	c.must(err)
	return resp.Header.Revision
}

// overtake writes until the server's revision is above this one.
func (c *cluster) overtake(revision int64) {
	for c.revision() <= revision {
		c.must(c.put(change{wire.HeartbeatKey, []byte("overtaking")}))
	}
}

func (c *cluster) compact() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := c.kv.Compact(ctx, c.revision(), clientv3.WithCompactPhysical())
	return err
}

// refill starts another server with restart and writes the contents of the earlier one, in an order that the step
// decides.
func (c *cluster) refill(s step, restart func(testing.TB)) {
	values, err := c.values()
	c.must(err)
	restart(c.w.t)
	c.connect()
	var all []change
	for key, value := range values {
		all = append(all, change{key, value})
	}
	slices.SortFunc(all, func(a, b change) int { return cmp.Compare(a.key, b.key) })
	s.rng().Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for some := range slices.Chunk(all, 1+s.rng().IntN(20)) {
		c.must(c.put(some...))
	}
	c.must(c.configure(c.config()))
}

// rename gives the cluster another ID.
func (c *cluster) rename(id uint32) {
	c.mu.Lock()
	c.id = id
	c.mu.Unlock()
	c.must(c.configure(c.config()))
	c.must(c.willList())
}
