package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// cluster is one remote cluster: a server, two proxies to it, and facts about its contents that are not stored in the
// server.
type cluster struct {
	w       *world
	index   int
	name    string
	etcd    *etcdtest.Process
	proxies [2]*proxy
	open    int  // the proxy that the client file leads to
	gone    bool // it has no client file

	backup string // of the server, if there is one

	lasting *fault  // nil without a fault
	frozen  *source // while the mesh cannot see the cluster: what the mesh has seen of it

	// accepted is the last acceptable value of each key, since the key or the server was created. refused are the keys
	// whose present value is not acceptable although an earlier one was.
	accepted map[string][]byte
	refused  map[string]refusal
	// touched are the keys that were written since view and model last agreed. moved: every object may have been
	// replaced.
	touched map[string]bool
	moved   bool

	mu     sync.Mutex // held while a canary is written
	kv     *clientv3.Client
	id     uint32
	paused bool // neither canaries nor heartbeats are written
	silent bool // no heartbeats are written
	count  int
	acks   []ack
}

// refusal is a value that is not acceptable, and that replaced an acceptable one.
type refusal struct {
	old []byte
	// doubtful: the mesh may have listed since, and then the earlier value is gone.
	doubtful bool
}

// ack is a canary, and a time at which etcd had acknowledged it.
type ack struct {
	at time.Time
	n  int
}

func newCluster(w *world, index int) *cluster {
	w.t.Helper()
	c := emptyCluster(w, index)
	first := step{index, "txn", 1}
	for range 60 {
		first.n++
		c.must(c.operate(first))
	}
	c.must(c.configure(c.config()))
	c.must(c.writeFile(""))
	return c
}

// emptyCluster has a server without contents, and no client file.
func emptyCluster(w *world, index int) *cluster {
	w.t.Helper()
	c := &cluster{
		w: w, index: index, name: fmt.Sprint("c", index+1), id: uint32(index + 1), //nolint:gosec // small
		etcd: etcdtest.StartProcess(w.t), accepted: map[string][]byte{}, refused: map[string]refusal{}, touched: map[string]bool{},
	}
	for i := range c.proxies {
		c.proxies[i] = newProxy(w.t, strings.TrimPrefix(c.etcd.Endpoint(), "http://"))
	}
	c.connect()
	return c
}

func (c *cluster) must(err error) {
	c.w.t.Helper()
	if err != nil {
		c.w.t.Fatal(err)
	}
}

// connect makes a new client of a server that was started.
func (c *cluster) connect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kv != nil {
		_ = c.kv.Close()
	}
	c.kv = c.etcd.Client(c.w.t)
}

func (c *cluster) file() string { return filepath.Join(c.w.dir, c.name) }

// writeFile writes the client file. Another text more after it makes another file.
func (c *cluster) writeFile(more string) error {
	text := fmt.Sprintf("endpoints:\n- http://%s\n%s", c.proxies[c.open].addr(), more)
	if err := os.WriteFile(c.file()+".tmp", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(c.file()+".tmp", c.file())
}

func (c *cluster) config() wire.ClusterConfig {
	exports := true
	return wire.ClusterConfig{ID: c.id, Capabilities: wire.Capabilities{
		MaxConnectedClusters: 255, EndpointSlicesExportMode: wire.EndpointSlicesBoth, ServiceExportsEnabled: &exports,
	}}
}

func (c *cluster) configure(cfg wire.ClusterConfig) error {
	return c.put(change{wire.ClusterConfigKey(c.name), cfg.Encode()})
}

// put writes in one transaction, past the proxies.
func (c *cluster) put(changes ...change) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.putLocked(changes...)
}

func (c *cluster) putLocked(changes ...change) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := commit(ctx, c.kv, changes); err != nil {
		return fmt.Errorf("writing to %s: %w", c.name, err)
	}
	return nil
}

// commit writes changes in one transaction and returns its revision.
func commit(ctx context.Context, kv *clientv3.Client, changes []change) (int64, error) {
	ops := make([]clientv3.Op, len(changes))
	for i, ch := range changes {
		if ops[i] = clientv3.OpPut(ch.key, string(ch.value)); ch.value == nil {
			ops[i] = clientv3.OpDelete(ch.key)
		}
	}
	resp, err := kv.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return 0, err
	}
	return resp.Header.Revision, nil
}

// client returns the client of the server as last started.
func (c *cluster) client() *clientv3.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kv
}

// operate does one operation and records its effects.
func (c *cluster) operate(s step) error {
	for _, changes := range (maker{s.rng(), c.name, c.id}).transactions(s.do) {
		if err := c.put(changes...); err != nil {
			return err
		}
		for _, ch := range changes {
			c.note(ch)
		}
	}
	return nil
}

func (c *cluster) note(ch change) {
	c.touched[plainKey(ch.key)] = true
	switch old, accepted := c.accepted[ch.key]; {
	case ch.value == nil:
		delete(c.accepted, ch.key)
		delete(c.refused, ch.key)
	case model.Acceptable(ch.key, ch.value, expect(c.name, c.id)):
		c.accepted[ch.key] = ch.value
		delete(c.refused, ch.key)
	case accepted:
		c.refused[ch.key] = refusal{old, c.refused[ch.key].doubtful}
	}
}

// plainKey is the key without leading zeroes in an identity.
func plainKey(key string) string {
	if prefix := wire.Identities.Prefix("", false); strings.HasPrefix(key, prefix) {
		return prefix + strings.TrimLeft(strings.TrimPrefix(key, prefix), "0")
	}
	return key
}

// mayList: from now on the mesh may have listed again, and may then have refused values.
func (c *cluster) mayList() {
	for key, r := range c.refused {
		r.doubtful = true
		c.refused[key] = r
	}
}

// willList: the mesh will list what the server has now, so nothing from before stays in force.
func (c *cluster) willList() error {
	values, err := c.values()
	if err != nil {
		return err
	}
	clear(c.refused)
	clear(c.accepted)
	for key, value := range values {
		if model.Acceptable(key, value, expect(c.name, c.id)) {
			c.accepted[key] = value
		}
	}
	return nil
}

// rewound: the server has earlier contents again, and the mesh may find that it has the same.
func (c *cluster) rewound() error {
	before := c.refused
	c.refused = map[string]refusal{}
	if err := c.willList(); err != nil {
		return err
	}
	for key, r := range before {
		if _, good := c.accepted[key]; !good {
			c.accepted[key], c.refused[key] = r.old, r
		}
	}
	c.moved = true
	return nil
}

// mayMove reports whether the object of the key may have been replaced. While the mesh cannot see the cluster, no
// object may be.
func (c *cluster) mayMove(key string) bool {
	return c.frozen == nil && (c.moved || c.touched[key])
}

// agreed is called when view and model agree; caughtUp reports whether the view has seen everything that was written.
func (c *cluster) agreed(seen model.Sight, caughtUp bool) {
	if c.frozen != nil {
		return
	}
	if caughtUp {
		clear(c.touched)
		c.moved = false
	}
	for key, r := range c.refused {
		if r.doubtful && !seen.Has(c.name, key) {
			delete(c.refused, key)
			delete(c.accepted, key)
		}
	}
}

// heartbeats writes canaries and heartbeats all the time.
func (c *cluster) heartbeats(ctx context.Context) error {
	for waiting.Sleep(ctx, 50*time.Millisecond) == nil {
		if err := c.writeHeartbeat(); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *cluster) writeHeartbeat() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return nil
	}
	c.count++
	changes := canaries(c.index, c.name, c.id, c.count)
	if !c.silent {
		changes = append(changes, change{wire.HeartbeatKey, []byte(time.Now().Format(time.RFC3339))})
	}
	if err := c.putLocked(changes...); err != nil {
		return err
	}
	c.acks = append(c.acks, ack{time.Now(), c.count})
	return nil
}

// barrier writes a canary, after everything that was written so far, and returns its number; 0 when it cannot be
// written, or the mesh cannot see it.
func (c *cluster) barrier() int {
	if c.frozen != nil || c.gone || c.writeHeartbeat() != nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused {
		return 0
	}
	return c.count
}

// pause stops the canaries. If the contents are going to be withdrawn, earlier acknowledged canaries are no longer
// expected in the view.
func (c *cluster) pause(withdrawn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = true
	if withdrawn {
		c.acks = nil
	}
}

func (c *cluster) unpause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = false
}

// hush stops the heartbeat, or lets it continue.
func (c *cluster) hush(silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = silent
}

// acknowledged is the last canary that etcd had acknowledged at that time.
func (c *cluster) acknowledged(by time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := sort.Search(len(c.acks), func(i int) bool { return c.acks[i].at.After(by) })
	if i == 0 {
		return 0
	}
	return c.acks[i-1].n
}
