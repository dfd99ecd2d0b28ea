package servers

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// cluster is a remote cluster in a real etcd.
type cluster struct {
	tb   testing.TB
	name string
	id   uint32
	kv   *clientv3.Client
}

// numServices is the number of services of each cluster; the clusters share them.
const numServices = 20

// newCluster runs an etcd with a normal cluster, and writes its client file into the mesh directory.
func newCluster(tb testing.TB, dir, name string, id uint32) *cluster {
	tb.Helper()
	etcd := etcdtest.StartProcess(tb)
	c := &cluster{tb: tb, name: name, id: id, kv: etcd.Client(tb)}
	yes := true
	kvs := map[string][]byte{
		wire.HeartbeatKey: []byte(time.Now().Format(time.RFC3339)),
		wire.ClusterConfigKey(name): wire.ClusterConfig{ID: id, Capabilities: wire.Capabilities{
			MaxConnectedClusters: 255, SyncedCanaries: true, ServiceExportsEnabled: &yes, EndpointSlicesExportMode: wire.EndpointSlicesBoth,
		}}.Encode(),
	}
	for _, r := range wire.Resources() {
		kvs[wire.SyncedKey(name, r, false)] = []byte("now")
	}
	must(tb, c.write(kvs))
	for i := range numServices {
		must(tb, c.write(c.objects(i)))
	}
	file := filepath.Join(dir, name)
	must(tb, os.WriteFile(file+".tmp", []byte("endpoints:\n- "+etcd.Endpoint()+"\n"), 0o600))
	must(tb, os.Rename(file+".tmp", file))
	return c
}

// writeTime is how long etcd may take for a transaction.
const writeTime = time.Minute

// write writes keys, a few in each transaction.
func (c *cluster) write(kvs map[string][]byte) error {
	var ops []clientv3.Op
	size := 0
	for k, v := range kvs {
		ops = append(ops, clientv3.OpPut(k, string(v)))
		if size += len(k) + len(v); len(ops) == 100 || size > mib/2 {
			if err := c.commit(ops); err != nil {
				return err
			}
			ops, size = nil, 0
		}
	}
	return c.commit(ops)
}

func (c *cluster) commit(ops []clientv3.Op) error {
	if len(ops) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	_, err := c.kv.Txn(ctx).Then(ops...).Commit()
	return err
}

func (c *cluster) addr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(c.id), byte(i >> 8), byte(i)})
}

// objects are a node, a service with its slice and export, a pod and its identity.
func (c *cluster) objects(i int) map[string][]byte {
	kvs := make(map[string][]byte)
	node := wire.Node{
		Name: fmt.Sprint("node", i), Cluster: c.name, ClusterID: c.id, BootID: "boot",
		IPAddresses: []wire.NodeAddress{{Type: wire.AddressInternalIP, IP: net.IPv4(172, byte(c.id), byte(i>>8), byte(i))}},
		Labels:      map[string]string{"topology.kubernetes.io/zone": "a"},
	}
	kvs[node.Key()] = node.Encode()
	service := c.service(fmt.Sprint("svc", i), 8000)
	for n := range 3 {
		service.Backends[c.addr(i*4+n).String()] = wire.Ports{"http": {Protocol: "TCP", Port: 8000}}
	}
	kvs[service.Key()] = service.Encode()
	zone := "a"
	slice := wire.EndpointSlice{
		Cluster: c.name, ClusterID: c.id, Namespace: "ns", Name: service.Name + "-x", AddressType: wire.AddressTypeIPv4,
		Labels:    map[string]string{wire.LabelServiceName: service.Name},
		Endpoints: []wire.Endpoint{{Addresses: []string{c.addr(i * 4).String()}, NodeName: &node.Name, Zone: &zone}},
	}
	kvs[slice.Key()] = slice.Encode()
	export := wire.ServiceExport{
		Cluster: c.name, Namespace: "ns", Name: service.Name, Type: wire.ServiceExportClusterSetIP, SessionAffinity: wire.SessionAffinityNone,
		ExportCreationTimestamp: wire.ExportTime{Time: time.Unix(1.7e9, 0)}, Ports: []wire.ServiceExportPort{{Name: "http", Protocol: "TCP", Port: 80}},
	}
	kvs[export.Key()] = export.Encode()
	id := c.id<<16 + uint32(i) + 1
	kvs[wire.IdentityKey(id)] = fmt.Appendf(nil, "k8s:app=a%d;k8s:io.cilium.k8s.policy.cluster=%s;", i, c.name)
	pair := wire.NewHostPair(c.addr(i * 4))
	pair.Identity, pair.Pod, pair.Namespace = id, fmt.Sprint("pod", i), "ns"
	kvs[pair.Key()] = pair.Encode()
	return kvs
}

// service is a shared service without backends.
func (c *cluster) service(name string, port uint16) *wire.Service {
	return &wire.Service{
		Cluster: c.name, ClusterID: c.id, Namespace: "ns", Name: name, Shared: true, Labels: map[string]string{"app": name}, Selector: map[string]string{"app": name},
		Frontends: map[string]wire.Ports{"198.18.0.1": {"http": {Protocol: "TCP", Port: port}}}, Backends: map[string]wire.Ports{},
	}
}

// pulse is a service whose backend only the friendly cluster changes, repeatedly. The cluster's heartbeat is written at
// the same time.
const pulse = "pulse"

// writePulse writes its only backend, whose port is the number.
func (c *cluster) writePulse(port uint16) error {
	s := c.service(pulse, 80)
	s.Backends[c.addr(60000).String()] = wire.Ports{"http": {Protocol: "TCP", Port: port}}
	return c.write(map[string][]byte{s.Key(): s.Encode(), wire.HeartbeatKey: []byte(time.Now().Format(time.RFC3339))})
}
