package scenarios

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

const (
	global = `service.cilium.io/global: "true"`

	home  = "home 10.1.0.1 http/8080"
	east  = "east 20.0.0.2 http/9090"
	east3 = "east 20.0.0.3 http/9090"
	west  = "west 30.0.0.3 http/9090"
)

func TestServiceWithoutEndpointsOfItsOwnUsesThoseOfOtherClusters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.describes(global)
	w.selects("when nobody has any")
	w.exports("east", nil, "20.0.0.2")
	w.selects("when east has one", east)
	w.withdraws("east")
	w.selects("when east has withdrawn the service")
	w.exports("east", nil, "20.0.0.2", "20.0.0.3")
	w.selects("when east has it again, with two", east, east3)
	w.agent.Quiet(t)
}

func TestBackendsOfAllClustersAreUsedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.describes(global)
	w.backs("10.1.0.1")
	w.selects("when home has the only one", home)
	w.exports("east", nil, "20.0.0.2")
	w.exports("west", nil, "30.0.0.3")
	w.selects("when all clusters have one", home, east, west)
	w.exports("east", nil, "20.0.0.2", "20.0.0.3")
	w.selects("when east has one more", home, east, east3, west)
	w.withdraws("east")
	w.selects("when east has withdrawn the service", home, west)
	w.exports("west", func(s *model.Service) { s.Shared = false }, "30.0.0.3")
	w.selects("when west does not share it any more", home)
	w.exports("west", nil, "30.0.0.3")
	w.selects("when west shares it again", home, west)
	w.withdraws("west")
	w.selects("when home is alone", home)
	w.agent.Quiet(t)
}

func TestServiceThatIsNotGlobalUsesItsOwnBackendsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exports("east", nil, "20.0.0.2")
	w.backs("10.1.0.1")
	w.describes(global)
	w.selects("when it is global", home, east)
	w.describes(`service.cilium.io/global: "false"`)
	w.selects("when it is said not to be", home)
	w.says("east", "not used: the local service is not global")
	w.describes(`service.cilium.io/global: "TRUE"`)
	w.selects("when it is again, in capitals", home, east)
	w.describes()
	w.selects("when nothing is said", home)
	w.agent.Quiet(t)
}

func TestOneBackendHasAllNamesOfAllItsPorts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.describes(global)
	ports := model.Ports{
		"http-direct": {Protocol: "TCP", Port: 80}, "http-remapped": {Protocol: "TCP", Port: 80},
		"http-alt": {Protocol: "TCP", Port: 80}, "https": {Protocol: "TCP", Port: 443},
	}
	w.exports("east", func(s *model.Service) {
		s.Backends = map[netip.Addr]model.Ports{netip.MustParseAddr("20.0.0.2"): ports, netip.MustParseAddr("20.0.0.3"): ports}
	})
	const names = "http-alt/80 http-direct/80 http-remapped/80 https/443"
	w.selects("with several ports", "east 20.0.0.2 "+names, "east 20.0.0.3 "+names)
	w.withdraws("east")
	w.selects("when east has withdrawn the service")
	w.agent.Quiet(t)
}

func TestAffinityDecidesWhichBackendsAreUsed(t *testing.T) {
	t.Parallel()
	affinity := func(value string) string { return `service.cilium.io/affinity: "` + value + `"` }
	w := newWorld(t)
	w.describes(global, affinity("local"))
	w.backs("10.1.0.1")
	w.exports("east", nil, "20.0.0.2")
	w.selects("when the own are preferred", home)
	w.says("east", "standing by: the affinity is local and a local backend is active")
	w.backs()
	w.selects("when the own are preferred and gone", east)
	w.backs("10.1.0.1")
	w.selects("when the own are preferred and back", home)

	w.describes(global, affinity("remote"))
	w.selects("when the others' are preferred", east)
	w.says("home", "standing by: the affinity is remote and a remote backend is healthy")
	w.withdraws("east")
	w.selects("when the others' are preferred and gone", home)
	w.exports("east", nil, "20.0.0.2")
	w.selects("when the others' are preferred and back", east)

	w.describes(global, affinity("none"))
	w.selects("when none are preferred", home, east)
	w.describes(global)
	w.selects("when nothing is said", home, east)
	w.agent.Quiet(t)
}

// An unknown affinity counts as none, and the operator sees it.
func TestUnknownAffinityIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backs("10.1.0.1")
	w.exports("east", nil, "20.0.0.2")
	w.describes(global, `service.cilium.io/affinity: "local"`)
	w.selects("when the own are preferred", home)
	w.describes(global, `service.cilium.io/affinity: "nearby"`)
	w.selects("when what is preferred does not exist", home, east)
	for _, l := range w.agent.Complaints(t) {
		if strings.Contains(l.Message, "Ignored an unknown affinity") && strings.Contains(l.Text, "nearby") {
			return
		}
	}
	t.Errorf("the agent says nothing about it: %v", w.agent.Complaints(t))
}
