package endpointslices

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serviceOf is a Service of the own cluster that gets slices, unless change says otherwise.
func serviceOf(name string, change ...func(*corev1.Service)) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "prod", Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{"team": "a"},
			Annotations: map[string]string{wire.AnnotationGlobal: "true", AnnotationSync: "true"},
		},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}},
	}
	for _, c := range change {
		c(svc)
	}
	return svc
}

func annotated(key, value string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Annotations[key] = value }
}

func dual(s *corev1.Service) {
	s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
}

// ownPart is what the own cluster brings: the service, with backends.
func ownPart(name string, affinity wire.Affinity, all ...services.Backend) *services.Service {
	return &services.Service{
		Cluster: "own", Source: wire.SourceKubernetes, Shared: true, IncludeExternal: true, Namespace: "prod", Name: name, Affinity: affinity, Backends: all,
	}
}

func remotePart(cluster, name string, all ...services.Backend) *services.Service {
	slices.SortFunc(all, func(a, b services.Backend) int { return a.IP.Compare(b.IP) })
	return &services.Service{
		Cluster: cluster, ClusterID: 7, Source: wire.SourceClusterMesh, Shared: true, IncludeExternal: true, Namespace: "prod", Name: name, Backends: all,
	}
}

func http(port uint16) services.Port { return services.Port{Name: "http", Protocol: "TCP", Port: port} }

func backend(ip string, ports ...services.Port) services.Backend {
	return services.Backend{IP: netip.MustParseAddr(ip), Ports: ports}
}

// many are backends with consecutive addresses.
func many(network string, n int, ports ...services.Port) (all []services.Backend) {
	ip := netip.MustParseAddr(network)
	for range n {
		ip = ip.Next()
		all = append(all, services.Backend{IP: ip, Ports: ports})
	}
	return all
}

// server has slices as the API server would: plans are carried out at once.
type server struct {
	slices map[string]*discoveryv1.EndpointSlice
	made   int
}

func newServer() *server { return &server{slices: make(map[string]*discoveryv1.EndpointSlice)} }

func (s *server) held() []*discoveryv1.EndpointSlice {
	return slices.Collect(maps.Values(s.slices))
}

func (s *server) carryOut(t interface {
	Helper()
	Fatalf(string, ...any)
}, all []Change,
) {
	t.Helper()
	for _, c := range all {
		switch {
		case c.To == nil:
			if s.slices[c.Was.Name] == nil {
				t.Fatalf("%s is deleted and is not there", c.Was.Name)
			}
			delete(s.slices, c.Was.Name)
		case c.Was == nil && s.slices[c.To.Name] != nil:
			t.Fatalf("%s is created and is there", c.To.Name)
		default:
			made := c.To.DeepCopy()
			if c.Was == nil {
				s.made++
				made.UID = types.UID(fmt.Sprint("made-", s.made))
			}
			made.OwnerReferences = nil // as the tables have it
			s.slices[made.Name] = made
		}
	}
}

// text is one line for each slice: cluster, family, ports, endpoints with their conditions.
func (s *server) text() []string {
	var lines []string
	for _, slice := range s.slices {
		lines = append(lines, textOf(slice))
	}
	slices.Sort(lines)
	return lines
}

func textOf(slice *discoveryv1.EndpointSlice) string {
	var ports, ends []string
	for _, p := range slice.Ports {
		ports = append(ports, fmt.Sprintf("%s:%d/%s", *p.Name, *p.Port, *p.Protocol))
	}
	for _, e := range slice.Endpoints {
		text := e.Addresses[0]
		switch {
		case *e.Conditions.Ready && *e.Conditions.Serving && !*e.Conditions.Terminating:
		case !*e.Conditions.Ready && *e.Conditions.Serving && *e.Conditions.Terminating:
			text += " draining"
		case !*e.Conditions.Ready && *e.Conditions.Serving && !*e.Conditions.Terminating:
			text += " standby"
		default:
			text += " ???"
		}
		if e.Hostname != nil {
			text += " " + *e.Hostname
		}
		ends = append(ends, text)
	}
	slices.Sort(ends)
	return fmt.Sprintf("%s %s [%s] %s", slice.Labels[LabelCluster], slice.AddressType, strings.Join(ports, " "), strings.Join(ends, ", "))
}

var must = waittest.Must
