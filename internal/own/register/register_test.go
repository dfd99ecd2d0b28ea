package register

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/statedb"
	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/rightstest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// world is a cluster's description and its etcd.
type world struct {
	t      *testing.T
	etcd   *etcdtest.Process
	source *local.Cluster
}

func newWorld(t *testing.T) *world {
	t.Helper()
	source, err := local.New(statedb.New())
	must(t, err)
	w := &world{t: t, etcd: rightstest.StartProcess(t, "east"), source: source}
	w.source.Nodes.Apply([]store.Change[corev1.Node]{{New: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.0.1"}}},
	}}, {New: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "other"},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.0.2"}}},
	}}})
	return w
}

func (w *world) pod(name, node, ip string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, HostIP: "192.168.0.1", PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}},
	}
	w.source.Pods.Apply([]store.Change[corev1.Pod]{{New: p}})
	return p
}

func (w *world) listed() { w.source.Listed() }

// register runs the node until stop is called.
func (w *world) register(change ...func(*Params)) (stop func()) {
	w.t.Helper()
	opts := etcd.DefaultOptions()
	opts.QPS = 0
	opts.Timings.BackoffMax, opts.Timings.ProbeInterval = 200*time.Millisecond, 200*time.Millisecond
	as := rightstest.As(w.t, w.etcd, "node")
	d := etcd.NewDurable(func() (*clientfile.Config, error) { return as, nil }, opts)
	p := Params{
		Own: wire.ClusterInfo{Name: "east", ID: 3, MaxConnectedClusters: 255}, Name: "node", Source: w.source, GlobalNamespaces: true,
		Guess:  func() (netip.Addr, error) { return netip.Addr{}, errors.New("no address") },
		Writer: d, PeriodicSync: time.Second, Metrics: syncstore.NewMetrics(), Log: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
	}
	for _, f := range change {
		f(&p)
	}
	n, err := New(p)
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- d.Run(ctx) }()
	go func() { ended <- n.Run(ctx) }()
	w.t.Cleanup(cancel)
	return func() {
		cancel()
		<-ended
		<-ended
	}
}

// contents are the keys of the etcd; of identities only whether there are any.
func (w *world) contents() map[string]string {
	w.t.Helper()
	resp, err := w.etcd.Client(w.t).Get(w.t.Context(), "cilium/", clientv3.WithPrefix())
	must(w.t, err)
	all := make(map[string]string)
	for _, kv := range resp.Kvs {
		key := string(kv.Key)
		switch {
		case strings.Contains(key, "/locks/"):
		case strings.HasPrefix(key, "cilium/state/identities/v1/id/"):
			all[strings.TrimSuffix("cilium/state/identities/v1/id/"+string(kv.Value), ";")] = key
		default:
			all[key] = string(kv.Value)
		}
	}
	return all
}

// leases checks that everything is leased, but for what identities are.
func (w *world) leases() {
	w.t.Helper()
	resp, err := w.etcd.Client(w.t).Get(w.t.Context(), "cilium/state/", clientv3.WithPrefix())
	must(w.t, err)
	for _, kv := range resp.Kvs {
		key := string(kv.Key)
		if leased := kv.Lease != 0; leased == strings.HasPrefix(key, "cilium/state/identities/v1/id/") {
			w.t.Errorf("%s has the lease %x", key, kv.Lease)
		}
	}
}

func (w *world) await(what string, want ...string) {
	w.t.Helper()
	waittest.Try(w.t, what, func() error {
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(w.contents()))); diff != "" {
			return errors.New("(-want +got)\n" + diff)
		}
		return nil
	})
}

var must = waittest.Must

const of = "k8s:io.cilium.k8s.policy.cluster=east;k8s:io.kubernetes.pod.namespace=ns"

func of1(app, address string) []string {
	labels := "k8s:app=" + app + ";" + of
	return []string{
		"cilium/state/identities/v1/id/" + labels,
		"cilium/state/identities/v1/value/" + labels + ";/192.168.0.1",
		"cilium/state/ip/v1/default/" + address,
	}
}

func with(some ...[]string) []string {
	all := []string{"cilium/state/nodes/v1/east/node"}
	for _, s := range some {
		all = append(all, s...)
	}
	slices.Sort(all)
	return all
}

// TestANodeAndItsPods: the node itself, the addresses of its pods and no others, with identities that are referred to
// in its name; entries of deleted pods are withdrawn, except for identities, which garbage collection deletes; and lost
// entries are written again.
func TestANodeAndItsPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.pod("web", "node", "10.3.0.1")
	w.pod("cart", "node", "10.3.0.2")
	w.pod("elsewhere", "other", "10.3.1.1")
	w.listed()
	registered := make(chan struct{})
	stop := w.register(func(p *Params) { p.Registered = func() { close(registered) } })
	defer stop()
	all := with(of1("web", "10.3.0.1"), of1("cart", "10.3.0.2"))
	w.await("registered", all...)
	<-registered
	w.leases()
	c := w.contents()
	id := strings.TrimPrefix(c["cilium/state/identities/v1/id/k8s:app=web;"+of], "cilium/state/identities/v1/id/")
	if !strings.Contains(c["cilium/state/ip/v1/default/10.3.0.1"], `"HostIP":"192.168.0.1","ID":`+id+`,`) {
		t.Errorf("with identity %s: %s", id, c["cilium/state/ip/v1/default/10.3.0.1"])
	}

	client := w.etcd.Client(t)
	for _, key := range []string{"cilium/state/nodes/v1/east/node", "cilium/state/ip/v1/default/10.3.0.1"} {
		_, err := client.Delete(t.Context(), key)
		must(t, err)
	}
	_, err := client.Put(t.Context(), "cilium/state/ip/v1/default/10.3.0.2", "nonsense")
	must(t, err)
	w.await("what somebody deletes comes back", all...)
	waittest.Until(t, "what somebody changes comes back", func() bool {
		return w.contents()["cilium/state/ip/v1/default/10.3.0.2"] == c["cilium/state/ip/v1/default/10.3.0.2"]
	})
	w.etcd.RestartEmpty(t)
	w.await("everything comes back", all...)
	w.leases()

	w.source.Pods.Apply([]store.Change[corev1.Pod]{{Old: web}})
	w.await("a pod is gone", with(of1("web", "10.3.0.1")[:1], of1("cart", "10.3.0.2"))...)
}

// TestWhichAddressNamesTheNode: the one that is given; else the description's; else
// one that is guessed.
func TestWhichAddressNamesTheNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.listed()
	guess := func() (netip.Addr, error) { return netip.MustParseAddr("192.168.0.9"), nil }
	for name, c := range map[string]struct {
		p    Params
		want string
	}{
		"given":     {Params{Address: netip.MustParseAddr("fd00::1"), Name: "node"}, "fd00::1"},
		"described": {Params{Name: "node", Guess: guess}, "192.168.0.1"},
		"guessed":   {Params{Name: "nobody", Guess: guess}, "192.168.0.9"},
	} {
		c.p.Source, c.p.Own = w.source, wire.ClusterInfo{Name: "east", ID: 3, MaxConnectedClusters: 255}
		n, err := New(c.p)
		must(t, err)
		if got, err := n.suffix(t.Context()); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := New(Params{Own: wire.ClusterInfo{Name: "default", MaxConnectedClusters: 255}}); err == nil {
		t.Error("a cluster without an ID has a node")
	}
}
