package live

import (
	"net/netip"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

// TestNamedPortsThatCannotBeUsedAreLeftOut: both sides leave them out, and show the address with the other ports.
func TestNamedPortsThatCannotBeUsedAreLeftOut(t *testing.T) {
	t.Parallel()
	file := etcdtest.Start(t).ConfigFile(t)
	usable := []model.NamedPort{{Name: "dns", Port: 53, Protocol: "UDP"}, {Name: "http", Port: 80, Protocol: "TCP"}}
	address := model.Address{
		Cluster: "c2", Prefix: netip.MustParsePrefix("10.0.0.1/32"), Host: true, Identity: 2 << 16,
		NamedPorts: append([]model.NamedPort{
			{Name: "any", Port: 81, Protocol: "ANY"},
			{Name: "other", Port: 82, Protocol: "OTHER"},
			{Name: "under_score", Port: 83, Protocol: "TCP"},
			{Name: "sixteen-letterss", Port: 84, Protocol: "TCP"},
			{Name: "none", Protocol: "TCP"},
		}, usable...),
	}
	p := interop.Publish(t, interop.Newest, file, interop.Config("c2", 2))
	r := readWithCilium(t, map[string]string{"c2": file})
	entries := ours.Read(t, file, wire.Expect{Cluster: "c2", ClusterID: 2}, false)
	p.Put(t, model.Objects{Addresses: []model.Address{address}})
	p.Synced(t, model.Published()...)

	address.NamedPorts = usable
	want := model.Objects{Addresses: []model.Address{address}}
	r.see(t, "the ports that can be used", soon, want)
	entriesSee(t, entries, "the ports that can be used", soon, want)
	interop.Quiet(t, "Cilium's reader", r.Complaints(), "Parsing named port failed")
	if n := len(r.Complaints()); n != 5 {
		t.Errorf("Cilium complains of %d ports", n)
	}
}
