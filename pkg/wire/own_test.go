package wire

import (
	"errors"
	"fmt"
	"net"
	"testing"
)

// TestEntriesOfTheOwnCluster checks the requirements for entries of the reader's own cluster that do not apply to other
// clusters.
func TestEntriesOfTheOwnCluster(t *testing.T) {
	t.Parallel()
	narrow, err := NewLayout(255)
	must(t, err)
	wide, err := NewLayout(511)
	must(t, err)
	own := func(id uint32, l Layout) Expect {
		return Expect{Cluster: "own", ClusterID: id, LocalID: id, Layout: l, Own: true}
	}
	remote := Expect{Cluster: "own", ClusterID: 5, LocalID: 1, Layout: narrow}
	identity := func(id uint32, labels string, e Expect) error {
		_, err := DecodeIdentity(fmt.Sprint(id), []byte(labels), e)
		return err
	}
	node := func(id uint32, e Expect) error {
		_, err := DecodeNode("n", (&Node{Name: "n", Cluster: "own", ClusterID: id}).Encode(), e)
		return err
	}
	address := func(id uint32, e Expect) error {
		pair := IPIdentityPair{IP: net.IPv4(10, 0, 0, 1), Identity: id}
		_, err := DecodeIP(pair.Name(), pair.Encode(), e)
		return err
	}
	const ok = Reason("")
	for name, c := range map[string]struct {
		err  error
		want Reason
	}{
		"a remote's identity names its cluster":            {identity(5<<16, "k8s:app=a;", remote), ReasonLabels},
		"an own one need not":                              {identity(5<<16, "k8s:app=a;", own(5, narrow)), ok},
		"nor name it rightly":                              {identity(5<<16, "k8s:io.cilium.k8s.policy.cluster=x;", own(5, narrow)), ok},
		"but have a number of the own range":               {identity(6<<16, "k8s:app=a;", own(5, narrow)), ReasonRange},
		"the range of ID 0 begins above the reserved ones": {identity(255, "k8s:app=a;", own(0, narrow)), ReasonRange},
		"its first":                  {identity(256, "k8s:app=a;", own(0, narrow)), ok},
		"its last with 255 clusters": {identity(65535, "k8s:app=a;", own(0, narrow)), ok},
		"beyond":                     {identity(65536, "k8s:app=a;", own(0, narrow)), ReasonRange},
		"its last with 511 clusters": {identity(32767, "k8s:app=a;", own(0, wide)), ok},
		"beyond that":                {identity(32768, "k8s:app=a;", own(0, wide)), ReasonRange},
		"a node with ID 0 in a cluster without ID": {node(0, own(0, narrow)), ok},
		"with another ID":                          {node(7, own(0, narrow)), ReasonClusterID},
		"without an ID in a cluster that has one":  {node(0, own(5, narrow)), ReasonClusterID},
		"with the own ID":                          {node(5, own(5, narrow)), ok},
		"a remote's node without an ID":            {node(0, remote), ReasonClusterID},
		"an address of the own range":              {address(300, own(0, narrow)), ok},
		"an address with a reserved identity":      {address(6, own(0, narrow)), ok},
		"an address of another range":              {address(70000, own(0, narrow)), ReasonRange},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reject, refused := errors.AsType[*RejectError](c.err)
			switch {
			case c.want == ok && c.err != nil:
				t.Errorf("refused: %v", c.err)
			case c.want != ok && (!refused || reject.Reason != c.want):
				t.Errorf("%v, want the reason %q", c.err, c.want)
			}
		})
	}
}

func TestExports(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, c := range []struct {
		caps                      Capabilities
		services, slices, exports bool
	}{
		{Capabilities{}, true, false, false},
		{Capabilities{EndpointSlicesExportMode: EndpointSlicesBoth, ServiceExportsEnabled: &no}, true, true, false},
		{Capabilities{EndpointSlicesExportMode: EndpointSlicesOnly, ServiceExportsEnabled: &yes}, false, true, true},
	} {
		for r, want := range map[Resource]bool{
			Nodes: true, Identities: true, IPs: true, Services: c.services, EndpointSlices: c.slices, ServiceExports: c.exports,
		} {
			if got := c.caps.Exports(r); got != want {
				t.Errorf("mode %q exports %s: %t", c.caps.EndpointSlicesExportMode, r, got)
			}
		}
	}
}
