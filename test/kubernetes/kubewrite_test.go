package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cilium/statedb"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/kube/endpointslices"
	"github.com/mesh-agent/mesh-agent/internal/kube/kubewrite"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func newWriter(t testing.TB, s *kubetest.Server, token string) *kubewrite.Writer {
	t.Helper()
	w, err := kubewrite.New(s.Config(token), kubewrite.Options{Role: "deploy/endpointslices.yaml"})
	waittest.Must(t, err)
	t.Cleanup(w.Close)
	return w
}

// bareSlice has some labels and some endpoints.
func bareSlice(name string, labels map[string]any, endpoints int) *unstructured.Unstructured {
	all := make([]any, 0, endpoints)
	for i := range endpoints {
		all = append(all, map[string]any{"addresses": []any{fmt.Sprintf("10.2.%d.%d", i/250, 1+i%250)}, "conditions": map[string]any{"ready": true, "serving": true, "terminating": false}, "nodeName": "west", "zone": "west"})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": map[string]any{"namespace": "default", "name": name, "labels": maps.Clone(labels)},
		"addressType": "IPv4", "endpoints": all, "ports": []any{map[string]any{"name": "http", "protocol": "TCP", "port": int64(80)}},
	}}
}

func TestObjectsAreMadeWhatTheyShouldBe(t *testing.T) {
	t.Parallel()
	s := kubetest.Start(t)
	w, r, ctx := newWriter(t, s, kubetest.Admin), endpointslices.Resource(), waittest.Context(t)
	first, err := w.Apply(ctx, r, bareSlice("a", map[string]any{"x": "1", "y": "1"}, 1))
	waittest.Must(t, err)
	again, err := w.Apply(ctx, r, bareSlice("a", map[string]any{"x": "1", "y": "1"}, 1))
	if err != nil || again.GetResourceVersion() != first.GetResourceVersion() {
		t.Errorf("what is so was written: %v, %v", again.GetResourceVersion(), err)
	}
	changed, err := w.Apply(ctx, r, bareSlice("a", map[string]any{"x": "2"}, 2))
	if l := changed.GetLabels(); err != nil || len(l) != 1 || l["x"] != "2" {
		t.Errorf("labels %v, %v", l, err)
	}
	other := bareSlice("a", nil, 1)
	other.SetUID("another")
	if _, err := w.Apply(ctx, r, other); !kubewrite.IsOther(err) {
		t.Errorf("another one: %v", err)
	}
	for _, step := range []struct {
		uid  types.UID
		done bool
	}{{"another", false}, {first.GetUID(), true}, {first.GetUID(), false}} {
		if done, err := w.Delete(ctx, r, "default", "a", step.uid); done != step.done || err != nil {
			t.Errorf("delete %s: %t, %v", step.uid, done, err)
		}
	}
	_, err = w.Apply(ctx, schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "nothings"}, bareSlice("a", nil, 0))
	if e, is := errors.AsType[*kubewrite.Error](err); !is || e.Remedy == "" || e.Object != "default/a" {
		t.Errorf("a kind that does not exist: %v", err)
	}
}

// TestTheRoleToWriteSlicesSuffices: without it the error names the manifest to apply.
func TestTheRoleToWriteSlicesSuffices(t *testing.T) {
	t.Parallel()
	s := kubetest.Start(t)
	s.Apply(t, manifest(t, "operate.yaml")[:3]...)
	w, ctx := newWriter(t, s, s.Token(t, "kube-system", "mesh-agent-operate")), waittest.Context(t)
	if _, err := w.Apply(ctx, endpointslices.Resource(), bareSlice("a", nil, 1)); err == nil || !strings.Contains(err.Error(), "apply deploy/endpointslices.yaml") {
		t.Errorf("without the right: %v", err)
	}
	s.Apply(t, manifest(t, "endpointslices.yaml")...)
	var made *unstructured.Unstructured
	waittest.Try(t, "the right", func() (err error) {
		made, err = w.Apply(ctx, endpointslices.Resource(), bareSlice("a", nil, 1))
		return err
	})
	if done, err := w.Delete(ctx, endpointslices.Resource(), "default", "a", made.GetUID()); !done || err != nil {
		t.Errorf("%t, %v", done, err)
	}
}

// counting closes done after a number of writes.
type counting struct {
	*kubewrite.Writer
	left atomic.Int64
	done chan struct{}
}

func (c *counting) Apply(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	made, err := c.Writer.Apply(ctx, r, o)
	if err == nil && c.left.Add(-1) == 0 {
		close(c.done)
	}
	return made, err
}

const (
	benchServices = 1000
	benchBackends = 10 // of each
)

// BenchmarkWrite: 10,000 remote endpoints of 1,000 Services, as written by the controller, and the same number of bare
// server-side applies of slices of the same size, with the same concurrency.
func BenchmarkWrite(b *testing.B) {
	s := kubetest.Start(b)
	w := newWriter(b, s, kubetest.Admin)
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			var g errgroup.Group
			g.SetLimit(w.AtOnce())
			for i := range benchServices {
				g.Go(func() error {
					_, err := w.Apply(b.Context(), endpointslices.Resource(), bareSlice(fmt.Sprint("bare-", b.N, "-", i), map[string]any{"kubernetes.io/service-name": "x"}, benchBackends))
					return err
				})
			}
			waittest.Must(b, g.Wait())
			b.StopTimer()
			empty(b, s)
			b.StartTimer()
		}
	})
	b.Run("controller", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			p, c := described(b, w)
			b.StartTimer()
			ctx, stop := context.WithCancel(b.Context())
			ended := make(chan error)
			go func() { ended <- endpointslices.New(p).Run(ctx) }()
			<-c.done
			b.StopTimer()
			stop()
			<-ended
			empty(b, s)
			b.StartTimer()
		}
	})
}

func empty(b *testing.B, s *kubetest.Server) {
	b.Helper()
	waittest.Must(b, s.Client(b).Resource(endpointslices.Resource()).Namespace("default").DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name"}))
}

// described are the tables of a cluster with this many Services that have remote backends.
func described(b *testing.B, w *kubewrite.Writer) (endpointslices.Params, *counting) {
	b.Helper()
	db := statedb.New()
	cluster, err := local.New(db)
	waittest.Must(b, err)
	all, err := services.New(db)
	waittest.Must(b, err)
	for i := range benchServices {
		name := fmt.Sprint("web-", i)
		svc := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{wire.AnnotationGlobal: "true", endpointslices.AnnotationSync: "true"}},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}},
		}
		cluster.Services.Apply([]store.Change[corev1.Service]{{Name: local.Name(svc), New: svc}})
		own := &services.Service{Cluster: "own", Source: wire.SourceKubernetes, Shared: true, IncludeExternal: true, Namespace: "default", Name: name}
		remote := &services.Service{Cluster: "west", ClusterID: 7, Source: wire.SourceClusterMesh, Shared: true, Namespace: "default", Name: name}
		for n := range benchBackends {
			remote.Backends = append(remote.Backends, services.Backend{IP: netip.AddrFrom4([4]byte{10, 2, byte(n), byte(i)}), Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 80}}})
		}
		all.Apply([]store.Change[services.Service]{{Name: own.FullName(), New: own}, {Name: remote.FullName(), New: remote}})
	}
	cluster.Listed()
	c := &counting{Writer: w, done: make(chan struct{})}
	c.left.Store(benchServices)
	return endpointslices.Params{
		DB: db, Cluster: cluster, Services: all, Writer: c,
		Ready: func() bool { return true }, Remotes: func() []reconcile.Remote { return []reconcile.Remote{{Name: "west", Read: true}} },
	}, c
}
