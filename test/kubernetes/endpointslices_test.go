package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/mesh-agent/mesh-agent/internal/kube/endpointslices"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// sliced is a cluster whose operators write slices, and a remote cluster, west.
type sliced struct {
	*publishing
	west    *etcdtest.Process
	file    string // the client file of west
	sockets string // the directory
	client  dynamic.NamespaceableResourceInterface
}

func newSliced(t *testing.T) *sliced {
	t.Helper()
	s := &sliced{publishing: newPublishing(t), west: etcdtest.StartProcess(t), sockets: t.TempDir()}
	s.client = s.Client(t).Resource(endpointslices.Resource())
	s.west.Put(t, wire.ClusterConfigPrefix+"/west", string(wire.ClusterConfig{ID: 7, Capabilities: wire.Capabilities{MaxConnectedClusters: 255}}.Encode()))
	s.file = filepath.Join(s.dir, "west")
	s.writeFile(t)
	return s
}

func (s *sliced) writeFile(t *testing.T) {
	t.Helper()
	waittest.Must(t, os.WriteFile(s.file, []byte("endpoints: ["+s.west.Endpoint()+"]\n"), 0o600))
}

// share lets west have these backends of a service, each with the port 8080 and a host name: the name of the service
// with a number.
func (s *sliced) share(t *testing.T, name string, addresses ...string) {
	t.Helper()
	s.shareHosts(t, name, name, addresses...)
}

// shareHosts is share with another name in the host names.
func (s *sliced) shareHosts(t *testing.T, name, host string, addresses ...string) {
	t.Helper()
	svc := &wire.Service{
		Cluster: "west", ClusterID: 7, Namespace: "default", Name: name, Frontends: map[string]wire.Ports{}, Backends: make(map[string]wire.Ports),
		Hostnames: make(map[string]string), Zones: map[string]wire.Zone{}, Labels: map[string]string{}, Selector: map[string]string{}, IncludeExternal: true, Shared: true,
	}
	for i, a := range addresses {
		svc.Backends[a] = wire.Ports{"http": {Protocol: "TCP", Port: 8080}}
		svc.Hostnames[a] = fmt.Sprint(host, "-", i)
	}
	s.west.Put(t, wire.Services.Prefix("west", false)+"default/"+name, string(svc.Encode()))
}

// socket is where an operator listens.
func (s *sliced) socket(name string) string { return filepath.Join(s.sockets, name) }

// operator runs an operator with the flag until stop is called, or the test ends.
func (s *sliced) operator(t *testing.T, name string, flags ...string) (stop func()) {
	t.Helper()
	cmd := s.begin(t, name, flags...)
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait reports
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// begin starts an operator, which the caller ends.
func (s *sliced) begin(t *testing.T, name string, flags ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(s.program, append([]string{
		"operate", "--cluster-name", "east", "--cluster-id", "3", "--kvstore-opt", "etcd.address=" + s.etcd.Endpoint(), "--endpoint-slices",
		"--kubeconfig", s.Kubeconfig(t, s.gate.Addr(), kubetest.Admin), "--clustermesh-config", s.dir,
		"--listen", "127.0.0.1:0", "--socket", s.socket(name),
	}, flags...)...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	waittest.Must(t, cmd.Start())
	return cmd
}

// written are the slices of remote backends: a line of text for each, and its resource version, by name.
func (s *sliced) written(t *testing.T) (lines []string, versions map[string]string) {
	t.Helper()
	lines, versions, err := s.tryWritten(t)
	waittest.Must(t, err)
	return lines, versions
}

// tryWritten is written for an API server that may be unreachable.
func (s *sliced) tryWritten(t *testing.T) (lines []string, versions map[string]string, err error) {
	list, err := s.client.List(t.Context(), metav1.ListOptions{LabelSelector: endpointslices.LabelOwner})
	if err != nil {
		return nil, nil, err
	}
	versions = make(map[string]string)
	for i := range list.Items {
		o := &list.Items[i]
		versions[o.GetName()] = o.GetResourceVersion()
		endpoints, _, _ := unstructured.NestedSlice(o.Object, "endpoints")
		var texts []string
		for _, e := range endpoints {
			addresses, _, _ := unstructured.NestedStringSlice(e.(map[string]any), "addresses")
			ready, _, _ := unstructured.NestedBool(e.(map[string]any), "conditions", "ready")
			texts = append(texts, fmt.Sprint(addresses[0], " ", ready))
		}
		slices.Sort(texts)
		lines = append(lines, o.GetLabels()[discoveryv1.LabelServiceName]+": "+strings.Join(texts, ", "))
	}
	slices.Sort(lines)
	return lines, versions, nil
}

// awaitSlices waits until there are exactly these slices, and returns their resource versions.
func (s *sliced) awaitSlices(t *testing.T, what string, want ...string) (versions map[string]string) {
	t.Helper()
	var lines []string
	waittest.Until(t, what, func() bool {
		lines, versions = s.written(t)
		return slices.Equal(lines, want)
	}, func() string { return fmt.Sprintf("%q", lines) })
	return versions
}

// unchanged checks that the earlier slices were not written since.
func (s *sliced) unchanged(t *testing.T, before, now map[string]string) {
	t.Helper()
	for name, version := range before {
		if now[name] != version {
			t.Errorf("%s was written again: %s, then %q", name, version, now[name])
		}
	}
}

func syncedService(name, more string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {namespace: default, name: %s, labels: {team: a}, annotations: {service.cilium.io/global: "true", service.cilium.io/global-sync-endpoint-slices: "true"%s}}
spec: {selector: {app: %[1]s}, ports: [{name: http, port: 80, protocol: TCP}]}
`, name, more)
}

// TestRemoteBackendsHaveSlices: from annotations of users, and services of a remote cluster, to slices; over restarts
// and over an unreachable remote cluster, until its client file is removed.
func TestRemoteBackendsHaveSlices(t *testing.T) {
	t.Parallel()
	s := newSliced(t)
	foreign := `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: default, name: web-of-somebody, labels: {kubernetes.io/service-name: web, endpointslice.kubernetes.io/managed-by: somebody}}
addressType: IPv4
endpoints: []
`
	headless := `
apiVersion: v1
kind: Service
metadata: {namespace: default, name: db, annotations: {service.cilium.io/global: "true"}}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: http, port: 80, protocol: TCP}]}
`
	s.Apply(t, syncedService("web", ""), service("plain", 80), headless, slice("web-1", "web", "10.1.0.1"), foreign)
	s.share(t, "web", "10.2.0.1", "10.2.0.2")
	s.share(t, "plain", "10.2.0.3")
	s.share(t, "db", "10.2.0.4")
	stop := s.operator(t, "first")
	first := s.awaitSlices(t, "slices", "db: 10.2.0.4 true", "web: 10.2.0.1 true, 10.2.0.2 true")
	s.checkObject(t)
	s.until(t, "the own backend alone is published", func() bool {
		text := s.contents(t)["cilium/state/services/v1/east/default/web"]
		return strings.Contains(text, "10.1.0.1") && !strings.Contains(text, "10.2.0.1")
	})

	// Another process writes only the later Service's slices.
	stop()
	s.Apply(t, syncedService("late", ""))
	s.share(t, "late", "10.2.0.5")
	stop = s.operator(t, "second")
	all := []string{"db: 10.2.0.4 true", "late: 10.2.0.5 true", "web: 10.2.0.1 true, 10.2.0.2 true"}
	s.unchanged(t, first, s.awaitSlices(t, "one more", all...))

	// The remote cluster is unreachable, while the operator runs and when it starts. Work without it is done.
	stop()
	s.west.Kill(t)
	stop = s.operator(t, "third", "--clustermesh-sync-timeout", "1s")
	s.Apply(t, strings.Replace(syncedService("late", ""), `endpoint-slices: "true"`, `endpoint-slices: "false"`, 1))
	kept := s.awaitSlices(t, "those of the Service that wants none go", "db: 10.2.0.4 true", "web: 10.2.0.1 true, 10.2.0.2 true")
	s.unchanged(t, kept, first)

	// It returns with other backends.
	s.west.Restart(t)
	s.share(t, "web", "10.2.0.2", "10.2.0.6")
	s.awaitSlices(t, "other backends", "db: 10.2.0.4 true", "web: 10.2.0.2 true, 10.2.0.6 true")
	s.west.Kill(t)
	waittest.Must(t, os.Remove(s.file))
	s.awaitSlices(t, "none without the client file")
	if _, err := s.client.Namespace("default").Get(t.Context(), "web-of-somebody", metav1.GetOptions{}); err != nil {
		t.Errorf("somebody else's: %v", err)
	}
	stop()
}

// checkObject checks one slice as the API server stores it.
func (s *sliced) checkObject(t *testing.T) {
	t.Helper()
	list, err := s.client.Namespace("default").List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web,multicluster.kubernetes.io/source-cluster=west"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%v, %+v", err, list)
	}
	o := &list.Items[0]
	if l := o.GetLabels(); l["team"] != "a" || l["endpointslice.kubernetes.io/managed-by"] != "endpointslice-mesh-controller.cilium.io" {
		t.Errorf("labels: %v", l)
	}
	if owner := metav1.GetControllerOf(o); owner == nil || owner.Kind != "Service" || owner.Name != "web" {
		t.Errorf("owner: %+v", owner)
	}
	ports, _, _ := unstructured.NestedSlice(o.Object, "ports")
	if len(ports) != 1 || fmt.Sprint(ports[0]) != "map[name:http port:8080 protocol:TCP]" {
		t.Errorf("ports: %v", ports)
	}
	for _, m := range o.GetManagedFields() {
		if m.Manager != "mesh-agent" || m.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("fields of %s by %s", m.Manager, m.Operation)
		}
	}
}

// TestTheNextLeaderWritesNothing: when the leader of two ends, the other one continues, and writes only
// changes.
func TestTheNextLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	s := newSliced(t)
	s.Apply(t, syncedService("web", ""), syncedService("late", ""))
	s.share(t, "web", "10.2.0.1")
	stop := s.operator(t, "first")
	first := s.awaitSlices(t, "slices", "web: 10.2.0.1 true")
	s.operator(t, "second")
	stop()
	s.share(t, "late", "10.2.0.5")
	s.unchanged(t, first, s.awaitSlices(t, "the second one writes", "late: 10.2.0.5 true", "web: 10.2.0.1 true"))
}

// TestAffinityTurnsReadyOff: remote backends are not ready while a local backend is ready and the affinity is local.
func TestAffinityTurnsReadyOff(t *testing.T) {
	t.Parallel()
	s := newSliced(t)
	own := slice("web-1", "web", "10.1.0.1")
	s.Apply(t, syncedService("web", ", service.cilium.io/affinity: local"), own)
	s.share(t, "web", "10.2.0.1")
	s.operator(t, "first")
	s.awaitSlices(t, "a standby", "web: 10.2.0.1 false")
	s.Delete(t, own)
	s.awaitSlices(t, "in use", "web: 10.2.0.1 true")
	s.Apply(t, own)
	s.awaitSlices(t, "a standby again", "web: 10.2.0.1 false")
}
