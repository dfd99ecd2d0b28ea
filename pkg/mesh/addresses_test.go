package mesh_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestAPeerOfAddressesAlone: a gateway without Cilium publishes networks with the last cluster ID, but no canaries,
// heartbeat, nodes, services or identities. It is ready, lookups return its addresses, and a notice lists the missing
// resources.
func TestAPeerOfAddressesAlone(t *testing.T) {
	t.Parallel()
	gateway := startCluster("gateway", 255)
	t.Cleanup(gateway.stop)
	gateway.write(wire.IPs.Key("", false, "10.44.0.0/16"), map[string]any{"IP": "10.44.0.0", "Mask": []byte{255, 255, 0, 0}, "HostIP": "192.0.2.1", "ID": 255 << 16})
	gateway.write(wire.IPs.Key("", false, "10.44.0.9"), map[string]any{"IP": "10.44.0.9", "HostIP": "192.0.2.1", "ID": 255<<16 + 1})
	m, err := mesh.New(mesh.Config{Directory: gateway.directory})
	waittest.Must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	if err := m.WaitReady(waittest.Context(t)); err != nil {
		t.Fatal(err)
	}
	// The mesh is ready when everything was listed, the cluster when it is followed as well.
	waittest.Until(t, "the gateway is ready, and says what it has", func() bool {
		st := m.Clusters()[0]
		return st.Ready && st.ID == 255 && slices.ContainsFunc(st.Notices, func(n remotecluster.Notice) bool {
			return n.Code == codes.AddressesOnly && n.Message == "it publishes addresses only (2): no nodes, services or identities"
		})
	}, func() string { return fmt.Sprintf("%+v", m.Clusters()[0]) })
	if ok, why := m.MayDeny(); !ok {
		t.Errorf("no answer may say that something does not exist: %v", why)
	}
	for address, prefix := range map[string]string{"10.44.0.9": "10.44.0.9/32", "10.44.7.7": "10.44.0.0/16"} {
		found := m.Lookup(netip.MustParseAddr(address))
		if e := found.Winner(); e == nil || e.Cluster().Name != "gateway" || e.Prefix().String() != prefix {
			t.Errorf("%s: %+v", address, e)
		}
	}
	if found := m.Lookup(netip.MustParseAddr("10.45.0.1")); found.Winner() != nil {
		t.Errorf("10.45.0.1: %+v", found.Winner())
	}
}
