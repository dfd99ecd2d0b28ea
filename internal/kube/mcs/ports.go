package mcs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// MaxPorts is how many ports a service has at most that is imported: as many as a slice has in every
// release of Kubernetes. Of more, those of the first exports are there.
const MaxPorts = 100

// union are the ports of all exports. Ports are the same by name first, the empty one included, and then by protocol
// and number; on a clash the first definition stays (mcs.md B, ports), so names are unique, including those that ports
// without a name get, and each number is unique for its protocol. The exports are sorted.
func union(exports []*services.Export) []local.ServicePort {
	ports := []local.ServicePort{}
	names, numbers := make(map[string]bool), make(map[portNumber]bool)
	for _, e := range exports {
		for _, p := range e.Ports {
			number, name := portNumber{p.Protocol, p.Port}, cmp.Or(p.Name, UnnamedPort(p.Protocol, int(p.Port)))
			if len(ports) == MaxPorts || names[p.Name] || names[name] || numbers[number] || !isValid(p) {
				continue
			}
			names[p.Name], names[name], numbers[number] = true, true, true
			ports = append(ports, local.ServicePort{
				Name: p.Name, Protocol: corev1.Protocol(p.Protocol), AppProtocol: appProtocol(e.Details.AppProtocols[p]), Port: int32(p.Port),
			})
		}
	}
	return ports
}

// portNumber is a port of a protocol.
type portNumber struct {
	protocol string
	port     uint16
}

// isValid reports whether a Service can have the port.
func isValid(p services.Port) bool {
	switch corev1.Protocol(p.Protocol) {
	case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
		return p.Port > 0 && (p.Name == "" || len(validation.IsDNS1123Label(p.Name)) == 0)
	}
	return false
}

// appProtocol is the application protocol of a port; nil when it is not given, or is not valid in a Service.
func appProtocol(text string) *string {
	if text == "" || len(validation.IsQualifiedName(text)) > 0 {
		return nil
	}
	return &text
}

// samePorts reports whether both export the same ports, in any order.
func samePorts(a, b *services.Export) bool {
	return slices.Equal(a.Ports, b.Ports) && maps.Equal(a.Details.AppProtocols, b.Details.AppProtocols) // ports are sorted
}

// derivedPorts are the ports of the derived Service, in the order of the import's. One without a name
// among several gets one, as Kubernetes demands, and is left out when another one has that name.
func derivedPorts(ports []local.ServicePort) []corev1.ServicePort {
	var out []corev1.ServicePort
	for _, p := range ports {
		if name, fits := derivedName(p, ports); fits {
			out = append(out, corev1.ServicePort{Name: name, Protocol: p.Protocol, AppProtocol: p.AppProtocol, Port: p.Port})
		}
	}
	return out
}

// UnnamedPort is the name that a derived Service gives a port which has none in the import.
func UnnamedPort(protocol string, port int) string {
	return fmt.Sprintf("unnamed-%s-%d", strings.ToLower(protocol), port)
}

// derivedName is the name that a port has in the derived Service; it does not fit when there is none.
func derivedName(p local.ServicePort, among []local.ServicePort) (name string, fits bool) {
	if p.Name != "" || len(among) == 1 {
		return p.Name, true
	}
	name = UnnamedPort(string(p.Protocol), int(p.Port))
	return name, !slices.ContainsFunc(among, func(o local.ServicePort) bool { return o.Name == name })
}
