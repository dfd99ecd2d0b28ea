package monitoring

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// readingAlerts fire while all possible faults of clusters exist at once.
func readingAlerts() []string {
	return []string{
		"MeshClusterUnreachable demoted", "MeshClusterUnreachable withdrawn", "MeshClusterDemoted demoted", "MeshClusterWithdrawn withdrawn",
		"MeshClusterHeartbeatMissing silent", "MeshClusterCertificateExpired expiring", "MeshClusterCertificateEndsSoon expiring", "MeshClusterCertificateEnds aging", "MeshClusterNextConnectionFails mismatched", "MeshClusterNotWritten unwritten", "MeshClusterNotSynced walled",
		"MeshClusterUnusable double", "MeshClusterIDConflict cluster-id",
		"MeshEntriesRefused claiming", "MeshBudgetExceeded large",
		"MeshAddressConflict ip", "MeshClaimConflict claim", "MeshIdentityConflict identity", "MeshServiceConflict service-port",
		"MeshFilesIgnored", "MeshDirectoryUnreadable", paced,
	}
}

const paced = "MeshEventsPaced fast"

// small is a simulated cluster.
func small(name string, id uint32) contents.Cluster {
	c := contents.Default(name, id)
	c.Nodes, c.Services, c.Identities, c.Addresses = 2, 2, 4, 10
	return c
}

// reading is an agent with clusters, each named after its later fault.
type reading struct {
	t      *testing.T
	mesh   *sim.Mesh
	walled *etcdtest.Server
}

func (w *reading) cluster(name string) *sim.Running {
	w.t.Helper()
	r, err := w.mesh.Cluster(name)
	must(w.t, err)
	return r
}

func (w *reading) put(cluster, key string, value []byte) {
	w.t.Helper()
	must(w.t, w.cluster(cluster).Put(w.t.Context(), key, value))
}

func newReading(t *testing.T) *reading {
	t.Helper()
	var all []contents.Cluster
	for i, name := range []string{"demoted", "withdrawn", "silent", "expiring", "unwritten", "double", "claiming", "large", "fast", "aging", "mismatched", "well"} {
		all = append(all, small(name, uint32(i+1)))
	}
	w := &reading{t: t, mesh: meshtest.Run(t, all...), walled: etcdtest.Start(t)}
	w.walled.Put(t, wire.ClusterConfigKey("walled"), string(wire.ClusterConfig{ID: 20, Capabilities: wire.Capabilities{MaxConnectedClusters: 255}}.Encode()))
	w.walled.EnableAuth(t, etcdtest.User{Name: "remote", Password: "secret", Role: []etcdtest.Range{
		{Key: "cilium/cluster-config/", End: "cilium/cluster-config0"}, {Key: wire.HeartbeatKey}, {Key: "cilium/state/nodes/", End: "cilium/state/nodes0"},
	}})
	root := w.walled.ClientAs(t, "root", "root")
	again(t, 10*time.Second, func(ctx context.Context) {
		_, _ = root.Put(ctx, wire.HeartbeatKey, time.Now().Format(time.RFC3339)) // the test may be over
	})
	// It expires after the start; until then the agent would not read another certificate for minutes.
	must(t, w.mesh.Certify(w.cluster("expiring"), time.Minute))
	return w
}

// breakAll makes all faults at once.
func (w *reading) breakAll() {
	ctx := w.t.Context()
	must(w.t, w.cluster("demoted").Kill())
	must(w.t, w.cluster("withdrawn").Kill())
	must(w.t, w.cluster("silent").SetHeartbeat(ctx, false))
	must(w.t, w.cluster("unwritten").Delete(ctx, wire.ClusterConfigKey("unwritten")))
	client, err := os.ReadFile(w.walled.ConfigFile(w.t, "username: remote", "password: secret"))
	must(w.t, err)
	programtest.Write(w.t, w.mesh.Dir(), "walled", string(client))

	must(w.t, w.mesh.Certify(w.cluster("aging"), 20*24*time.Hour))
	must(w.t, os.WriteFile(w.keyFile("mismatched"), []byte("no key"), 0o600))

	taken := w.cluster("well").Cluster()
	w.put("double", wire.ClusterConfigKey("double"), wire.ClusterConfig{ID: taken.ID, Capabilities: wire.Capabilities{MaxConnectedClusters: 255}}.Encode())

	_, err = w.cluster("claiming").Malform(ctx, "nodes")
	must(w.t, err)
	_, _, err = w.mesh.Claim(ctx, w.cluster("claiming"), w.cluster("well").Sample().Pod)
	must(w.t, err)
	id, labels := w.identity("claiming")
	w.put("claiming", wire.Identities.Key("claiming", false, fmt.Sprint(7<<16+60000)), labels)
	pair := wire.IPIdentityPair{IP: net.IPv4(10, 250, 0, 1), Identity: id}
	w.put("claiming", pair.Key(), pair.Encode())
	w.service("claiming", "http")
	w.service("well", "web")
	for i := range 40 {
		pair := wire.IPIdentityPair{IP: net.IPv4(10, 8, 200, byte(i)), Identity: 8 << 16}
		w.put("large", pair.Key(), pair.Encode())
	}
	programtest.Write(w.t, w.mesh.Dir(), "not_a_cluster", "endpoints: [http://127.0.0.1:1]\n")
}

// mendAll repairs all faults.
func (w *reading) mendAll() {
	ctx := w.t.Context()
	must(w.t, os.Remove(filepath.Join(w.mesh.Dir(), "not_a_cluster")))
	must(w.t, w.cluster("fast").SetChurn(0))
	must(w.t, w.cluster("demoted").Start(ctx))
	must(w.t, w.cluster("withdrawn").Start(ctx))
	must(w.t, w.cluster("silent").SetHeartbeat(ctx, true))
	for _, name := range []string{"expiring", "aging", "mismatched"} {
		must(w.t, w.mesh.Certify(w.cluster(name), 365*24*time.Hour))
	}
	_, err := w.walled.ClientAs(w.t, "root", "root").RoleGrantPermission(ctx, "remote", "cilium/", "cilium0", clientv3.PermissionType(clientv3.PermRead))
	must(w.t, err)
	for _, name := range []string{"unwritten", "double", "claiming", "well", "large"} {
		_, err := w.cluster(name).Mend(ctx)
		must(w.t, err)
	}
}

// keyFile is the file of the client's key for a cluster.
func (w *reading) keyFile(cluster string) string {
	w.t.Helper()
	text, err := os.ReadFile(w.mesh.ClientFile(w.cluster(cluster)))
	must(w.t, err)
	var file struct {
		Key string `json:"key-file"`
	}
	must(w.t, yaml.Unmarshal(text, &file))
	return file.Key
}

// identity is an identity of a cluster, with its value.
func (w *reading) identity(cluster string) (id uint32, labels []byte) {
	w.t.Helper()
	all := w.cluster(cluster).Contents()
	prefix := wire.Identities.Prefix(cluster, false)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if number, is := strings.CutPrefix(key, prefix); is {
			_, err := fmt.Sscan(number, &id)
			must(w.t, err)
			return id, []byte(all[key])
		}
	}
	w.t.Fatalf("%s has no identities", cluster)
	return 0, nil
}

// service lets a cluster share a service whose port has this name.
func (w *reading) service(cluster, port string) {
	w.t.Helper()
	c := w.cluster(cluster).Cluster()
	s := wire.Service{
		Cluster: cluster, ClusterID: c.ID, Namespace: "shop", Name: "clash", Shared: true,
		Frontends: map[string]wire.Ports{"198.18.0.1": {port: {Protocol: "TCP", Port: 80}}},
		Backends:  map[string]wire.Ports{fmt.Sprintf("10.%d.9.9", c.ID): {port: {Protocol: "TCP", Port: 80}}},
	}
	w.put(cluster, s.Key(), s.Encode())
}

// TestReading: each problem of a cluster has its alert, which resolves after the repair.
func TestReading(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "prometheus")
	w := newReading(t)
	api, other, later := programtest.Reserve(t), programtest.Reserve(t), filepath.Join(t.TempDir(), "mesh")
	flags := []string{
		"--cluster-name", "home", "--cluster-id", "99", "--pod-cidr", "10.250.0.0/16", "--remote-budget", "large.ips.keys=30,fast.events=10",
		"--disconnect-policy", "demoted.demote=1m,demoted.withdraw=0,withdrawn.demote=1m,withdrawn.withdraw=1m",
	}
	agenttest.StartAgent(t, w.mesh.Dir(), append([]string{"--listen", api}, flags...)...)
	must(t, os.Mkdir(later, 0o755))
	agenttest.StartAgent(t, later, "--listen", other)
	p := startPrometheus(t, target{"mesh-agent", api}, target{"mesh-agent-without-clusters", other})
	p.scraped(2)
	w.breakAll()
	must(t, os.Remove(later))
	all := readingAlerts()
	p.fire(all[:len(all)-1]...)
	must(t, w.cluster("fast").SetChurn(20)) // last: with churn, the pending changes are read only slowly
	p.fire(all...)
	w.mendAll()
	must(t, os.Mkdir(later, 0o755))
	p.resolve()
}

// nameAlerts fire while two clusters use one name.
func nameAlerts() []string { return []string{"MeshClusterNameConflict cluster-name"} }

// TestTwoClustersAnswerToOneName: they do so in turn.
func TestTwoClustersAnswerToOneName(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "prometheus")
	dir, one, other := t.TempDir(), etcdtest.StartProcess(t), etcdtest.StartProcess(t)
	for id, s := range map[uint32]*etcdtest.Process{2: one, 3: other} {
		s.Put(t, wire.ClusterConfigKey("c2"), string(wire.ClusterConfig{ID: id, Capabilities: wire.Capabilities{MaxConnectedClusters: 255}}.Encode()))
	}
	programtest.Write(t, dir, "c2", fmt.Sprintf("endpoints:\n- %s\n- %s\n", one.Endpoint(), other.Endpoint()))
	api := programtest.Reserve(t)
	a := agenttest.StartAgent(t, dir, "--listen", api, "--cluster-name", "home", "--cluster-id", "99")
	p := startPrometheus(t, target{"mesh-agent", api})
	p.scraped(1)
	// Each answers for longer than the interval between two looks.
	answers := func(s *etcdtest.Process) {
		t.Helper()
		since := time.Now()
		a.Until("the answer of one of them", func() bool {
			c := a.Status().Clusters
			if len(c) != 1 || !c[0].Ready || c[0].EtcdClusterID != fmt.Sprintf("%x", s.ClusterID()) {
				since = time.Now()
			}
			return time.Since(since) > time.Second
		})
	}
	other.Kill(t)
	answers(one)
	other.Restart(t)
	one.Kill(t)
	answers(other)
	one.Restart(t)
	other.Kill(t)
	p.fire(nameAlerts()...)
	programtest.Write(t, dir, "c2", fmt.Sprintf("endpoints:\n- %s\n", one.Endpoint()))
	p.resolve()
}
