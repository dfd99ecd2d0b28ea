package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// writingAlerts fire while the own etcd is unreachable.
func writingAlerts() []string { return []string{"MeshNoLeader operate", "MeshNoLeader mirror"} }

// fullAlerts fire while the own etcd is full.
func fullAlerts() []string {
	return []string{"MeshMirrorFilling", "MeshMirrorStopped", "MeshWritesBehind"}
}

// rightsAlerts fire while the user lacks the rights to write everything.
func rightsAlerts() []string {
	return []string{"MeshAllocationsFail", "MeshWritesRefused", "MeshWritesBehind"}
}

// onNode is a node, and webPod a pod on it whose labels no other pod has.
const onNode = `apiVersion: v1
kind: Node
metadata: {name: n1}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
`

func webPod(n int) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: web%d, namespace: shop, labels: {app: web%[1]d}}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
status: {phase: Running, podIP: 10.9.0.%[1]d, podIPs: [{ip: 10.9.0.%[1]d}], hostIP: 10.0.0.1, hostIPs: [{ip: 10.0.0.1}]}
`, n)
}

func webService(n int) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: web%d, namespace: shop, annotations: {service.cilium.io/global: "true"}}
spec: {clusterIP: 172.20.0.%[1]d, ports: [{name: http, port: 80, protocol: TCP}]}
`, n)
}

// TestWriting: the own etcd of an agent, an operator and a mirror is unreachable, later it is full, and then their user
// has lost rights.
func TestWriting(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "prometheus")
	const quota = 16 << 20
	remote, manifests := meshtest.Run(t, small("east", 1)), t.TempDir()
	etcd := etcdtest.StartProcess(t, etcdtest.WithConfig(etcdserver.Config{QuotaBytes: quota}))
	u, err := url.Parse(etcd.Endpoint())
	must(t, err)
	way, dir := newGate(t, u.Host), t.TempDir()
	must(t, etcdserver.EnableAuth(t.Context(), etcd.Client(t), "root", etcdserver.User{Name: "mesh", Password: "mesh", Role: everything()}))
	kv := etcd.ClientAs(t, "root", "root")
	client := programtest.Write(t, dir, "client", "endpoints: [http://"+way.Addr()+"]\nusername: mesh\npassword: mesh\n")
	programtest.Write(t, manifests, "objects.yaml", onNode+webPod(1)+webService(1))
	var targets []target
	start := func(m config.Mode, flags ...string) {
		api := programtest.Reserve(t)
		agenttest.StartMode(t, m, nil, append([]string{
			"--cluster-name", "home", "--cluster-id", "9", "--kvstore-opt", "etcd.config=" + client, "--listen", api,
		}, flags...)...)
		targets = append(targets, target{"mesh-agent-" + string(m), api})
	}
	start(config.ModeOperate, "--local-manifests", manifests)
	start(config.ModeMirror, "--clustermesh-config", remote.Dir())
	start(config.ModeRun, "--local-manifests", manifests, "--node-name", "n1", "--clustermesh-config", t.TempDir())
	p := startPrometheus(t, targets...)
	p.scraped(len(targets))

	way.Shut()
	p.fire(writingAlerts()...)
	way.open()
	p.resolve()

	fill(t, kv)
	programtest.Write(t, manifests, "objects.yaml", onNode+webPod(1)+webService(1)+webService(2))
	p.fire(fullAlerts()...)
	empty(t, kv, etcd.Endpoint())
	p.resolve()

	// Attempts to write become rare, those to allocate do not: the alerts that take longest come first.
	const identities, services = "cilium/state/identities", "cilium/state/services"
	programtest.Write(t, manifests, "objects.yaml", onNode+webPod(1)+webPod(2)+webService(1)+webService(2))
	allow(t, kv, everything(), but(identities))
	p.fire(rightsAlerts()[0])
	allow(t, kv, but(identities), but(identities, services))
	programtest.Write(t, manifests, "objects.yaml", onNode+webPod(1)+webPod(2)+webService(1)+webService(2)+webService(3))
	p.fire(rightsAlerts()[1:]...)
	allow(t, kv, but(identities, services), everything())
	p.resolve()
}

// everything is the range of all keys of a cluster.
func everything() []etcdserver.Range { return but() }

// but is the range of all keys of a cluster, except these prefixes, in the order of their keys, which are read-only.
func but(prefixes ...string) (all []etcdserver.Range) {
	from := "cilium/"
	for _, prefix := range prefixes {
		all = append(all, etcdserver.Range{Key: from, End: prefix + "/", Write: true}, etcdserver.Range{Key: prefix + "/", End: prefix + "0"})
		from = prefix + "0"
	}
	return append(all, etcdserver.Range{Key: from, End: "cilium0", Write: true})
}

// allow replaces the rights of the user.
func allow(t *testing.T, kv *clientv3.Client, before, now []etcdserver.Range) {
	t.Helper()
	for _, r := range now {
		kind := clientv3.PermissionType(clientv3.PermRead)
		if r.Write {
			kind = clientv3.PermissionType(clientv3.PermReadWrite)
		}
		_, err := kv.RoleGrantPermission(t.Context(), "mesh", r.Key, r.End, kind)
		must(t, err)
	}
	for _, r := range before {
		if slices.Contains(now, r) {
			continue
		}
		_, err := kv.RoleRevokePermission(t.Context(), "mesh", r.Key, r.End)
		must(t, err)
	}
}

// fill writes until etcd refuses more.
func fill(t *testing.T, kv *clientv3.Client) {
	t.Helper()
	value, n := strings.Repeat("x", 1<<20), 0
	waittest.Try(t, "etcd to be full", func() error {
		n++
		_, err := kv.Put(t.Context(), fmt.Sprint("filler/", n), value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return nil
		}
		return fmt.Errorf("the last write: %v", err)
	})
}

// empty undoes fill as an administrator does.
func empty(t *testing.T, kv *clientv3.Client, endpoint string) {
	t.Helper()
	ctx := t.Context()
	_, err := kv.Delete(ctx, "filler/", clientv3.WithPrefix())
	must(t, err)
	_, err = etcdserver.Compact(ctx, kv)
	must(t, err)
	_, err = kv.Defragment(ctx, endpoint)
	must(t, err)
	must(t, disarm(ctx, kv))
}

func disarm(ctx context.Context, kv *clientv3.Client) error {
	_, err := kv.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	return err
}
