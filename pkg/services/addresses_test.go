package services

import (
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAddresses: the addresses of a service of the own cluster are kept, those of a remote service are not.
func TestAddresses(t *testing.T) {
	t.Parallel()
	w := &wire.Service{Cluster: "c1", Namespace: "ns", Name: "web", Frontends: map[string]wire.Ports{"fd00::1": nil, "10.0.0.9": nil, "::ffff:10.0.0.9": nil}}
	own := FromWire(w, wire.SourceLocal)
	if got := fmt.Sprint(own.Addresses); got != "[10.0.0.9 fd00::1]" {
		t.Errorf("addresses are %s", got)
	}
	if remote := FromWire(w, wire.SourceClusterMesh); remote.Addresses != nil {
		t.Errorf("a remote service has %v", remote.Addresses)
	}
	delete(w.Frontends, "fd00::1")
	if own.Equal(FromWire(w, wire.SourceLocal)) {
		t.Error("with another address it is the same")
	}
}
