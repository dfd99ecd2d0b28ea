package endpointslices

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// networks are own networks that a test changes.
type networks struct {
	mu       sync.Mutex
	of       []netip.Prefix
	revision uint64
}

func (n *networks) set(all ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of, n.revision = nil, n.revision+1
	for _, text := range all {
		n.of = append(n.of, netip.MustParsePrefix(text))
	}
}

func (n *networks) IsOwn(a netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.of, func(p netip.Prefix) bool { return p.Contains(a) })
}

func (n *networks) OwnRevision() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.revision
}

// Addresses that no remote backend in a slice has, and how they are counted (CVE-2021-25740).
func TestAddressesThatAreRefused(t *testing.T) {
	t.Parallel()
	own := func(a netip.Addr) bool {
		return netip.MustParsePrefix("10.1.0.0/16").Contains(a) || netip.MustParsePrefix("fd01::/48").Contains(a)
	}
	for _, test := range []struct {
		address string
		refused bool
	}{
		{"0.0.0.0", true},
		{"10.1.0.1", true},
		{"10.2.0.1", false},
		{"100.100.100.200", true},
		{"100.64.0.1", false},
		{"127.0.0.1", true},
		{"168.63.129.16", true},
		{"169.254.169.254", true},
		{"192.0.0.192", true},
		{"224.0.0.1", true},
		{"240.0.0.1", true},
		{"255.255.255.255", true},
		{"::1", true},
		{"::ffff:10.1.0.1", true},
		{"::ffff:127.0.0.1", true},
		{"64:ff9b::a01:1", true},
		{"2001:db8::1", false},
		{"2002:a01:1::1", true},
		{"fd00:ec2::254", true},
		{"fd01::1", true},
		{"fd02::1", false},
		{"fe80::1", true},
		{"ff02::1", true},
	} {
		t.Run(test.address, func(t *testing.T) {
			t.Parallel()
			g := services.Merge([]*services.Service{ownPart("web", ""), remotePart("west", "web", backend(test.address, http(80)))})
			p := Plan(Input{Service: serviceOf("web", dual), Global: g, Own: own})
			there := false
			for _, c := range p.All {
				for _, e := range c.To.Endpoints {
					there = there || e.Addresses[0] == test.address
				}
			}
			if there == test.refused || (p.Refused.Backends == 1) != test.refused || test.refused != strings.Contains(p.Refused.Example, test.address+" of cluster west is ") {
				t.Errorf("in a slice: %v; %+v", there, p.Refused)
			}
		})
	}
}

// A remote names addresses of the own cluster's pods, nodes and Services, also before there are some: they are in no
// slice, under any claim policy, and a code reports it. Addresses that leave the own networks are written then.
func TestOwnAddressesAreInNoSlice(t *testing.T) {
	t.Parallel()
	w, own, m := newWorld(t, "west"), new(networks), NewMetrics()
	own.set("10.1.0.0/16")
	w.own(serviceOf("web"))
	w.parts(remotePart("west", "web", backend("10.1.0.7", http(80)), backend("10.2.0.1", http(80)), backend("10.3.0.7", http(80)), backend("10.96.0.7", http(80)), backend("169.254.169.254", http(80))))
	w.run(func(p *Params) { p.OwnNetworks, p.Metrics = own, m })
	w.until("without pods and metadata", "web: west IPv4 [http:80/TCP] 10.2.0.1, 10.3.0.7, 10.96.0.7")
	w.own(serviceOf("api", func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.7"} }))
	w.until("without a Service that comes later", "web: west IPv4 [http:80/TCP] 10.2.0.1, 10.3.0.7")
	own.set("10.1.0.0/16", "10.3.0.7/32")
	w.until("without a node that comes later", "web: west IPv4 [http:80/TCP] 10.2.0.1")
	const said = ": 4 remote backends are in no EndpointSlice because of their addresses, of 1 Services such as prod/web: the address 10.1.0.7 of cluster west is one of the own cluster"
	waittest.Until(t, "it is said", func() bool { return strings.Contains(w.Wrong(), said) }, w.Wrong)
	codestest.Reached(t, codes.Slices, codes.Code(strings.TrimPrefix(strings.TrimSuffix(w.Wrong(), said), Task+": ")))
	if n := testutil.ToFloat64(m.refused); n != 4 {
		t.Errorf("%v are counted", n)
	}
	own.set()
	w.until("the networks are not ours any more", "web: west IPv4 [http:80/TCP] 10.1.0.7, 10.2.0.1, 10.3.0.7")
}

// Own addresses are in slices where they are allowed; those for special use never are.
func TestOwnAddressesMayBeAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "west")
	w.own(serviceOf("web", func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"10.96.0.7"} }))
	w.parts(remotePart("west", "web", backend("10.1.0.7", http(80)), backend("10.96.0.7", http(80)), backend("127.0.0.1", http(80))))
	w.run()
	w.until("all but loopback", "web: west IPv4 [http:80/TCP] 10.1.0.7, 10.96.0.7")
}

// broken is an API server that makes its client panic for the slices of one Service.
type broken struct {
	*world
	service string
}

func (b broken) Apply(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if strings.HasPrefix(o.GetName(), b.service+"-") {
		panic("a slice that cannot be written")
	}
	return b.world.Apply(ctx, r, o)
}

// A bug that one Service leads to leaves out that one: all others are written, and it is said and counted.
func TestAPanicLeavesOutOneService(t *testing.T) {
	t.Parallel()
	w, bounds := newWorld(t, "west"), boundary.New(nil)
	for _, name := range []string{"api", "bad", "web"} {
		w.own(serviceOf(name))
		w.parts(remotePart("west", name, backend("10.2.0.1", http(80))))
	}
	w.run(func(p *Params) { p.Writer, p.Boundary = broken{w, "bad"}, bounds.Part("endpointslices") })
	w.until("the others", "api: west IPv4 [http:80/TCP] 10.2.0.1", "web: west IPv4 [http:80/TCP] 10.2.0.1")
	waittest.Until(t, "it is said", func() bool { return strings.Contains(w.Wrong(), "such as prod/bad: "+boundary.ErrInternal.Error()) }, w.Wrong)
	if n := testutil.ToFloat64(bounds.WithLabelValues("endpointslices")); n < 1 {
		t.Errorf("%v failures are counted", n)
	}
}
