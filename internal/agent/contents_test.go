package agent_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
)

// tcpAddress waits for the address of an agent's TCP listener, which may open later than the socket.
func tcpAddress(a *agenttest.Process) string {
	a.T.Helper()
	said := regexp.MustCompile(`msg=Listening address="([^"]*:\d+)"`)
	var found []string
	a.Until("its TCP listener", func() bool { found = said.FindStringSubmatch(a.Log.String()); return found != nil })
	return found[1]
}

// shown returns what the agent shows of the clusters' contents, one line per key.
func shown(a *agenttest.Process) map[string]string {
	a.T.Helper()
	got := map[string]string{}
	for _, n := range agenttest.List[api.Node](a, "nodes") {
		got["node "+n.Cluster+"/"+n.Name] = fmt.Sprint(n.ClusterID, n.Addresses, n.PodCIDRs, n.Labels)
	}
	for _, id := range agenttest.List[api.Identity](a, "identities") {
		got[fmt.Sprint("identity ", id.ID)] = fmt.Sprint(id.Cluster, id.Labels)
	}
	for _, ip := range agenttest.List[api.IP](a, "ips") {
		if ip.Kind == "endpoint" {
			got["ip "+ip.Prefix] = fmt.Sprint(ip.Cluster, ip.Identity, ip.HostIP, ip.Namespace, ip.Pod)
		}
	}
	for _, s := range agenttest.List[api.Service](a, "services") {
		for _, b := range s.Backends {
			got[fmt.Sprintf("backend %s/%s %s %s", s.Namespace, s.Name, b.Cluster, b.IP)] = portsText(len(b.Ports), func(i int) uint16 { return b.Ports[i].Port })
		}
	}
	return got
}

// expected returns the simulated contents in the same form.
func expected(t *testing.T, m *sim.Mesh) map[string]string {
	t.Helper()
	want := map[string]string{}
	for _, r := range m.Clusters() {
		name := r.Cluster().Name
		for key, value := range r.Contents() {
			kind := strings.Split(key, "/")
			switch {
			case len(kind) < 3 || kind[1] != "state":
			case kind[2] == "nodes":
				var n wire.Node
				agenttest.Must(t, json.Unmarshal([]byte(value), &n))
				var addrs []api.NodeAddress
				for _, a := range n.IPAddresses {
					addrs = append(addrs, api.NodeAddress{Type: a.Type, IP: a.IP.String()})
				}
				var cidrs []string
				for _, c := range append([]*wire.CIDR{n.IPv4AllocCIDR}, n.IPv6AllocCIDR) {
					if c != nil {
						p, _ := c.Prefix()
						cidrs = append(cidrs, p.String())
					}
				}
				want["node "+name+"/"+n.Name] = fmt.Sprint(n.ClusterID, addrs, cidrs, n.Labels)
			case kind[2] == "identities":
				want["identity "+kind[len(kind)-1]] = fmt.Sprint(name, wire.ParseLabels(value).Map())
			case kind[2] == "ip":
				var p wire.IPIdentityPair
				agenttest.Must(t, json.Unmarshal([]byte(value), &p))
				want["ip "+p.IP.String()+"/32"] = fmt.Sprint(name, p.Identity, p.HostIP.String(), p.Namespace, p.Pod)
			case kind[2] == "services":
				var s wire.Service
				agenttest.Must(t, json.Unmarshal([]byte(value), &s))
				for ip, ports := range s.Backends {
					all := slices.Collect(maps.Values(ports))
					want[fmt.Sprintf("backend %s/%s %s %s", s.Namespace, s.Name, name, ip)] = portsText(len(all), func(i int) uint16 { return all[i].Port })
				}
			}
		}
	}
	return want
}

// portsText lists port numbers in their order.
func portsText(n int, port func(int) uint16) string {
	ports := make([]uint16, n)
	for i := range n {
		ports[i] = port(i)
	}
	slices.Sort(ports)
	return fmt.Sprint(ports)
}
