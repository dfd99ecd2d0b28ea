package agent_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// visible is longer than the interval between two looks: an etcd that answers for longer than this was seen.
const visible = time.Second

// etcdOf is the etcd of a cluster that the test itself writes.
type etcdOf struct {
	t    *testing.T
	kv   *clientv3.Client
	name string
	id   uint32
}

func (e etcdOf) put(key string, value []byte) {
	e.t.Helper()
	if _, err := e.kv.Put(e.t.Context(), key, string(value)); err != nil {
		e.t.Fatal(err)
	}
}

func (e etcdOf) delete(keys ...string) {
	e.t.Helper()
	for _, key := range keys {
		if _, err := e.kv.Delete(e.t.Context(), key); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e etcdOf) configure() {
	exports := true
	e.put(wire.ClusterConfigKey(e.name), wire.ClusterConfig{ID: e.id, Capabilities: wire.Capabilities{
		MaxConnectedClusters: 255, ServiceExportsEnabled: &exports,
	}}.Encode())
}

func (e etcdOf) node(name, podCIDR string, address net.IP) (key string) {
	n := wire.Node{Name: name, Cluster: e.name, ClusterID: e.id, IPAddresses: []wire.NodeAddress{{Type: wire.AddressInternalIP, IP: address}}}
	if _, cidr, err := net.ParseCIDR(podCIDR); err == nil {
		n.IPv4AllocCIDR = (*wire.CIDR)(cidr)
	}
	key = wire.Nodes.Key(e.name, false, name)
	e.put(key, n.Encode())
	return key
}

func (e etcdOf) address(ip net.IP, identity uint32) (key string) {
	pair := wire.IPIdentityPair{IP: ip, Identity: identity}
	e.put(pair.Key(), pair.Encode())
	return pair.Key()
}

func (e etcdOf) identity(id uint32) (key string) {
	key = wire.Identities.Key(e.name, false, fmt.Sprint(id))
	e.put(key, fmt.Appendf(nil, "k8s:app=x;k8s:io.cilium.k8s.policy.cluster=%s;", e.name))
	return key
}

func (e etcdOf) service(port string) (key string) {
	s := wire.Service{
		Cluster: e.name, ClusterID: e.id, Namespace: "ns", Name: "web", Shared: true,
		Backends: map[string]wire.Ports{fmt.Sprintf("10.%d.9.9", e.id): {port: {Protocol: "TCP", Port: 80}}},
	}
	key = wire.Services.Key(e.name, false, "ns/web")
	e.put(key, s.Encode())
	return key
}

func (e etcdOf) export(affinity string, created int64) (key string) {
	x := wire.ServiceExport{
		Cluster: e.name, Namespace: "ns", Name: "web", ExportCreationTimestamp: wire.ExportTime{Time: time.Unix(created, 0)},
		Type: wire.ServiceExportClusterSetIP, SessionAffinity: affinity,
	}
	e.put(x.Key(), x.Encode())
	return x.Key()
}

// TestEachKindOfConflictIsSeen: each is made in real etcds, listed by a whole agent, and gone when it is resolved.
func TestEachKindOfConflictIsSeen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(from *etcdtest.Server, name string) func() {
		text, err := os.ReadFile(from.ConfigFile(t))
		agenttest.Must(t, err)
		path := filepath.Join(dir, name)
		agenttest.Must(t, os.WriteFile(path, text, 0o600))
		return func() { _ = os.Remove(path) }
	}
	s2, s3 := etcdtest.Start(t), etcdtest.Start(t)
	c2, c3 := etcdOf{t, s2.Client(t), "c2", 2}, etcdOf{t, s3.Client(t), "c3", 3}
	c2.configure()
	c3.configure()
	etcdOf{t, c3.kv, "c5", 2}.configure() // its client file does not exist yet
	file(s2, "c2")
	file(s3, "c3")
	c2.node("n", "10.2.0.0/16", net.IPv4(192, 168, 2, 1))
	c2.service("http")
	c2.export(wire.SessionAffinityClientIP, 200)
	c2.address(net.IPv4(10, 2, 0, 9), 2<<16)
	c2.identity(2<<16 + 7)
	a, _ := agenttest.InProcess(t, map[string]string{"clustermesh-config": dir, "cluster-name": "own", "cluster-id": "250"})
	a.Until("both clusters", func() bool { return slices.Equal(a.ReadyClusters(), []string{"c2", "c3"}) })
	var removeFile func()
	for _, test := range []struct {
		want, code string
		create     func()
		resolve    func()
	}{
		{"ip/10.2.0.9/32 c2,c3", "MESH-3101", func() { c3.address(net.IPv4(10, 2, 0, 9), 3<<16) }, func() { c3.delete("cilium/state/ip/v1/default/10.2.0.9") }},
		{"node-ip/192.168.2.1/32 c2,c3", "MESH-3103", func() { c3.node("a", "", net.IPv4(192, 168, 2, 1)) }, func() { c3.delete(wire.Nodes.Key("c3", false, "a")) }},
		{"node-ip/10.2.0.0/16 c3,c2", "MESH-3103", func() { c3.node("b", "", net.IPv4(10, 2, 3, 4)) }, func() { c3.delete(wire.Nodes.Key("c3", false, "b")) }},
		{"pod-cidr/10.2.0.0/16 c2,c3", "MESH-3102", func() { c3.node("c", "10.2.0.0/16", net.IPv4(192, 168, 3, 1)) }, func() { c3.delete(wire.Nodes.Key("c3", false, "c")) }},
		{"pod-cidr/10.0.0.0/8 c2,c3", "MESH-3102", func() { c3.node("d", "10.0.0.0/8", net.IPv4(192, 168, 3, 2)) }, func() { c3.delete(wire.Nodes.Key("c3", false, "d")) }},
		{"identity/c3 c3", "MESH-4101", func() { c3.identity(2<<16 + 9) }, func() { c3.delete(wire.Identities.Key("c3", false, fmt.Sprint(2<<16+9))) }},
		{"identity/c2/131079 c2", "MESH-4102", func() { c2.identity(2<<16 + 8) }, func() { c2.delete(wire.Identities.Key("c2", false, fmt.Sprint(2<<16+8))) }},
		{"service-port/ns/web c2,c3", "MESH-2151", func() { c3.service("web") }, func() { c3.service("http") }},
		{"service-affinity/ns/web c3,c2", "MESH-2152", func() { c3.export(wire.SessionAffinityNone, 100) }, func() { c3.export(wire.SessionAffinityClientIP, 100) }},
		{"cluster-id/2 c2,c5", "MESH-1101", func() { removeFile = file(s3, "c5") }, func() { removeFile() }},
	} {
		began := time.Now()
		test.create()
		a.Until(test.want, func() bool { return slices.Contains(a.Conflicts(), test.code+" "+test.want) })
		t.Logf("%s: seen after %s", test.want, time.Since(began).Round(time.Millisecond))
		test.resolve()
		a.Until(test.want+" to be over", func() bool { return len(a.Conflicts()) == 0 })
	}
}

// TestANameThatTwoClustersAnswerTo: the endpoints of one client file lead to two
// clusters, and the connection goes from one to the other and back.
func TestANameThatTwoClustersAnswerTo(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	one, other := etcdtest.StartProcess(t), etcdtest.StartProcess(t)
	for id, s := range map[uint32]*etcdtest.Process{2: one, 3: other} {
		etcdOf{t, s.Client(t), "c2", id}.configure()
	}
	text := fmt.Sprintf("endpoints:\n- %s\n- %s\n", one.Endpoint(), other.Endpoint())
	agenttest.Must(t, os.WriteFile(filepath.Join(dir, "c2"), []byte(text), 0o600))
	a, _ := agenttest.InProcess(t, map[string]string{"clustermesh-config": dir, "cluster-name": "own", "cluster-id": "250"})
	// The etcd that answers, once it has answered for longer than the interval between two looks: a shorter time may
	// not be seen.
	var answering string
	var since time.Time
	answers := func(some ...*etcdtest.Process) func() bool {
		return func() bool {
			now := ""
			for _, c := range agenttest.List[api.Cluster](a, "clusters") {
				if c.Ready {
					now = c.EtcdClusterID
				}
			}
			if now != answering {
				answering, since = now, time.Now()
			}
			return time.Since(since) > visible && slices.ContainsFunc(some, func(s *etcdtest.Process) bool { return now == fmt.Sprintf("%x", s.ClusterID()) })
		}
	}
	a.Until("an answer", answers(one, other))
	if answers(other)() {
		one, other = other, one
	}
	one.Kill(t)
	a.Until("the other one's answer", answers(other))
	if found := a.Conflicts(); len(found) > 0 {
		t.Errorf("an etcd that was replaced by another one: %v", found)
	}
	one.Restart(t)
	other.Kill(t)
	a.Until("the first one's answer, for a second", answers(one))
	if found := a.Conflicts(); !slices.Equal(found, []string{"MESH-1102 cluster-name/c2 c2"}) {
		t.Errorf("after a second: %v", found)
	}
}

// TestAMirrorKeepsToTheClaimPolicy as an agent does: a cluster whose ID is not the one in the policy file is not
// copied, until the file is changed. The IDs of the clusters are remembered over a restart.
func TestAMirrorKeepsToTheClaimPolicy(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.Start(t)
	mesh, state, policy := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "policy.yaml")
	client := func(name, content string) {
		agenttest.Must(t, os.WriteFile(filepath.Join(mesh, name), []byte(content), 0o600))
	}
	of := func(name string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(meshtest.Run(t, contents.Default(name, 3)).Dir(), name))
		agenttest.Must(t, err)
		return string(content)
	}
	pin := func(content string) { agenttest.Must(t, os.WriteFile(policy, []byte(content), 0o600)) }
	start := func() *agenttest.Process {
		return agenttest.StartMode(t, config.ModeMirror, nil, "--clustermesh-config", mesh, "--cluster-name", "own", "--cluster-id", "9",
			"--kvstore-opt", "etcd.address="+etcd.Endpoint(), "--claim-policy-file", policy, "--state-dir", state)
	}
	shows := func(a *agenttest.Process, name string, want codes.Code) {
		t.Helper()
		a.Until(name+" to show "+string(want), func() bool {
			for _, c := range a.Status().Clusters {
				if c.Name == name {
					return want == "" && c.Well() || want != "" && c.Code == string(want)
				}
			}
			return false
		})
	}
	copied := func(name string) bool {
		resp, err := etcd.Client(t).Get(t.Context(), wire.ClusterConfigKey(name))
		agenttest.Must(t, err)
		return len(resp.Kvs) > 0
	}

	client("paris", of("paris"))
	pin("clusters: {paris: {id: 7}}")
	a := start()
	shows(a, "paris", codes.ClusterIDNotPinned)
	if copied("paris") {
		t.Error("a configuration with another ID than the pinned one is copied")
	}
	pin("clusters: {paris: {id: 3}}")
	shows(a, "paris", "")
	a.Stop()

	pin("default: allow")
	client("paris", "endpoints:\n- http://127.0.0.1:1\n") // it is unreachable
	client("evil", of("evil"))
	b := start()
	shows(b, "evil", codes.ClusterIDRemembered)
	if copied("evil") {
		t.Error("a cluster with the ID of one that is away is copied")
	}
}
