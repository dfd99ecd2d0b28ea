package operate

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/recorded"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// clustersOfVectors are those of which services, slices and exports were recorded.
func clustersOfVectors() []wire.ClusterInfo {
	return []wire.ClusterInfo{recorded.Cluster2(), recorded.Widest()}
}

// leaves waits until an operator of the cluster leaves these keys of a resource,
// and no other ones, with these values.
func (w *world) leaves(cluster wire.ClusterInfo, r wire.Resource, want map[string]string) {
	w.t.Helper()
	w.listed()
	o := w.operator(func(p *Params) { p.Own, p.ServiceExports = cluster, true })
	waittest.Until(w.t, "everything", o.isPublished)
	got := make(map[string]string)
	for key, e := range w.contents() {
		if strings.HasPrefix(key, r.Prefix(cluster.Name, false)) {
			got[key] = e.value
		}
	}
	if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
		w.t.Errorf("what is in etcd (-recorded +got):\n%s", d)
	}
}

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
			w.leaves(cluster, wire.Services, want)
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
			w.leaves(cluster, wire.ServiceExports, want)
		})
	}
}

// The cluster configuration is that of a cluster whose operator writes to its kvstore.
func TestGoldenClusterConfigInEtcd(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, "cluster3")
	w.listed()
	w.operator(func(p *Params) { p.Own.Name = "cluster3" })
	all := recorded.Vectors(t, recorded.ClusterConfigs)
	i := slices.IndexFunc(all, func(v recorded.Vector) bool { return v.Key == wire.ClusterConfigKey("cluster3") })
	want := all[i]
	waittest.Until(t, "the configuration", func() bool { return w.value(want.Key) != "" })
	if d := cmp.Diff(string(want.Value), w.value(want.Key)); d != "" {
		t.Errorf("the configuration in etcd (-recorded +got):\n%s", d)
	}
}
