package syncstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const (
	testPrefix = "cilium/state/x/v1/c2/"
	testDir    = "cilium/synced/c2/"
	testCanary = "cilium/state/x/v1"
)

// publisher is a writer with an outbox, one Sync and its canary, all running.
type publisher struct {
	t        testing.TB
	w        *kvstore.Durable
	leases   *kvstore.Leases
	outbox   *Outbox
	sync     *Sync
	canaries *Canaries
	stop     func() // stops all, without withdrawing anything
}

// hurried returns options with short intervals, for writers in tests.
func hurried() etcd.Options {
	o := etcd.DefaultOptions()
	o.QPS, o.BootstrapQPS = 0, 0
	o.Timings.ProbeInterval, o.Timings.Probe = 50*time.Millisecond, 2*time.Second
	o.Timings.BackoffMax = 100 * time.Millisecond
	o.MaxConsecutiveQuorumErrors = 1 << 30
	return o
}

// publish starts a publisher on a server. change may modify the parameters of the Sync.
func publish(t testing.TB, o etcd.Options, load func() (*clientfile.Config, error), change func(*Params)) *publisher {
	t.Helper()
	p := &publisher{t: t, leases: kvstore.NewLeases()}
	o.Leases = p.leases
	p.w = etcd.NewDurable(load, o)
	p.outbox = NewOutbox(p.w, nil, nil, nil)
	params := Params{Prefix: testPrefix, Outbox: p.outbox}
	if change != nil {
		change(&params)
	}
	p.sync = New(params)
	p.canaries = NewCanaries(CanariesParams{Dir: testDir, Writer: p.w})
	p.canaries.Add(testCanary, p.sync)
	ctx, cancel := context.WithCancel(t.Context())
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{p.w.Run, p.outbox.Run, p.sync.Run, p.canaries.Run} {
		g.Go(func() error { return run(ctx) })
	}
	ended := false
	p.stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := g.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("the publisher ended with %v", err)
		}
		p.w.Close()
	}
	t.Cleanup(p.stop)
	return p
}

// at returns a function that loads a configuration with this endpoint.
func at(endpoint string) func() (*clientfile.Config, error) {
	return func() (*clientfile.Config, error) { return clientfile.New(endpoint) }
}

// put puts all of these, and calls Complete.
func (p *publisher) put(want map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		p.sync.Put(name, []byte(want[name]))
	}
	p.sync.Complete()
}

// clean waits until all wanted keys are written.
func (p *publisher) clean() {
	p.t.Helper()
	must(p.t, p.sync.WaitClean(waittest.Context(p.t)))
}

// contents are the keys of an etcd below the prefix, and its canary.
type contents struct {
	values map[string]string
	newest int64 // the highest revision of a key
	leases map[int64]int
	canary *kvstore.KeyValue
	rev    int64 // the revision of the store
}

func read(t testing.TB, c *clientv3.Client) contents {
	t.Helper()
	ctx := waittest.Context(t)
	resp, err := c.Txn(ctx).Then(clientv3.OpGet(testPrefix, clientv3.WithPrefix()), clientv3.OpGet(testDir+testCanary)).Commit()
	must(t, err)
	is := contents{values: map[string]string{}, leases: map[int64]int{}, rev: resp.Header.Revision}
	for _, kv := range resp.Responses[0].GetResponseRange().Kvs {
		is.values[strings.TrimPrefix(string(kv.Key), testPrefix)] = string(kv.Value)
		is.newest = max(is.newest, kv.ModRevision)
		is.leases[kv.Lease]++
	}
	for _, kv := range resp.Responses[1].GetResponseRange().Kvs {
		is.canary = &kvstore.KeyValue{Key: kv.Key, Value: kv.Value, ModRevision: kv.ModRevision, Lease: kv.Lease}
	}
	return is
}

// await waits until an etcd has exactly these keys and a canary, all with leases.
func (p *publisher) await(c *clientv3.Client, want map[string]string) contents {
	p.t.Helper()
	var is contents
	eventually(p.t, func() error {
		p.clean()
		is = read(p.t, c)
		if diff := cmp.Diff(want, is.values); diff != "" {
			return fmt.Errorf("(-want +etcd):\n%s", diff)
		}
		if is.canary == nil {
			return errors.New("there is no canary")
		}
		is.leases[is.canary.Lease]++
		for lease := range is.leases {
			if !p.w.Owns(lease) {
				return fmt.Errorf("lease %x of %d keys is not ours", lease, is.leases[lease])
			}
		}
		return nil
	})
	return is
}

// last checks that the canary was written after all keys.
func (is contents) last(t testing.TB) {
	t.Helper()
	if is.canary.ModRevision <= is.newest {
		t.Errorf("the canary was written at revision %d, the last key at %d", is.canary.ModRevision, is.newest)
	}
}

// eventually repeats try until it succeeds.
func eventually(t testing.TB, try func() error) {
	t.Helper()
	waittest.Try(t, "this", try)
}

// some returns n names with different values.
func some(n int) map[string]string {
	all := make(map[string]string, n)
	for i := range n {
		all[fmt.Sprintf("ns%d/service-%04d", i%7, i)] = fmt.Sprintf("value %d", i)
	}
	return all
}

// events counts the events below the prefix after a revision.
type events struct {
	puts    map[string]int
	deletes int
	canary  int
}

func history(t testing.TB, c *clientv3.Client, after int64) events {
	t.Helper()
	ctx := waittest.Context(t)
	end, err := c.Put(ctx, "end of the test", "")
	must(t, err)
	h := events{puts: map[string]int{}}
	for r := range c.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(after+1)) {
		must(t, r.Err())
		for _, e := range r.Events {
			name, below := strings.CutPrefix(string(e.Kv.Key), testPrefix)
			switch {
			case e.Kv.ModRevision == end.Header.Revision:
				return h
			case string(e.Kv.Key) == testDir+testCanary:
				h.canary++
			case !below:
			case e.Type == clientv3.EventTypeDelete:
				h.deletes++
			default:
				h.puts[name]++
			}
		}
	}
	t.Fatal("the watch has ended")
	return h
}

var must = waittest.Must
