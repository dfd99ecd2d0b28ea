package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/etcdserver"
	"github.com/mesh-agent/mesh-agent/internal/meshtest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
)

// writingAlerts fire while the own etcd is away.
func writingAlerts() []string { return []string{"MeshNoLeader operate", "MeshNoLeader mirror"} }

// fullAlerts fire while it is full.
func fullAlerts() []string {
	return []string{"MeshMirrorFilling", "MeshMirrorStopped", "MeshWritesRefused", "MeshWritesBehind", "MeshAllocationsFail"}
}

// onNode is a node, and webPod a pod on it whose labels nobody else has.
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

// TestWriting: the own etcd of an agent, an operator and a mirror is away, and later it is full.
func TestWriting(t *testing.T) {
	t.Parallel()
	findProgram(t, "prometheus")
	const quota = 16 << 20
	remote, manifests := meshtest.Run(t, small("east", 1)), t.TempDir()
	etcd := etcdtest.StartProcess(t, etcdtest.WithConfig(etcdserver.Config{QuotaBytes: quota}))
	u, err := url.Parse(etcd.Endpoint())
	must(t, err)
	way := newGate(t, u.Host)
	write(t, manifests, "objects.yaml", onNode+webPod(1)+webService(1))
	var targets []target
	start := func(m config.Mode, flags ...string) {
		api := reserve(t)
		agenttest.StartMode(t, m, nil, append([]string{
			"--cluster-name", "home", "--cluster-id", "9", "--kvstore-opt", "etcd.address=http://" + way.Addr(), "--listen", api,
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

	kv := etcd.Client(t)
	fill(t, kv)
	write(t, manifests, "objects.yaml", onNode+webPod(1)+webPod(2)+webService(1)+webService(2))
	p.fire(fullAlerts()...)
	empty(t, kv, etcd.Endpoint())
	p.resolve()
}

// fill writes until etcd takes no more.
func fill(t *testing.T, kv *clientv3.Client) {
	t.Helper()
	value := strings.Repeat("x", 1<<20)
	for i := 0; ; i++ {
		_, err := kv.Put(t.Context(), fmt.Sprint("filler/", i), value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		must(t, err)
	}
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
