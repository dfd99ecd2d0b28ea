package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func testContext(t *testing.T) context.Context {
	t.Helper()
	return waittest.Context(t)
}

func openCluster(t *testing.T, c contents.Cluster, o Options) *Running {
	t.Helper()
	return openMesh(t, o, c).Clusters()[0]
}

func loadCluster(t *testing.T, c contents.Cluster, o Options) *Running {
	t.Helper()
	r := openCluster(t, c, o)
	if _, err := r.Load(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return r
}

// running runs a cluster or a mesh until stop is called, which must not cause an error.
func running(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	}
}

// await waits for this many events.
func await(t *testing.T, watch clientv3.WatchChan, events int) {
	t.Helper()
	for events > 0 {
		resp, ok := <-watch
		if !ok {
			t.Fatal("the watch ended")
		}
		events -= len(resp.Events)
	}
}

func churn(t *testing.T, r *Running, n int) {
	t.Helper()
	_, err := r.Churn(testContext(t), n)
	must(t, err)
}

func mend(t *testing.T, r *Running) {
	t.Helper()
	_, err := r.Mend(testContext(t))
	must(t, err)
}

// readAll reads every key with a plain client.
func readAll(t *testing.T, c *clientv3.Client) map[string]kv {
	t.Helper()
	resp, err := c.Get(testContext(t), "\x00", clientv3.WithFromKey())
	must(t, err)
	all := map[string]kv{}
	for _, e := range resp.Kvs {
		all[string(e.Key)] = kv{value: string(e.Value), lease: e.Lease, created: e.CreateRevision}
	}
	return all
}

type kv struct {
	value   string
	lease   int64
	created int64
}

// announced reports whether the value of a key is a time.
func announced(key string) bool {
	return key == wire.HeartbeatKey || strings.HasPrefix(key, wire.SyncedPrefix+"/")
}

// checkEqual compares the contents of etcd with those that the simulator reports.
func checkEqual(t *testing.T, r *Running) map[string]kv {
	t.Helper()
	all := readAll(t, r.Client())
	got := map[string]string{}
	for key, e := range all {
		if !announced(key) {
			got[key] = e.value
		}
	}
	if diff := cmp.Diff(r.Contents(), got); diff != "" {
		t.Errorf("etcd differs from what the simulator says (-simulator +etcd):\n%s", diff)
	}
	return all
}

// checkContents also checks that every key has a lease, and no lease too many keys.
func checkContents(t *testing.T, r *Running) map[string]kv {
	t.Helper()
	all := checkEqual(t, r)
	keys := map[int64]int{}
	for key, e := range all {
		if e.lease == 0 {
			t.Errorf("%s has no lease", key)
		}
		keys[e.lease]++
	}
	allowed := r.Cluster().KeysPerLease
	if allowed == 0 {
		allowed = contents.DefaultKeysPerLease
	}
	if most := slices.Max(slices.Collect(maps.Values(keys))); most > allowed {
		t.Errorf("%d keys on one lease, at most %d are allowed", most, allowed)
	}
	return all
}

// asAgent connects with the agent's certificate, through the gate.
func asAgent(t *testing.T, r *Running) *clientv3.Client {
	t.Helper()
	c, err := r.etcd.dialAs(testContext(t), r.Endpoint(), r.etcd.reader)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// read waits until the server answers, and returns the keys of a resource that the agent may read.
func read(t *testing.T, r *Running, c *clientv3.Client, resource wire.Resource) (map[string]string, *clientv3.GetResponse) {
	t.Helper()
	ctx := testContext(t)
	for {
		resp, err := c.Get(ctx, resource.Prefix(r.c.Name, r.c.Mode == contents.Cached), clientv3.WithPrefix())
		if err != nil {
			if ctx.Err() != nil {
				t.Fatal(err)
			}
			continue // the connection was cut
		}
		out := map[string]string{}
		for _, kv := range resp.Kvs {
			out[string(kv.Key)] = string(kv.Value)
		}
		return out, resp
	}
}

// of picks the keys of a resource.
func of(r *Running, resource wire.Resource) map[string]string {
	all := r.Contents()
	maps.DeleteFunc(all, func(key, _ string) bool {
		return !strings.HasPrefix(key, resource.Prefix(r.c.Name, r.c.Mode == contents.Cached))
	})
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantRefused checks that a request was refused, and that the error contains the reason.
func wantRefused(t *testing.T, err error, usage bool, reason string) {
	t.Helper()
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Usage != usage || !strings.Contains(refused.Reason, reason) {
		t.Errorf("refused with %v (usage %t), want %q", err, usage, reason)
	}
}
