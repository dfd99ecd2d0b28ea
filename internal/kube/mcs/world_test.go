package mcs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func epoch() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// export is one of shop/cart by a cluster, so many seconds after the first.
func export(cluster string, seconds int, change ...func(*wire.ServiceExport)) *services.Export {
	w := &wire.ServiceExport{
		Cluster: cluster, Namespace: "shop", Name: "cart",
		ExportCreationTimestamp: wire.ExportTime{Time: epoch().Add(time.Duration(seconds) * time.Second)},
		Type:                    wire.ServiceExportClusterSetIP, SessionAffinity: wire.SessionAffinityNone,
		Ports: []wire.ServiceExportPort{{Name: "http", Protocol: "TCP", Port: 80}}, IPFamilies: []string{"IPv4"},
	}
	for _, c := range change {
		c(w)
	}
	return services.ExportFromWire(w)
}

func headlessExport(w *wire.ServiceExport) { w.Type = wire.ServiceExportHeadless }

func families(of ...string) func(*wire.ServiceExport) {
	return func(w *wire.ServiceExport) { w.IPFamilies = of }
}

func ports(of ...wire.ServiceExportPort) func(*wire.ServiceExport) {
	return func(w *wire.ServiceExport) { w.Ports = of }
}

func port(name string, number int32) wire.ServiceExportPort {
	return wire.ServiceExportPort{Name: name, Protocol: "TCP", Port: number}
}

func sticky(seconds int32) func(*wire.ServiceExport) {
	return func(w *wire.ServiceExport) {
		w.SessionAffinity = wire.SessionAffinityClientIP
		w.SessionAffinityConfig = &wire.SessionAffinityConfig{ClientIP: &wire.ClientIPConfig{TimeoutSeconds: &seconds}}
	}
}

func labels(of map[string]string) func(*wire.ServiceExport) {
	return func(w *wire.ServiceExport) { w.Labels = of }
}

func annotations(of map[string]string) func(*wire.ServiceExport) {
	return func(w *wire.ServiceExport) { w.Annotations = of }
}

func internal(policy string) func(*wire.ServiceExport) {
	return func(w *wire.ServiceExport) { w.InternalTrafficPolicy = &policy }
}

func distribution(d string) func(*wire.ServiceExport) {
	return func(w *wire.ServiceExport) { w.TrafficDistribution = &d }
}

// facts are those of the cluster c1 with IPv4, which has the namespace and exports nothing.
func facts() Facts {
	return Facts{Cluster: "c1", Namespace: NamespaceGlobal, Families: []string{"IPv4"}, Slices: RequestedSlices, Now: epoch().Add(time.Hour)}
}

// service is shop/cart with a port.
func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}}},
	}
}

// serve is the derived Service after the API server has given it addresses.
func serve(svc *corev1.Service, ips ...string) *corev1.Service {
	svc = svc.DeepCopy()
	for _, ip := range ips {
		family := corev1.IPv4Protocol
		if len(ip) > 0 && ip[0] == 'f' {
			family = corev1.IPv6Protocol
		}
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, family)
	}
	svc.Spec.ClusterIP, svc.Spec.ClusterIPs = ips[0], ips
	return svc
}

// conditionOf is a condition as "Status Reason"; empty when it is absent.
func conditionOf(all []metav1.Condition, kind string) string {
	for _, c := range all {
		if c.Type == kind {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}
