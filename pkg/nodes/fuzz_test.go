package nodes

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// FuzzFromWire: every value of a remote that the decoder accepts becomes a node with valid claims.
func FuzzFromWire(f *testing.F) {
	f.Add([]byte(`{"Name":"n","Cluster":"c","ClusterID":2,"IPAddresses":[{"Type":"InternalIP","IP":"192.0.2.1"},{"Type":"x","IP":"::ffff:1.2.3.4"}],"IPv4AllocCIDR":{"IP":"10.2.0.0","Mask":"////AA=="},"IPv6HealthIP":"fd00::1","EncryptionKey":3}`))
	f.Add([]byte(`{"Name":"n","Cluster":"c","ClusterID":2,"IPAddresses":[{}],"IPv4SecondaryAllocCIDRs":[null,{"Mask":"AA=="},{"IP":"fd00::","Mask":"////AA=="}]}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		w, err := wire.DecodeNode("n", value, wire.Expect{Cluster: "c", ClusterID: 2, LocalID: 1})
		if err != nil {
			return
		}
		n := FromWire(w, wire.SourceClusterMesh)
		for _, c := range n.Claims() {
			if !c.Prefix.IsValid() || c.Prefix != c.Prefix.Masked() || c.Prefix.Addr().Is4In6() || c.HostIP.Is4In6() {
				t.Errorf("%s", c.describe())
			}
		}
		if !n.Equal(FromWire(w, wire.SourceClusterMesh)) {
			t.Error("not equal to itself")
		}
	})
}
