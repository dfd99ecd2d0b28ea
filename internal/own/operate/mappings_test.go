package operate

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestACiliumIdentityWhoseNumberAnAgentGaveAway is not published in the place of that, neither at
// the start nor when it comes or goes, and this is shown; all others are published.
func TestACiliumIdentityWhoseNumberAnAgentGaveAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const prefix, taken, free, later = "cilium/state/identities/v1/id/", "196701", "196702", "196703"
	const theirs = "k8s:app=x;k8s:io.cilium.k8s.policy.cluster=east;"
	c := w.etcd.Client(t)
	for _, id := range []string{taken, later} {
		_, err := c.Put(t.Context(), prefix+id, theirs)
		must(t, err)
	}
	before, err := c.Get(t.Context(), prefix+taken)
	must(t, err)
	one := w.identity(taken, "a")
	w.identity(free, "b")
	w.listed()
	var mu sync.Mutex
	shown := ""
	o := w.operator(func(p *Params) {
		p.Report = func(task string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if task == "mappings" {
				shown = fmt.Sprint(err)
			}
		}
	})
	shows := func(text string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return strings.Contains(shown, text)
		}
	}
	waittest.Until(t, "readiness", o.isPublished)
	if !strings.Contains(w.value(prefix+free), "k8s:app=b;") {
		t.Errorf("%s is %q", free, w.value(prefix+free))
	}
	waittest.Until(t, "it to be shown", shows("the number "+taken))
	waittest.Until(t, "its code", shows(string(codes.NumberGivenAway)))
	w.identity(later, "c")
	waittest.Until(t, "the other to be shown", shows("and 1 more"))
	w.source.CiliumIdentities.Apply([]store.Change[local.CiliumIdentity]{{Old: one}})
	waittest.Until(t, "the rest to be shown", shows("the number "+later))
	after, err := c.Get(t.Context(), prefix+taken)
	must(t, err)
	if len(after.Kvs) != 1 || after.Kvs[0].ModRevision != before.Kvs[0].ModRevision || w.value(prefix+later) != theirs {
		t.Errorf("what allocators wrote is now %v and %q", after.Kvs, w.value(prefix+later))
	}
}

// TestACiliumIdentityIsCreatedOrIsNot: agents allocate the same numbers at the same
// time, by creating their mappings. Of each number one of the two has made the
// mapping, and it stays as it was made; so it does when an agent takes a number that
// was published before, whose lease has ended.
func TestACiliumIdentityIsCreatedOrIsNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const prefix, first, count, each = "cilium/state/identities/v1/id/", 196700, 300, 10
	const theirs = "k8s:app=x;k8s:io.cilium.k8s.policy.cluster=east;"
	w.listed()
	o := w.operator(func(p *Params) { p.Source = w.source })
	waittest.Until(t, "readiness", o.isPublished)
	c := w.etcd.Client(t)
	made := make(map[string]int64)
	for round := range count / each { // small ones: then both make some
		created := make(chan error, 1)
		go func() {
			for i := range each { // from the other end
				key := prefix + strconv.Itoa(first+(round+1)*each-1-i)
				resp, err := c.Txn(t.Context()).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, theirs)).Commit()
				if err != nil {
					created <- err
					return
				}
				if resp.Succeeded {
					made[key] = resp.Header.Revision
				}
			}
			created <- nil
		}()
		for i := range each {
			w.identity(strconv.Itoa(first+round*each+i), "a")
		}
		must(t, <-created)
	}
	unchanged := func() (all int) {
		resp, err := c.Get(t.Context(), prefix, clientv3.WithPrefix())
		must(t, err)
		for _, kv := range resp.Kvs {
			if rev, is := made[string(kv.Key)]; is && (kv.ModRevision != rev || string(kv.Value) != theirs) {
				t.Fatalf("%s, made by an agent at %d, is now %s of %d", kv.Key, rev, kv.Value, kv.ModRevision)
			}
		}
		return len(resp.Kvs)
	}
	waittest.Until(t, "all of them", func() bool { return unchanged() == count })
	t.Logf("%d of %d were made by the agents", len(made), count)

	w.identity(strconv.Itoa(first+count), "a")
	key := prefix + strconv.Itoa(first+count)
	waittest.Until(t, "one more", func() bool { return strings.Contains(w.value(key), "k8s:app=a;") })
	resp, err := c.Put(t.Context(), key, theirs)
	must(t, err)
	made[key] = resp.Header.Revision
	w.identity(strconv.Itoa(first+count+1), "a")
	waittest.Until(t, "one that is written after that", func() bool { return unchanged() == count+2 })
}
