package kubernetes

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/local/kubernetes"
)

func TestKindsAreTakenUpWhenTheyAreDefined(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.follow(t, kubernetes.Options{LookAgain: 500 * time.Millisecond})
	w.awaitListed(t)
	if !w.well() {
		t.Errorf("kinds without a definition are wrong: %s", w.wrong())
	}

	w.Apply(t, definitions()...)
	w.Apply(t, customs()...)
	awaitNames(t, w, w.tables.ServiceExports, "default/web")
	awaitNames(t, w, w.tables.CiliumNodes, "node-1")
	awaitNames(t, w, w.tables.CiliumEndpoints, "default/one")
	awaitNames(t, w, w.tables.CiliumIdentities, "4711")
	if n := get(w.tables.CiliumNodes, "node-1").Spec; n.BootID != "b1" || n.Addresses[0].IP != "192.168.0.1" || n.IPAM.PodCIDRs[0] != "10.1.0.0/24" || n.Encryption.Key != 3 {
		t.Errorf("node: %+v", n)
	}
	if e := get(w.tables.CiliumEndpoints, "default/one").Status; e.Identity.ID != 4711 || e.Networking.Addressing[0].IPv4 != "10.1.0.1" || e.Networking.NodeIP != "192.168.0.1" || e.NamedPorts[0].Port != 80 {
		t.Errorf("endpoint: %+v", e)
	}
	if i := get(w.tables.CiliumIdentities, "4711"); i.SecurityLabels["k8s:app"] != "one" {
		t.Errorf("identity: %+v", i)
	}

	w.Delete(t, customs()[1])
	awaitNames(t, w, w.tables.CiliumNodes)
	w.Delete(t, definitions()[2])
	awaitNames(t, w, w.tables.CiliumEndpoints)
}
