package xdsserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// maxPortsNamed bounds how many ports an explanation lists.
const maxPortsNamed = 8

// whyNone returns the reason why a port of a service has no endpoints. Clients only report that calls fail, without
// the name and the reason.
func whyNone(g *services.Global, port string) string {
	if g == nil {
		return "no cluster has the service"
	}
	var ports []string
	some := false
	for _, b := range backends.Usable(g) {
		some = true
		for _, p := range b.Ports {
			if text := strings.TrimPrefix(p.Name+" ", " ") + strconv.Itoa(int(p.Port)) + "/" + p.Protocol; !slices.Contains(ports, text) && len(ports) <= maxPortsNamed {
				ports = append(ports, text)
			}
		}
	}
	if !some {
		return "no backend of the service takes connections"
	}
	if len(ports) == 0 {
		return "the backends have no ports"
	}
	slices.Sort(ports)
	if len(ports) > maxPortsNamed {
		ports = append(ports[:maxPortsNamed], "more")
	}
	all := strings.Join(ports, ", ")
	if port == "" {
		return fmt.Sprintf("no backend has one TCP port alone, so the name has to say which; the backends have %s", all)
	}
	return fmt.Sprintf("no backend has the TCP port %s; the backends have %s", port, all)
}
