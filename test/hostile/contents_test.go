package hostile

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// cluster has the contents of a cluster: objects, each with a number that is visible in every resource.
type cluster struct {
	name  string
	id    uint32
	write func(map[string][]byte) // writes keys

	mu      sync.Mutex
	objects map[int]int // guarded by mu; the number of each
}

func newCluster(name string, id uint32, write func(map[string][]byte)) *cluster {
	return &cluster{name: name, id: id, write: write, objects: make(map[int]int)}
}

// fill writes the configuration, the canaries, and objects.
func (c *cluster) fill(objects int) {
	yes := true
	kvs := map[string][]byte{
		wire.HeartbeatKey: []byte(time.Now().Format(time.RFC3339)),
		wire.ClusterConfigKey(c.name): wire.ClusterConfig{ID: c.id, Capabilities: wire.Capabilities{
			MaxConnectedClusters: 255, SyncedCanaries: true, ServiceExportsEnabled: &yes, EndpointSlicesExportMode: wire.EndpointSlicesBoth,
		}}.Encode(),
	}
	for _, r := range wire.Resources() {
		kvs[wire.SyncedKey(c.name, r, false)] = []byte("now")
	}
	c.write(kvs)
	for i := range objects {
		c.show(i, 1)
	}
}

func (c *cluster) addr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(c.id), byte(i >> 8), byte(i)})
}

// show writes an object of each resource.
func (c *cluster) show(i, n int) {
	kvs := make(map[string][]byte)
	node := wire.Node{
		Name: fmt.Sprint("node", i), Cluster: c.name, ClusterID: c.id, BootID: fmt.Sprint("boot", n),
		IPAddresses: []wire.NodeAddress{{Type: wire.AddressInternalIP, IP: net.IPv4(172, byte(c.id), byte(i>>8), byte(i))}},
	}
	kvs[node.Key()] = node.Encode()
	service := wire.Service{
		Cluster: c.name, ClusterID: c.id, Namespace: "ns", Name: fmt.Sprint("svc", i), Shared: true,
		Backends: map[string]wire.Ports{c.addr(i).String(): {"http": {Protocol: "TCP", Port: uint16(8000 + n%1000)}}},
	}
	kvs[service.Key()] = service.Encode()
	text := fmt.Sprint(n)
	slice := wire.EndpointSlice{
		Cluster: c.name, ClusterID: c.id, Namespace: "ns", Name: fmt.Sprint("svc", i, "-x"), AddressType: wire.AddressTypeIPv4,
		Labels:    map[string]string{wire.LabelServiceName: service.Name},
		Endpoints: []wire.Endpoint{{Addresses: []string{c.addr(i).String()}, NodeName: &text}},
	}
	kvs[slice.Key()] = slice.Encode()
	export := wire.ServiceExport{
		Cluster: c.name, Namespace: "ns", Name: service.Name, Type: wire.ServiceExportHeadless, SessionAffinity: wire.SessionAffinityNone,
		ExportCreationTimestamp: wire.ExportTime{Time: time.Unix(int64(n), 0)},
	}
	kvs[export.Key()] = export.Encode()
	id := c.id<<16 + uint32(i) + 1
	kvs[wire.IdentityKey(id)] = fmt.Appendf(nil, "k8s:app=a%d;k8s:io.cilium.k8s.policy.cluster=%s;", n, c.name)
	pair := wire.NewHostPair(c.addr(i))
	pair.Identity, pair.Pod, pair.Namespace = id, fmt.Sprint("pod", n), "ns"
	kvs[pair.Key()] = pair.Encode()
	c.mu.Lock() // also while it is written: the last one wins in both
	defer c.mu.Unlock()
	c.objects[i] = n
	c.write(kvs)
}

// wanted is the contents that the view must have of the cluster.
func (c *cluster) wanted() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]string)
	for i, n := range c.objects {
		all[fmt.Sprint("node node", i)] = fmt.Sprint("boot", n)
		all[fmt.Sprint("service ns/svc", i)] = fmt.Sprint(c.addr(i), " ", 8000+n%1000)
		all[fmt.Sprint("identity ", c.id<<16+uint32(i)+1)] = fmt.Sprintf("k8s:app=a%d;k8s:io.cilium.k8s.policy.cluster=%s;", n, c.name)
		all[fmt.Sprint("ip ", c.addr(i))] = fmt.Sprint("pod", n)
	}
	return all
}

// shown is the contents that the view has of a cluster.
func (w *world) shown(cluster string) map[string]string {
	all := make(map[string]string)
	txn := w.db.ReadTxn()
	for n := range nodes.ByCluster(txn, w.view.Nodes.Table(), cluster) {
		all["node "+n.Name] = n.BootID
	}
	for s := range services.ByCluster(txn, w.view.Services.Exported(), cluster) {
		var text []string
		for _, b := range s.Backends {
			text = append(text, fmt.Sprint(b.IP, " ", b.Ports[0].Port))
		}
		slices.Sort(text)
		all["service "+s.FullName()] = strings.Join(text, ", ")
	}
	for id := range identities.ByCluster(txn, w.view.Identities.Table(), cluster) {
		all[fmt.Sprint("identity ", id.ID)] = id.Labels.Wire().Encode()
	}
	for e := range w.view.IPs.Snapshot().From(netip.Prefix{}) {
		if e.Cluster().Name == cluster && e.Kind() == ipcache.KindHost {
			all["ip "+e.Prefix().Addr().String()] = e.Pod()
		}
	}
	return all
}

// equal reports whether the view has the contents of the cluster.
func (w *world) equal(c *cluster) bool { return maps.Equal(c.wanted(), w.shown(c.name)) }
