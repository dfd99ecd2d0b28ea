package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/buildtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// publishing is a cluster with an API server as its description: an etcd, and the processes that write to it.
type publishing struct {
	*world
	etcd    *etcdtest.Process
	program string
	dir     string
	cluster string // its name
	id      int
}

func newPublishing(t *testing.T) *publishing {
	t.Helper()
	return newCluster(t, "east", 3)
}

func newCluster(t *testing.T, name string, id int) *publishing {
	t.Helper()
	return &publishing{world: newWorld(t), etcd: etcdtest.StartProcess(t), program: buildtest.Agent(t), dir: t.TempDir(), cluster: name, id: id}
}

// start runs mesh-agent in a mode until the end of the test.
func (p *publishing) start(t *testing.T, mode string, flags ...string) {
	t.Helper()
	cmd := exec.Command(p.program, append([]string{
		mode, "--cluster-name", p.cluster, "--cluster-id", strconv.Itoa(p.id), "--kvstore-opt", "etcd.address=" + p.etcd.Endpoint(),
		"--kubeconfig", p.Kubeconfig(t, p.gate.Addr(), kubetest.Admin), "--clustermesh-config", p.dir,
		"--listen", "127.0.0.1:0", "--socket", filepath.Join(p.dir, mode+".sock"),
	}, flags...)...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	waittest.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait reports
		if err := cmd.Wait(); err != nil {
			t.Errorf("mesh-agent %s: %v", mode, err)
		}
	})
}

// contents are the keys of the etcd with their values, except for values that are times, and keys of locks.
func (p *publishing) contents(t *testing.T) map[string]string {
	t.Helper()
	resp, err := p.etcd.Client(t).Get(t.Context(), "cilium/", clientv3.WithPrefix())
	waittest.Must(t, err)
	all := map[string]string{}
	for _, kv := range resp.Kvs {
		key := string(kv.Key)
		if key == wire.HeartbeatKey || strings.HasPrefix(key, wire.SyncedPrefix) || strings.HasPrefix(key, wire.OperatorLockPath) || strings.Contains(key, "/locks/") {
			continue
		}
		all[key] = string(kv.Value)
	}
	return all
}

// awaitKeys waits until the etcd has these keys; NUMBER stands for the identity of
// a pod, LABELS for its labels.
func (p *publishing) awaitKeys(t *testing.T, what string, want ...string) map[string]string {
	t.Helper()
	var got map[string]string
	var diff string
	defer func() {
		if t.Failed() {
			t.Log(diff)
		}
	}()
	p.until(t, what, func() bool {
		got = p.contents(t)
		keys := slices.Sorted(maps.Keys(got))
		for i, key := range keys {
			if strings.HasPrefix(key, "cilium/state/identities/v1/id/") {
				keys[i] = "cilium/state/identities/v1/id/NUMBER"
			}
			if rest, is := strings.CutPrefix(key, references); is {
				keys[i] = references + "LABELS" + rest[strings.LastIndexByte(rest, '/'):]
			}
		}
		diff = cmp.Diff(want, keys)
		return diff == ""
	})
	return got
}

// references is the prefix of the references of nodes to identities.
const references = "cilium/state/identities/v1/value/"

// TestWhatKubernetesHasIsPublished: the operator publishes services in both formats, the agent its node and the
// addresses of its pods with their identities. Changes and deletions are published too, and nothing is written because
// the API server was unreachable.
func TestWhatKubernetesHasIsPublished(t *testing.T) {
	t.Parallel()
	p := newPublishing(t)
	p.Apply(t, service("web", 80), slice("web-1", "web", "10.1.0.1"), node("node-1", "192.168.0.1", "2026-01-01T00:00:00Z"),
		pod("one", "node-1", "10.1.0.1"), pod("elsewhere", "node-2", "10.2.0.1"))
	p.start(t, "operate")
	p.start(t, "run", "--node-name", "node-1", "--node-ip", "192.168.0.1")
	all := []string{
		"cilium/cluster-config/east",
		"cilium/state/endpointslices/v1/east/default/web-1",
		"cilium/state/identities/v1/id/NUMBER",
		references + "LABELS/192.168.0.1",
		"cilium/state/ip/v1/default/10.1.0.1",
		"cilium/state/nodes/v1/east/node-1",
		"cilium/state/services/v1/east/default/web",
	}
	got := p.awaitKeys(t, "everything is published", all...)
	var number string
	for key, value := range got {
		if labels, is := strings.CutPrefix(key, references); is {
			number = value
			labels = labels[:strings.LastIndexByte(labels, '/')]
			if got["cilium/state/identities/v1/id/"+number] == "" || !strings.HasPrefix(labels, "k8s:app=one;") || !strings.Contains(labels, "k8s:io.kubernetes.pod.namespace=default") {
				t.Errorf("identity %s is %q, its reference %q", number, got["cilium/state/identities/v1/id/"+number], labels)
			}
		}
	}
	var ip wire.IPIdentityPair
	if err := json.Unmarshal([]byte(got[all[4]]), &ip); err != nil || fmt.Sprint(ip.Identity) != number || ip.HostIP.String() != "192.168.0.1" || ip.Pod != "one" {
		t.Errorf("%s is %s, %v", all[4], got[all[4]], err)
	}
	expect := wire.Expect{Cluster: "east", ClusterID: 3, Layout: layout(t)}
	if s, err := wire.DecodeService("default/web", []byte(got[all[6]]), expect); err != nil || s.Backends["10.1.0.1"] == nil || !s.Shared {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := wire.DecodeEndpointSlice("default/web-1", []byte(got[all[1]]), expect); err != nil || s.Endpoints[0].Addresses[0] != "10.1.0.1" {
		t.Errorf("%+v, %v", s, err)
	}
	if n, err := wire.DecodeNode("node-1", []byte(got[all[5]]), expect); err != nil || n.IPAddresses[0].IP.String() != "192.168.0.1" {
		t.Errorf("%+v, %v", n, err)
	}

	p.Apply(t, slice("web-1", "web", "10.1.0.9"))
	p.until(t, "a change follows", func() bool { return strings.Contains(p.contents(t)[all[6]], "10.1.0.9") })

	before := p.revisions(t)
	p.Kill(t)
	p.Restart(t)
	p.Apply(t, service("late", 80)) // once this is published, operate has read all other objects again
	p.awaitKeys(t, "what comes after a restart follows", slices.Insert(slices.Clone(all), 6, "cilium/state/services/v1/east/default/late")...)
	for key, rev := range p.revisions(t) {
		if was, has := before[key]; has && was != rev {
			t.Errorf("%s was written because the API server was away", key)
		}
	}
	p.Delete(t, service("late", 80), slice("web-1", "web", "10.1.0.9"), service("web", 80), pod("one", "node-1", "10.1.0.1"))
	p.awaitKeys(t, "deletions follow", all[0], all[2], all[5]) // the identity is left to garbage collection
	p.Delete(t, node("node-1", "192.168.0.1", "2026-01-01T00:00:00Z"))
	p.awaitKeys(t, "the node goes", all[0], all[2])
}

// revisions are the revisions of the last write of each key.
func (p *publishing) revisions(t *testing.T) map[string]int64 {
	t.Helper()
	resp, err := p.etcd.Client(t).Get(t.Context(), "cilium/state/", clientv3.WithPrefix())
	waittest.Must(t, err)
	all := map[string]int64{}
	for _, kv := range resp.Kvs {
		all[string(kv.Key)] = kv.ModRevision
	}
	return all
}

func layout(t *testing.T) wire.Layout {
	t.Helper()
	l, err := wire.NewLayout(255)
	waittest.Must(t, err)
	return l
}
