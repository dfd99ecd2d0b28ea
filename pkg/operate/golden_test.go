package operate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/internal/recorded"
	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// clustersOfVectors are those of which services, slices and exports were recorded.
func clustersOfVectors() []wire.ClusterInfo {
	return []wire.ClusterInfo{recorded.Cluster2(), recorded.Widest()}
}

// leaves waits until an operator of the cluster leaves these keys of a resource,
// and no other ones, with these values.
func (w *world) leaves(cluster wire.ClusterInfo, r wire.Resource, want map[string]string, readable func(string) string) {
	w.t.Helper()
	w.listed()
	o := w.operator(func(p *Params) { p.Own, p.ServiceExports = cluster, true })
	defer o.stop()
	waittest.Until(w.t, "everything", o.isPublished)
	got := make(map[string]string)
	for key, e := range w.contents() {
		if strings.HasPrefix(key, r.Prefix(cluster.Name, false)) {
			got[key] = readable(e.value)
		}
	}
	if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
		w.t.Errorf("what is in etcd (-recorded +got):\n%s", d)
	}
}

func asItIs(value string) string { return value }

// global makes a service one that is published.
func global(svc *corev1.Service) *corev1.Service {
	svc = svc.DeepCopy()
	metav1.SetMetaDataAnnotation(&svc.ObjectMeta, wire.AnnotationGlobal, "true")
	return svc
}

func TestGoldenServicesInEtcd(t *testing.T) {
	t.Parallel()
	for _, cluster := range clustersOfVectors() {
		t.Run(cluster.Name, func(t *testing.T) {
			t.Parallel()
			w, want := newWorldOf(t, cluster.Name), make(map[string]string)
			for _, v := range recorded.Entries(t, recorded.Services) {
				if v.Cluster != cluster {
					continue
				}
				want[v.Key] = string(v.Value)
				w.source.Services.Apply([]store.Change[corev1.Service]{{New: global(v.Service)}})
				for _, slice := range v.Slices {
					slice.Namespace = v.Service.Namespace
					metav1.SetMetaDataLabel(&slice.ObjectMeta, wire.LabelServiceName, v.Service.Name)
					w.source.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{New: slice}})
				}
			}
			w.leaves(cluster, wire.Services, want, asItIs)
		})
	}
}

// A slice is published for the service that a label of it names. Where the
// recorded one has no such label, the one in etcd has it, and is else the same.
func TestGoldenEndpointSlicesInEtcd(t *testing.T) {
	t.Parallel()
	r, err := zstd.NewReader(nil)
	must(t, err)
	t.Cleanup(r.Close)
	for _, cluster := range clustersOfVectors() {
		t.Run(cluster.Name, func(t *testing.T) {
			t.Parallel()
			uncompressed := func(value string) string {
				message, err := r.DecodeAll([]byte(value), nil)
				must(t, err)
				return string(message)
			}
			w, want := newWorldOf(t, cluster.Name), make(map[string]string)
			for _, v := range recorded.Entries(t, recorded.EndpointSlices) {
				if v.Cluster != cluster {
					continue
				}
				want[v.Key] = string(v.Message)
				if v.Slice.Labels[wire.LabelServiceName] == "" {
					metav1.SetMetaDataLabel(&v.Slice.ObjectMeta, wire.LabelServiceName, "web")
					s, err := wire.DecodeEndpointSlice(local.Name(v.Slice), v.Value, wire.Expect{Cluster: cluster.Name, ClusterID: cluster.ID})
					must(t, err)
					s.Labels = maps.Clone(v.Slice.Labels)
					want[v.Key] = uncompressed(string(s.Encode()))
				}
				web := global(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: v.Slice.Namespace, Name: "web"}})
				w.source.Services.Apply([]store.Change[corev1.Service]{{New: web}})
				w.source.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{New: v.Slice}})
			}
			w.leaves(cluster, wire.EndpointSlices, want, uncompressed)
		})
	}
}

func TestGoldenServiceExportsInEtcd(t *testing.T) {
	t.Parallel()
	for _, cluster := range clustersOfVectors() {
		t.Run(cluster.Name, func(t *testing.T) {
			t.Parallel()
			w, want := newWorldOf(t, cluster.Name), make(map[string]string)
			for _, v := range recorded.Entries(t, recorded.ServiceExports) {
				if v.Cluster != cluster {
					continue
				}
				want[v.Key] = string(v.Value)
				v.Service.Namespace, v.Service.Name = v.Export.Namespace, v.Export.Name
				w.source.Services.Apply([]store.Change[corev1.Service]{{New: v.Service}})
				w.source.ServiceExports.Apply([]store.Change[local.ServiceExport]{{New: v.Export}})
			}
			w.leaves(cluster, wire.ServiceExports, want, asItIs)
		})
	}
}

func TestGoldenIdentitiesInEtcd(t *testing.T) {
	t.Parallel()
	w, want := newWorldOf(t, recorded.Cluster2().Name), make(map[string]string)
	for _, v := range recorded.Entries(t, recorded.Identities) {
		if v.Cluster == recorded.Cluster2() {
			want[v.Key] = string(v.Value)
			w.source.CiliumIdentities.Apply([]store.Change[local.CiliumIdentity]{{New: v.Identity}})
		}
	}
	w.leaves(recorded.Cluster2(), wire.Identities, want, asItIs)
}

// The cluster configuration is that of a cluster whose operator writes to its
// kvstore.
func TestGoldenClusterConfigInEtcd(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, "cluster3")
	w.listed()
	o := w.operator(func(p *Params) { p.Own.Name = "cluster3" })
	defer o.stop()
	all := recorded.Vectors(t, recorded.ClusterConfigs)
	i := slices.IndexFunc(all, func(v recorded.Vector) bool { return v.Key == wire.ClusterConfigKey("cluster3") })
	want := all[i]
	waittest.Until(t, "the configuration", func() bool { return w.value(want.Key) != "" })
	if d := cmp.Diff(string(want.Value), w.value(want.Key)); d != "" {
		t.Errorf("the configuration in etcd (-recorded +got):\n%s", d)
	}
}
