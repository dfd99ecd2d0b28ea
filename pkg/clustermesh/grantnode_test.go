package clustermesh

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestARefusedNodeIsOneLine: if several addresses are not granted, the error names the first, as for all other objects.
func TestARefusedNodeIsOneLine(t *testing.T) {
	t.Parallel()
	p, err := claims.Parse([]byte("clusters: {a: {networks: [10.1.0.0/16]}}"))
	must(t, err)
	grant, _ := p.Of("a")
	n := &nodes.Node{
		Cluster: "a", Name: "n", Addresses: []nodes.Address{
			{Type: wire.AddressCiliumInternalIP, IP: netip.MustParseAddr("10.2.0.1")}, // listed after the other one
			{Type: wire.AddressInternalIP, IP: netip.MustParseAddr("192.168.0.1")},
		},
	}
	if err := grantNode(grant, n); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}
