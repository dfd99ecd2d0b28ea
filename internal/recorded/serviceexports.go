package recorded

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ServiceExport is a recorded export with its objects.
type ServiceExport struct {
	Vector
	Cluster wire.ClusterInfo
	Export  *local.ServiceExport
	Service *corev1.Service
}

// ServiceExportsOf are the exports. The vectors were made of values, and some say
// null for no ports; a writer has a list, which may be empty.
func ServiceExportsOf(t testing.TB) (out []ServiceExport) {
	t.Helper()
	noPorts := []string{`"ports":null`, `"ports":[]`}
	all := Vectors(t, ServiceExports)
	created := `creationTimestamp: "2026-03-04T05:06:07Z"`
	for i, c := range []struct {
		cluster         wire.ClusterInfo
		export, service string
		replace         []string
	}{
		{
			export:  "metadata: {namespace: default, name: web, labels: {not: exported}, CREATED}",
			service: `spec: {clusterIP: 10.0.0.1, sessionAffinity: None, ports: [{name: http, protocol: TCP, port: 80, targetPort: 8080, nodePort: 30080}]}`,
		},
		{
			export:  "metadata: {namespace: default, name: hl, CREATED}",
			service: `spec: {clusterIP: None, ipFamilies: [IPv4, IPv6], ports: [{name: db, protocol: TCP, port: 5432, appProtocol: http}]}`,
		},
		{
			export:  "metadata: {namespace: default, name: sticky, CREATED}",
			service: `spec: {clusterIP: 10.0.0.1, sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}}`,
		},
		{
			export:  "{metadata: {namespace: default, name: annotated, CREATED}, spec: {exportedLabels: {l: \"2\"}, exportedAnnotations: {a: \"1\"}}}",
			replace: noPorts,
		},
		{
			export:  "metadata: {namespace: default, name: itp, CREATED}",
			service: `spec: {internalTrafficPolicy: Local, trafficDistribution: PreferClose}`,
			replace: noPorts,
		},
		{
			export:  "metadata: {namespace: default, name: itp2, CREATED}",
			service: `spec: {internalTrafficPolicy: Cluster, trafficDistribution: PreferSameZone, ipFamilies: [IPv6]}`,
			replace: noPorts,
		},
		{
			export:  "metadata: {namespace: default, name: multi, CREATED}",
			service: `spec: {ports: [{name: a, protocol: TCP, port: 1}, {name: b, protocol: UDP, port: 53}, {protocol: SCTP, port: 65535}]}`,
		},
		{
			cluster: Widest(),
			export: strings.NewReplacer("NS", strings.Repeat("n", 63), "NAME", strings.Repeat("s", 63)).
				Replace(`metadata: {namespace: NS, name: NAME, creationTimestamp: "2026-03-04T05:06:07+02:00"}`),
			replace: noPorts,
		},
	} {
		if c.cluster.ID == 0 {
			c.cluster = Cluster2()
		}
		out = append(out, ServiceExport{
			Vector: all[i].replaced(t, c.replace), Cluster: c.cluster,
			Export:  Object[local.ServiceExport](t, strings.ReplaceAll(c.export, "CREATED", created)),
			Service: Object[corev1.Service](t, c.service),
		})
	}
	if len(all) != len(out) {
		t.Errorf("%d vectors and %d objects", len(all), len(out))
	}
	return out
}
