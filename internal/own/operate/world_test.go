package operate

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cilium/statedb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/internal/own/identity"
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

func own() wire.ClusterInfo {
	return wire.ClusterInfo{Name: "east", ID: 3, MaxConnectedClusters: 255}
}

// world is a cluster's description and its etcd.
type world struct {
	t      *testing.T
	etcd   *etcdtest.Process
	source *local.Cluster
}

func newWorld(t *testing.T) *world { t.Helper(); return newWorldOf(t, own().Name) }

// newWorldOf is the world of a cluster of another name.
func newWorldOf(t *testing.T, cluster string) *world {
	t.Helper()
	source, err := local.New(statedb.New())
	must(t, err)
	return &world{t: t, etcd: rightstest.StartProcess(t, cluster), source: source}
}

// listed ends the first reading of the description.
func (w *world) listed() { w.source.Listed() }

// service adds a global service with one backend.
func (w *world) service(name, ip string) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: name, Annotations: map[string]string{wire.AnnotationGlobal: "true"}}
	w.source.Services.Apply([]store.Change[corev1.Service]{{Name: "ns/" + name, New: &corev1.Service{
		ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: "172.20.0.1", ClusterIPs: []string{"172.20.0.1"}},
	}}})
	yes := true
	w.source.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: "ns/" + name + "-1", New: &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "ns", Name: name + "-1", Labels: map[string]string{wire.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}},
	}}})
}

// running is one operator that runs.
type running struct {
	*Operator
	stop func()
}

func (w *world) operator(change ...func(*Params)) *running {
	w.t.Helper()
	opts := etcd.DefaultOptions()
	opts.QPS, opts.LockTTL = 0, 2*time.Second
	opts.Timings.BackoffMax, opts.Timings.ProbeInterval = 200*time.Millisecond, 200*time.Millisecond
	as := rightstest.As(w.t, w.etcd, "operator")
	d := etcd.NewDurable(func() (*clientfile.Config, error) { return as, nil }, opts)
	layout, err := wire.NewLayout(255)
	must(w.t, err)
	p := Params{
		Own: own(), Writer: d, Source: w.source, GlobalNamespaces: true,
		Identities: identity.Owner{Name: "east", ID: 3, Layout: layout},
		Metrics:    syncstore.NewMetrics(), Log: slog.New(slog.NewTextHandler(w.t.Output(), nil)),
	}
	for _, f := range change {
		f(&p)
	}
	o, err := New(p)
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- d.Run(ctx) }()
	go func() { ended <- o.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		<-ended
		<-ended
	})
	w.t.Cleanup(stop)
	return &running{Operator: o, stop: stop}
}

// isPublished reports whether everything that is known was published in this term.
func (r *running) isPublished() bool {
	return r.Bootstrap() > 0
}

// contents are the keys of the etcd, but for locks.
func (w *world) contents() map[string]*kv {
	w.t.Helper()
	resp, err := w.etcd.Client(w.t).Get(w.t.Context(), "cilium/", clientv3.WithPrefix())
	must(w.t, err)
	all := make(map[string]*kv)
	for _, k := range resp.Kvs {
		if key := string(k.Key); len(key) < len(wire.OperatorLockPath) || key[:len(wire.OperatorLockPath)] != wire.OperatorLockPath {
			all[key] = &kv{string(k.Value), k.Lease, k.CreateRevision}
		}
	}
	return all
}

type kv struct {
	value   string
	lease   int64
	created int64
}

func (w *world) value(key string) string {
	if e := w.contents()[key]; e != nil {
		return e.value
	}
	return ""
}

var must = waittest.Must
