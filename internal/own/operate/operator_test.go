package operate

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// keys are those that an operator leaves for one service.
func keys() []string {
	return []string{
		"cilium/.heartbeat",
		"cilium/cluster-config/east",
		"cilium/state/endpointslices/v1/east/ns/web-1",
		"cilium/state/services/v1/east/ns/web",
		"cilium/synced/east/cilium/state/endpointslices/v1",
		"cilium/synced/east/cilium/state/serviceexports/v1",
		"cilium/synced/east/cilium/state/services/v1",
	}
}

func (w *world) published() bool {
	return cmp.Equal(slices.Sorted(maps.Keys(w.contents())), keys())
}

// TestWhatAnOperatorPublishes: the keys and nothing else, all of them leased, and the canaries after the keys that they
// mark as complete. Keys that another writer changes are written again.
func TestWhatAnOperatorPublishes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service("web", "10.3.0.1")
	o := w.operator()
	waittest.Until(t, "the lead", o.Leads)
	if e := w.value("cilium/synced/east/cilium/state/services/v1"); e != "" {
		t.Error("a canary is there before the services are known")
	}
	w.listed()
	waittest.Until(t, "everything", w.published)
	waittest.Until(t, "readiness", func() bool { ready, _ := o.Ready(); return ready })
	c := w.contents()
	want := `{"id":3,"capabilities":{"maxConnectedClusters":255,"serviceExportsEnabled":false,"endpointSlicesExportMode":"services-and-endpointslices"}}`
	if got := c["cilium/cluster-config/east"].value; got != want {
		t.Errorf("the configuration is\n%s, want\n%s", got, want)
	}
	if _, err := time.Parse(time.RFC3339, c["cilium/.heartbeat"].value); err != nil {
		t.Error(err)
	}
	if !strings.Contains(c["cilium/state/services/v1/east/ns/web"].value, `"backends":{"10.3.0.1":{}}`) {
		t.Error(c["cilium/state/services/v1/east/ns/web"].value)
	}
	for key, e := range c {
		if e.lease == 0 {
			t.Errorf("%s has no lease", key)
		}
	}
	for _, r := range []wire.Resource{wire.Services, wire.EndpointSlices} {
		canary := c[wire.SyncedKey("east", r, false)]
		for key, e := range c {
			if strings.HasPrefix(key, r.Prefix("east", false)) && e.created >= canary.created {
				t.Errorf("%s was created at %d, its canary at %d", key, e.created, canary.created)
			}
		}
	}

	client := w.etcd.Client(t)
	for _, key := range keys()[1:] {
		_, err := client.Put(t.Context(), key, "nonsense")
		must(t, err)
	}
	_, err := client.Delete(t.Context(), keys()[1])
	must(t, err)
	_, err = client.Put(t.Context(), "cilium/state/services/v1/east/ns/nobody", "nonsense")
	must(t, err)
	waittest.Until(t, "the configuration", func() bool { return w.value(keys()[1]) == want })
	waittest.Until(t, "the rest", func() bool {
		return w.published() && w.value("cilium/state/services/v1/east/ns/web") == c["cilium/state/services/v1/east/ns/web"].value
	})

	w.service("web", "10.3.0.2")
	waittest.Until(t, "a change", func() bool {
		return strings.Contains(w.value("cilium/state/services/v1/east/ns/web"), "10.3.0.2")
	})
}

// TestAnotherOperatorTakesOver: within the lease, and without a gap: no key is ever deleted.
func TestAnotherOperatorTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service("web", "10.3.0.1")
	w.listed()
	first := w.operator()
	waittest.Until(t, "the first to lead", first.Leads)
	waittest.Until(t, "everything", w.published)
	second := w.operator()
	before := w.contents()
	first.stop()
	waittest.Until(t, "the second to lead", second.Leads)
	waittest.Until(t, "all keys to be the second's", func() bool {
		now := w.contents()
		for key, e := range before {
			if now[key] == nil || now[key].lease == e.lease {
				return false
			}
		}
		return true
	})
	_, err := w.etcd.Client(t).Put(t.Context(), "cilium/end", "")
	must(t, err)
	for resp := range w.etcd.Client(t).Watch(t.Context(), "cilium/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		for _, e := range resp.Events {
			key := string(e.Kv.Key)
			if e.Type == clientv3.EventTypeDelete && !strings.HasPrefix(key, wire.OperatorLockPath) {
				t.Errorf("%s was deleted", key)
			}
			if key == "cilium/end" {
				return
			}
		}
	}
}

// TestOperatorsCollectGarbage: identities without references in two rounds are deleted, those in use stay; none is
// deleted where addresses show that references are missing.
func TestOperatorsCollectGarbage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.etcd.Client(t)
	put := func(key, value string) {
		t.Helper()
		_, err := c.Put(t.Context(), key, value)
		must(t, err)
	}
	const used, unused, published = "196700", "196701", "196702"
	labels := func(app string) string { return "k8s:app=" + app + ";k8s:io.cilium.k8s.policy.cluster=east;" }
	put("cilium/state/identities/v1/id/"+used, labels("used"))
	put("cilium/state/identities/v1/value/"+labels("used")+"/10.3.0.9", used)
	put("cilium/state/identities/v1/id/"+unused, labels("unused"))
	put("cilium/state/identities/v1/id/"+published, labels("published"))
	put("cilium/state/ip/v1/default/10.3.0.7", `{"IP":"10.3.0.7","Mask":null,"HostIP":"","ID":`+published+`,"Key":0,"Metadata":""}`)
	w.listed()
	o := w.operator(func(p *Params) { p.GCInterval, p.LocksGCInterval = 100*time.Millisecond, 100*time.Millisecond })
	waittest.Until(t, "readiness", func() bool { ready, _ := o.Ready(); return ready })
	has := func(id string) bool { return w.contents()["cilium/state/identities/v1/id/"+id] != nil }
	if !has(unused) || !has(published) {
		t.Error("garbage was collected by references where there are none")
	}
	_, err := c.Delete(t.Context(), "cilium/state/ip/v1/default/10.3.0.7")
	must(t, err)
	waittest.Until(t, "the unused to go", func() bool { return !has(unused) && !has(published) })
	if !has(used) {
		t.Error("one in use went")
	}
	put("cilium/state/identities/v1/locks/k/1234abcd", "")
	waittest.Until(t, "a lock that was left behind to go", func() bool { return w.contents()["cilium/state/identities/v1/locks/k/1234abcd"] == nil })
}

// identity is a set of labels with its number, as an object of Kubernetes.
func (w *world) identity(id, app string) *local.CiliumIdentity {
	o := &local.CiliumIdentity{SecurityLabels: map[string]string{
		"k8s:app": app, "k8s:io.cilium.k8s.policy.cluster": "east", "k8s:io.kubernetes.pod.namespace": "ns",
	}}
	o.Name = id
	w.source.CiliumIdentities.Apply([]store.Change[local.CiliumIdentity]{{New: o}})
	return o
}

// counting is a writer that tells of each look at the lock: garbage collection
// begins a round with one.
type counting struct {
	kvstore.Writer
	looks chan struct{}
}

func (c counting) Get(ctx context.Context, key string, held ...kvstore.ReadOption) (*kvstore.KeyValue, kvstore.Position, error) {
	if strings.HasPrefix(key, wire.OperatorLockPath) {
		select {
		case c.looks <- struct{}{}:
		default: // enough are counted
		}
	}
	return c.Writer.Get(ctx, key, held...)
}

// TestIdentitiesThatAreObjectsOfKubernetes: they are published, leased, beside
// those that agents have allocated, put back, and withdrawn with their objects; and
// no garbage is collected as long as there are any.
func TestIdentitiesThatAreObjectsOfKubernetes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.etcd.Client(t)
	const prefix, allocated, first, second = "cilium/state/identities/v1/id/", "196700", "196701", "196702"
	_, err := c.Put(t.Context(), prefix+allocated, "k8s:app=x;k8s:io.cilium.k8s.policy.cluster=east;")
	must(t, err)
	one, other := w.identity(first, "a"), w.identity(second, "b")
	w.listed()
	rounds := make(chan struct{}, 100)
	w.operator(func(p *Params) {
		p.GCInterval, p.Writer = 20*time.Millisecond, counting{p.Writer, rounds}
	})
	want := func(app string) string {
		return "k8s:app=" + app + ";k8s:io.cilium.k8s.policy.cluster=east;k8s:io.kubernetes.pod.namespace=ns;"
	}
	waittest.Until(t, "both", func() bool { return w.value(prefix+first) == want("a") && w.value(prefix+second) == want("b") })
	for _, id := range []string{first, second} {
		if w.contents()[prefix+id].lease == 0 {
			t.Errorf("%s has no lease", id)
		}
	}
	_, err = c.Delete(t.Context(), prefix+first)
	must(t, err)
	waittest.Until(t, "what was deleted", func() bool { return w.value(prefix+first) == want("a") })

	remove := func(o *local.CiliumIdentity) {
		w.source.CiliumIdentities.Apply([]store.Change[local.CiliumIdentity]{{Old: o}})
	}
	remove(one)
	waittest.Until(t, "a withdrawal", func() bool { return w.contents()[prefix+first] == nil })
	for range 10 { // many rounds
		<-rounds
	}
	if w.contents()[prefix+allocated] == nil || w.value(prefix+second) != want("b") {
		t.Error("garbage was collected where identities are objects of Kubernetes")
	}
	remove(other)
	waittest.Until(t, "the rest to go, as garbage and with its object", func() bool {
		return w.contents()[prefix+allocated] == nil && w.contents()[prefix+second] == nil
	})
}
