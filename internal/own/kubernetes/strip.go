package kubernetes

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The functions below remove fields without a reader from fresh objects. Objects are compared by the remaining fields:
// a change of the removed ones is no change.

// stripMeta is for every kind.
func stripMeta(o metav1.Object) {
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) == 0 {
		o.SetAnnotations(nil)
	}
}

// stripService keeps the specification, and the addresses of load balancers.
func stripService(s *corev1.Service) { s.Status.Conditions = nil }

// stripEndpointSlice keeps everything but the objects that endpoints stand for,
// which other clusters do not get either (wire.md §1.4).
func stripEndpointSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Endpoints {
		s.Endpoints[i].TargetRef = nil
	}
}

// stripNode keeps where the node is, not how it feels: its kubelet writes the
// latter every few minutes.
func stripNode(n *corev1.Node) {
	n.Spec = corev1.NodeSpec{PodCIDR: n.Spec.PodCIDR, PodCIDRs: n.Spec.PodCIDRs}
	n.Status = corev1.NodeStatus{Addresses: n.Status.Addresses}
}

// stripPod keeps where the pod is, what its ports are called, and who it is.
func stripPod(p *corev1.Pod) {
	p.Annotations = nil
	p.Spec = corev1.PodSpec{
		NodeName:           p.Spec.NodeName,
		HostNetwork:        p.Spec.HostNetwork,
		ServiceAccountName: p.Spec.ServiceAccountName,
		Containers:         stripContainers(p.Spec.Containers),
		InitContainers:     stripContainers(p.Spec.InitContainers),
	}
	p.Status = corev1.PodStatus{
		Phase:   p.Status.Phase,
		HostIP:  p.Status.HostIP,
		HostIPs: p.Status.HostIPs,
		PodIP:   p.Status.PodIP,
		PodIPs:  p.Status.PodIPs,
	}
}

func stripContainers(all []corev1.Container) (kept []corev1.Container) {
	for _, c := range all {
		kept = append(kept, corev1.Container{Name: c.Name, Ports: c.Ports, RestartPolicy: c.RestartPolicy})
	}
	return kept
}

// stripNamespace keeps its name, labels and annotations.
func stripNamespace(n *corev1.Namespace) {
	n.Spec, n.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
}
