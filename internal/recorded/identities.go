package recorded

import (
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Identity is a recorded identity with its object.
type Identity struct {
	Vector
	Cluster  wire.ClusterInfo
	Identity *local.CiliumIdentity
}

// IdentitiesOf are the identities.
func IdentitiesOf(t testing.TB) (out []Identity) {
	t.Helper()
	all := Vectors(t, Identities)
	const cluster = wire.LabelSourceKubernetes + ":" + wire.LabelCluster
	for i, labels := range []map[string]string{
		{"k8s:app": "web", "k8s:io.cilium.k8s.policy.serviceaccount": "default", "k8s:io.kubernetes.pod.namespace": "default"},
		{"k8s:app": "x=y=z", "k8s:zone": ""},
		{"k8s:weird": "a;b"},
		{"k8s:slash/key": "v1//v2/"},
		{"container:io.foo": "bar", "unspec:plain": "1", "any:thing": "2"},
		{"k8s:k8s-app": "kube-dns", "k8s:io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name": "kube-system"},
		{"k8s:" + strings.Repeat("k", 63): strings.Repeat("v", 63)},
		{"plain": "nosource"},
		{"k8s:a:b": "c:d"},
		{"reserved:init": ""},
		{cluster: "c255"},
	} {
		of := Cluster2()
		switch i {
		case 9:
		case 10:
			of = wire.ClusterInfo{Name: "c255", ID: 255, MaxConnectedClusters: 255}
		default:
			labels[cluster] = of.Name
		}
		o := &local.CiliumIdentity{SecurityLabels: labels}
		o.Name = all[i].Key[strings.LastIndexByte(all[i].Key, '/')+1:]
		out = append(out, Identity{all[i], of, o})
	}
	if len(all) != len(out) {
		t.Errorf("%d vectors and %d objects", len(all), len(out))
	}
	return out
}
