package publish

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ces is a slice with members "name id address".
func ces(name string, members ...string) string {
	var all []string
	for _, m := range members {
		f := strings.Fields(m)
		all = append(all, fmt.Sprintf("{name: %s, id: %s, networking: {addressing: [{ipv4: %s}], node: 192.168.0.1}, service-account: s}", f[0], f[1], f[2]))
	}
	return fmt.Sprintf("{metadata: {name: %s}, namespace: prod, endpoints: [%s]}", name, strings.Join(all, ", "))
}

// endpoints publishes addresses; is waits for these, "address pod identity", and no others.
func endpoints(t *testing.T) (w *world, is func(want ...string)) {
	t.Helper()
	w = newWorld(t)
	to := newTarget()
	w.start(NewEndpoints(w.cluster, cluster2(), EndpointsParams{DefaultGlobalNamespace: true, To: to, Log: discard()}).Run)
	w.listed()
	return w, func(want ...string) {
		t.Helper()
		to.until(t, fmt.Sprint(want), func(values map[string]string) bool {
			if len(values) != len(want) {
				return false
			}
			for _, one := range want {
				f := strings.Fields(one)
				ip, err := wire.DecodeIP(f[0], []byte(values[f[0]]), wire.Expect{})
				if err != nil || ip.Pod != f[1] || fmt.Sprint(ip.Identity) != f[2] || ip.Namespace != "prod" {
					return false
				}
			}
			return true
		})
	}
}

// TestSlicesOfCiliumEndpoints: each member is as an endpoint of its own. It may come, go, change, move to another slice,
// be in two of them for a while, and have a CiliumEndpoint, which counts then.
func TestSlicesOfCiliumEndpoints(t *testing.T) {
	t.Parallel()
	w, is := endpoints(t)
	slices := w.cluster.CiliumEndpointSlices
	set(t, slices, ces("s1", "a 131073 10.0.0.1", "b 131074 10.0.0.2"))
	set(t, slices, ces("s2", "c 131073 10.0.0.3", "none 0 10.0.0.9"))
	is("10.0.0.1 a 131073", "10.0.0.2 b 131074", "10.0.0.3 c 131073")
	set(t, slices, ces("s1", "a 131075 10.0.0.1"))
	is("10.0.0.1 a 131075", "10.0.0.3 c 131073")
	set(t, slices, ces("s2", "a 131076 10.0.0.4", "a 131076 10.0.0.4")) // it has moved, and is named twice
	is("10.0.0.4 a 131076")
	set(t, slices, ces("s1"))
	is("10.0.0.4 a 131076")
	set(t, w.cluster.CiliumEndpoints, "{metadata: {namespace: prod, name: a}, status: {identity: {id: 131077}, networking: {addressing: [{ipv4: 10.0.0.5}]}, service-account: s}}")
	is("10.0.0.5 a 131077")
	remove(w, w.cluster.CiliumEndpoints, "prod/a")
	is("10.0.0.4 a 131076")
	set(t, w.cluster.Namespaces, "{metadata: {name: prod, annotations: {clustermesh.cilium.io/global: 'false'}}}")
	is()
	remove(w, w.cluster.Namespaces, "prod")
	is("10.0.0.4 a 131076")
	remove(w, slices, "s2")
	is()
	if w.cluster.CiliumEndpoints.Len() != 0 || slices.Len() != 1 {
		t.Errorf("%d endpoints and %d slices are left", w.cluster.CiliumEndpoints.Len(), slices.Len())
	}
}
