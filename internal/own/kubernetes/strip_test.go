package kubernetes

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// everyMeta has each field without a reader, and some that are read.
func everyMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "n", Namespace: "ns", UID: "u", CreationTimestamp: metav1.Unix(1700000000, 0),
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1", corev1.LastAppliedConfigAnnotation: "{}"},
		ResourceVersion: "7", Generation: 3, Finalizers: []string{"f"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
	}
}

func keptMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "n", Namespace: "ns", UID: "u", CreationTimestamp: metav1.Unix(1700000000, 0),
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "1"},
	}
}

func checkRead[T any, P local.Object[T]](t *testing.T, read func(any) (P, error), from any, want P) {
	t.Helper()
	got, err := read(from)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	again, err := read(got)
	if err != nil || !cmp.Equal(again, want) {
		t.Errorf("read once more: %v, %v", again, err)
	}
}

func TestWhatIsKeptOfAService(t *testing.T) {
	t.Parallel()
	spec := corev1.ServiceSpec{ClusterIP: "10.0.0.1", Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"a": "b"}}
	balancer := corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "1.2.3.4"}}}
	checkRead(t, typed(stripService),
		&corev1.Service{ObjectMeta: everyMeta(), Spec: spec, Status: corev1.ServiceStatus{LoadBalancer: balancer, Conditions: []metav1.Condition{{Type: "c"}}}},
		&corev1.Service{ObjectMeta: keptMeta(), Spec: spec, Status: corev1.ServiceStatus{LoadBalancer: balancer}})
}

func TestWhatIsKeptOfAnEndpointSlice(t *testing.T) {
	t.Parallel()
	slice := func(meta metav1.ObjectMeta, target *corev1.ObjectReference) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.2"}, Zone: new("z"), TargetRef: target}},
			Ports:     []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		}
	}
	checkRead(t, typed(stripEndpointSlice), slice(everyMeta(), &corev1.ObjectReference{Kind: "Pod"}), slice(keptMeta(), nil))
}

func TestWhatIsKeptOfANode(t *testing.T) {
	t.Parallel()
	addresses := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.0.1"}}
	checkRead(t, typed(stripNode),
		&corev1.Node{
			ObjectMeta: everyMeta(), Spec: corev1.NodeSpec{PodCIDR: "10.0.0.0/24", PodCIDRs: []string{"10.0.0.0/24"}, Unschedulable: true},
			Status: corev1.NodeStatus{
				Addresses: addresses, Images: []corev1.ContainerImage{{SizeBytes: 1}},
				Conditions: []corev1.NodeCondition{{LastHeartbeatTime: metav1.NewTime(time.Now())}},
			},
		},
		&corev1.Node{
			ObjectMeta: keptMeta(), Spec: corev1.NodeSpec{PodCIDR: "10.0.0.0/24", PodCIDRs: []string{"10.0.0.0/24"}},
			Status: corev1.NodeStatus{Addresses: addresses},
		})
}

func TestWhatIsKeptOfAPod(t *testing.T) {
	t.Parallel()
	ports := []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
	kept := keptMeta()
	kept.Annotations = nil
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "192.168.0.1", HostIPs: []corev1.HostIP{{IP: "192.168.0.1"}},
		PodIP: "10.0.0.2", PodIPs: []corev1.PodIP{{IP: "10.0.0.2"}},
	}
	all := status
	all.Conditions, all.ContainerStatuses = []corev1.PodCondition{{Type: "c"}}, []corev1.ContainerStatus{{Name: "main"}}
	checkRead(t, typed(stripPod),
		&corev1.Pod{
			ObjectMeta: everyMeta(), Status: all,
			Spec: corev1.PodSpec{
				NodeName: "node", HostNetwork: true, ServiceAccountName: "sa", SchedulerName: "s",
				Containers:     []corev1.Container{{Name: "main", Image: "i", Ports: ports, Env: []corev1.EnvVar{{Name: "A"}}}},
				InitContainers: []corev1.Container{{Name: "side", Image: "i", Ports: ports, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
			},
		},
		&corev1.Pod{
			ObjectMeta: kept, Status: status,
			Spec: corev1.PodSpec{
				NodeName: "node", HostNetwork: true, ServiceAccountName: "sa",
				Containers:     []corev1.Container{{Name: "main", Ports: ports}},
				InitContainers: []corev1.Container{{Name: "side", Ports: ports, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
			},
		})
}

func TestWhatIsKeptOfANamespace(t *testing.T) {
	t.Parallel()
	checkRead(t, typed(stripNamespace),
		&corev1.Namespace{ObjectMeta: everyMeta(), Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"k"}}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}},
		&corev1.Namespace{ObjectMeta: keptMeta()})
}

func TestWhatIsKeptOfACustomResource(t *testing.T) {
	t.Parallel()
	raw := map[string]any{
		"apiVersion": "cilium.io/v2", "kind": "CiliumIdentity", "unknown": map[string]any{"a": int64(1)},
		"metadata":        map[string]any{"name": "4711", "resourceVersion": "7", "labels": map[string]any{"l": "1"}},
		"security-labels": map[string]any{"k8s:app": "web"},
	}
	checkRead(t, custom[local.CiliumIdentity], &unstructured.Unstructured{Object: raw}, &local.CiliumIdentity{
		TypeMeta:       metav1.TypeMeta{APIVersion: "cilium.io/v2", Kind: "CiliumIdentity"},
		ObjectMeta:     metav1.ObjectMeta{Name: "4711", Labels: map[string]string{"l": "1"}},
		SecurityLabels: map[string]string{"k8s:app": "web"},
	})
}

func TestObjectsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	bad := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n"}, "security-labels": "none"}}
	for name, read := range map[string]func() error{
		"a field of another type": func() error { _, err := custom[local.CiliumIdentity](bad); return err },
		"another custom resource": func() error { _, err := custom[local.CiliumIdentity](new(local.CiliumNode)); return err },
		"another kind":            func() error { _, err := typed(stripNode)(new(corev1.Pod)); return err },
	} {
		if read() == nil {
			t.Errorf("%s is read", name)
		}
	}
}
