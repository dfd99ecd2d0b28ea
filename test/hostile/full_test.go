package hostile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/buildtest"
	"github.com/mesh-agent/mesh-agent/simtest/heaptest"
)

// oversizedCluster is the contents of a cluster that are valid and within its budget, but need more memory than there
// is.
type oversizedCluster struct {
	name string
	keys int
	one  func(c *cluster, i int) (r wire.Resource, name, value string)
}

func oversized() []oversizedCluster {
	return []oversizedCluster{
		{"services of 60,000 backends", 60, func(c *cluster, i int) (wire.Resource, string, string) {
			var b strings.Builder
			for n := range 60_000 {
				fmt.Fprintf(&b, `,"10.%d.%d.%d":{}`, c.id, n>>8, n&255)
			}
			return wire.Services, fmt.Sprint("ns/s", i), fmt.Sprintf(`{"cluster":%q,"clusterID":%d,"namespace":"ns","name":"s%d","shared":true,"backends":{%s}}`, c.name, c.id, i, b.String()[1:])
		}},
		{"nodes of 512 networks", 2000, func(c *cluster, i int) (wire.Resource, string, string) {
			networks := func(v6 bool) string {
				var b strings.Builder
				for n := range 255 {
					k := i*256 + n
					if v6 {
						fmt.Fprintf(&b, `,{"IP":"fd00:%x:%x::","Mask":"////////////////////////"}`, k>>16, k&0xffff)
					} else {
						fmt.Fprintf(&b, `,{"IP":"100.%d.%d.%d","Mask":"/////w=="}`, 64+k>>16&63, k>>8&255, k&255)
					}
				}
				return b.String()[1:]
			}
			return wire.Nodes, fmt.Sprint("n", i), fmt.Sprintf(`{"Name":"n%d","Cluster":%q,"ClusterID":%d,"IPAddresses":[{"Type":"InternalIP","IP":"172.99.%d.%d"}],"IPv4SecondaryAllocCIDRs":[%s],"IPv6SecondaryAllocCIDRs":[%s]}`,
				i, c.name, c.id, i>>8, i&255, networks(false), networks(true))
		}},
		{"identities of 200 labels", 30_000, func(c *cluster, i int) (wire.Resource, string, string) {
			var b strings.Builder
			fmt.Fprintf(&b, "k8s:io.cilium.k8s.policy.cluster=%s;", c.name)
			for n := range 200 {
				fmt.Fprintf(&b, "k8s:label-%d-%d=value-%d;", i, n, n)
			}
			return wire.Identities, fmt.Sprint(c.id<<16 + 1000 + uint32(i)), b.String()
		}},
		{"800,000 addresses", 800_000, func(c *cluster, i int) (wire.Resource, string, string) {
			ip := fmt.Sprintf("%d.%d.%d.%d", 20+i>>24, i>>16&255, i>>8&255, i&255)
			return wire.IPs, ip, fmt.Sprintf(`{"IP":%q,"HostIP":"1.2.3.4","ID":%d,"K8sNamespace":"namespace","K8sPodName":"pod-%d"}`, ip, c.id<<16+300, i)
		}},
	}
}

// TestFull: an agent with 512 MiB, and a cluster whose valid entries, within its budget, would need more than that.
// Entries above the memory limit are refused, with their code, and the honest clusters are followed, each within its
// share.
func TestFull(t *testing.T) {
	if testing.Short() || heaptest.Raced { // the agent is a separate process, which the race detector does not see
		t.Skip("long: make test-all, where it runs without the race detector")
	}
	program := buildtest.Agent(t)
	for _, of := range oversized() {
		t.Run(of.name, func(t *testing.T) {
			w := &remotes{tb: t, dir: t.TempDir()}
			c1, e1 := w.honestCluster("c1", 1)
			h, s := w.hostileCluster(t)
			all := make(map[string][]byte)
			for i := range of.keys {
				r, name, value := of.one(h, i)
				all[r.Key(h.name, false, name)] = []byte(value)
			}
			s.put(all)
			all = nil
			w.join(h, s.endpoint())
			a := startAgent(t, program, w.dir)
			a.until("the memory to be full", func() bool {
				return a.failed() || a.clusters()[h.name].Code == string(codes.OverMemory)
			})
			if !a.failed() { // a cluster that joins late has its share
				w.join(c1, e1)
				a.ready(c1, 60)
				c1.show(60, 1)
				a.ready(c1, 61)
			}
			st := a.clusters()[h.name]
			t.Logf("%s: %s %.300q, %+v", st.State, st.Code, st.Message, st.Counts)
		})
	}
}
