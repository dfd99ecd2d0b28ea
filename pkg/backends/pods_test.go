package backends_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// pods parses "ADDRESS=[NAMESPACE/]POD[#IDENTITY][@HOST]"; all pods are of the cluster east.
func pods(text string) backends.Pods {
	all := make(map[netip.Addr]backends.Pod)
	for _, one := range strings.Fields(text) {
		ip, pod, _ := strings.Cut(one, "=")
		pod, host, _ := strings.Cut(pod, "@")
		pod, identity, _ := strings.Cut(pod, "#")
		p := backends.Pod{Namespace: "ns", Name: pod, Identity: uint32(len(identity))}
		if namespace, name, found := strings.Cut(pod, "/"); found {
			p.Namespace, p.Name = namespace, name
		}
		p.Host, _ = netip.ParseAddr(host)
		all[netip.MustParseAddr(ip)] = p
	}
	return func(cluster string, ip netip.Addr) backends.Pod {
		if cluster != "east" {
			return backends.Pod{}
		}
		return all[ip]
	}
}

func dual(cluster string, all ...services.Backend) *services.Service {
	p := part(cluster, "")
	p.Backends = all
	return p
}

func at(ip string, change ...func(*services.Backend)) services.Backend {
	b := services.Backend{IP: netip.MustParseAddr(ip), Ports: []services.Port{{Name: "http", Protocol: "TCP", Port: 8080}}}
	for _, f := range change {
		f(&b)
	}
	return b
}

func TestByPod(t *testing.T) {
	t.Parallel()
	terminating := func(b *services.Backend) { b.Conditions = services.NotReady | services.IsTerminating }
	hostname := func(b *services.Backend) { b.Hostname = "web-0" }
	zone := func(b *services.Backend) { b.Zone = "a" }
	node := func(b *services.Backend) { b.Node = "n1" }
	port := func(b *services.Backend) { b.Ports = []services.Port{{Name: "http", Protocol: "TCP", Port: 8081}} }
	pair := []*services.Service{dual("east", at("10.1.0.1"), at("fd00::1"))}
	for name, test := range map[string]struct {
		parts []*services.Service
		pods  string
		want  string
	}{
		"one pod":                       {pair, "10.1.0.1=a fd00::1=a", "10.1.0.1+fd00::1"},
		"nobody says":                   {pair, "", "10.1.0.1 fd00::1"},
		"one is not said":               {pair, "10.1.0.1=a", "10.1.0.1 fd00::1"},
		"two pods":                      {pair, "10.1.0.1=a fd00::1=b", "10.1.0.1 fd00::1"},
		"without a name":                {pair, "10.1.0.1= fd00::1=", "10.1.0.1 fd00::1"},
		"two identities":                {pair, "10.1.0.1=a#1 fd00::1=a#22", "10.1.0.1 fd00::1"},
		"pods of another namespace":     {pair, "10.1.0.1=other/a fd00::1=other/a", "10.1.0.1 fd00::1"},
		"two namespaces":                {pair, "10.1.0.1=a fd00::1=other/a", "10.1.0.1 fd00::1"},
		"one node":                      {pair, "10.1.0.1=a@192.168.0.1 fd00::1=a@192.168.0.1", "10.1.0.1+fd00::1"},
		"two nodes":                     {pair, "10.1.0.1=a@192.168.0.1 fd00::1=a@192.168.0.2", "10.1.0.1 fd00::1"},
		"a node with two addresses":     {pair, "10.1.0.1=a@192.168.0.1 fd00::1=a@fd01::1", "10.1.0.1+fd00::1"},
		"two of one family":             {[]*services.Service{dual("east", at("10.1.0.1"), at("10.1.0.2"))}, "10.1.0.1=a 10.1.0.2=a", "10.1.0.1 10.1.0.2"},
		"a pod that came again":         {[]*services.Service{dual("east", at("10.1.0.1"), at("10.1.0.2"), at("fd00::1"))}, "10.1.0.1=a 10.1.0.2=a fd00::1=a", "10.1.0.1 10.1.0.2 fd00::1"},
		"a pod with two of IPv6":        {[]*services.Service{dual("east", at("10.1.0.1"), at("fd00::1"), at("fd00::2"))}, "10.1.0.1=a fd00::1=a fd00::2=a", "10.1.0.1 fd00::1 fd00::2"},
		"one of two pods":               {[]*services.Service{dual("east", at("10.1.0.1"), at("10.1.0.2"), at("fd00::1"), at("fd00::2"))}, "10.1.0.1=a 10.1.0.2=b fd00::1=a", "10.1.0.1+fd00::1 10.1.0.2 fd00::2"},
		"two pods, crossed":             {[]*services.Service{dual("east", at("10.1.0.1"), at("10.1.0.2"), at("fd00::1"), at("fd00::2"))}, "10.1.0.1=a 10.1.0.2=b fd00::1=b fd00::2=a", "10.1.0.1+fd00::2 10.1.0.2+fd00::1"},
		"one address drains":            {[]*services.Service{dual("east", at("10.1.0.1"), at("fd00::1", terminating))}, "10.1.0.1=a fd00::1=a", "10.1.0.1 [fd00::1]"},
		"both drain, others stay":       {[]*services.Service{dual("east", at("10.1.0.1", terminating), at("fd00::1", terminating), at("10.1.0.2"))}, "10.1.0.1=a fd00::1=a", "10.1.0.2 [10.1.0.1+fd00::1]"},
		"another host name":             {[]*services.Service{dual("east", at("10.1.0.1", hostname), at("fd00::1"))}, "10.1.0.1=a fd00::1=a", "10.1.0.1 fd00::1"},
		"another zone":                  {[]*services.Service{dual("east", at("10.1.0.1"), at("fd00::1", zone))}, "10.1.0.1=a fd00::1=a", "10.1.0.1 fd00::1"},
		"another node":                  {[]*services.Service{dual("east", at("10.1.0.1", node), at("fd00::1"))}, "10.1.0.1=a fd00::1=a", "10.1.0.1 fd00::1"},
		"another number":                {[]*services.Service{dual("east", at("10.1.0.1"), at("fd00::1", port))}, "10.1.0.1=a fd00::1=a", "10.1.0.1 fd00::1"},
		"all that is equal":             {[]*services.Service{dual("east", at("10.1.0.1", hostname, zone, node, port), at("fd00::1", hostname, zone, node, port))}, "10.1.0.1=a fd00::1=a", "10.1.0.1+fd00::1"},
		"a family of each cluster":      {[]*services.Service{dual("east", at("10.1.0.1")), dual("west", at("fd00::1"))}, "10.1.0.1=a fd00::1=a", "10.1.0.1 fd00::1"},
		"pods of a cluster say nothing": {[]*services.Service{dual("west", at("10.1.0.1"), at("fd00::1"))}, "10.1.0.1=a fd00::1=a", "10.1.0.1 fd00::1"},
	} {
		g := services.Merge(test.parts)
		before := backends.Choose(g, backends.ParsePort("http"), backends.Asker{})
		var all []string
		for _, group := range before.ByPod("ns", pods(test.pods)).Groups {
			for _, b := range group.Backends {
				all = append(all, addresses(b))
			}
			for _, b := range group.Draining {
				all = append(all, "["+addresses(b)+"]")
			}
		}
		if got := strings.Join(all, " "); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		for _, group := range before.Groups {
			for _, b := range append(group.Backends, group.Draining...) {
				if b.Other.IsValid() {
					t.Errorf("%s: the choice itself has changed", name)
				}
			}
		}
	}
}

func addresses(b backends.Backend) string {
	if b.Other.IsValid() {
		return b.IP.String() + "+" + b.Other.String()
	}
	return b.IP.String()
}
