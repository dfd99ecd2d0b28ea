package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// node stands for the machine that a pod runs on, and for its kubelet.
type node struct {
	im       image
	m        *manifest
	confined bool // by root: only the image's files and the volumes are there
}

// inside is where a path of the container is for the program.
func (n node) inside(name string) string {
	if n.confined {
		return name
	}
	return n.outside(name)
}

// outside is where a path of the container is for us.
func (n node) outside(name string) string { return filepath.Join(n.im.root, name) }

// project puts Secrets into a projected volume as the kubelet does: files in a directory of their
// own, a link ..data to that, and links to the files through it, so that all change at once.
func (n node) project(t *testing.T, mount corev1.VolumeMount, secrets map[string]map[string]string) {
	t.Helper()
	dir := n.outside(mount.MountPath)
	mkdir(t, dir)
	source := n.m.volume(mount.Name).Projected
	files := map[string]string{}
	for _, s := range source.Sources {
		for key, text := range secrets[s.Secret.Name] {
			item := find(s.Secret.Items, func(item corev1.KeyToPath) bool { return item.Key == key })
			if len(s.Secret.Items) == 0 {
				item.Path = key
			}
			if item.Path != "" {
				files[item.Path] = text
			}
		}
	}
	old, _ := os.Readlink(filepath.Join(dir, "..data")) // none the first time
	now, err := os.MkdirTemp(dir, "..2026_")
	check(t, err)
	check(t, os.Chmod(now, 0o755))
	for name, text := range files {
		file := filepath.Join(now, name)
		check(t, os.WriteFile(file, []byte(text), 0o600))
		n.give(t, file, os.FileMode(*source.DefaultMode)|0o440) // what fsGroup adds
	}
	check(t, os.Symlink(filepath.Base(now), filepath.Join(dir, "..data_tmp")))
	check(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	for name := range files {
		if link := filepath.Join(dir, name); !exists(link) {
			check(t, os.Symlink(filepath.Join("..data", name), link))
		}
	}
	if old != "" {
		check(t, os.RemoveAll(filepath.Join(dir, old)))
	}
}

// give gives a file of a volume to the pod's group, with a mode.
func (n node) give(t *testing.T, name string, mode os.FileMode) {
	t.Helper()
	if n.confined {
		check(t, os.Chown(name, 0, int(*n.m.pod().SecurityContext.FSGroup)))
	}
	check(t, os.Chmod(name, mode))
}

// start runs the container: the image's program with the pod's arguments and variables and nothing
// else. As root it is run as the pod's user, sees only the image's files and the volumes, and may
// write only to the socket's directory; another user runs it as that user.
func (n node) start(t *testing.T, config map[string]string) *agent {
	t.Helper()
	a := &agent{log: new(waittest.Output)}
	c, security := n.m.container(), n.m.pod().SecurityContext
	args := slices.Clone(n.im.entrypoint)
	for _, arg := range c.Args {
		if flag, file, ok := strings.Cut(arg, "=/"); ok {
			arg = flag + "=" + n.inside("/"+file)
		}
		// The port may be in use here, so any will do.
		args = append(args, strings.Replace(arg, fmt.Sprint(":", c.Ports[0].ContainerPort), ":0", 1))
	}
	a.cmd = &exec.Cmd{Path: n.inside(args[0]), Args: args, Env: slices.Clone(n.im.env), Dir: n.inside("/"), Stdout: a.log, Stderr: a.log}
	for _, v := range c.Env {
		value := v.Value
		switch from := v.ValueFrom; {
		case from == nil:
		case from.ConfigMapKeyRef == nil:
			value = "node-1"
		default:
			ref := from.ConfigMapKeyRef
			if value = config[ref.Key]; value == "" && ref.Optional != nil && *ref.Optional {
				continue
			}
		}
		a.cmd.Env = append(a.cmd.Env, v.Name+"="+value)
	}
	if n.confined {
		a.cmd.SysProcAttr = &syscall.SysProcAttr{
			Chroot:     n.im.root,
			Credential: &syscall.Credential{Uid: uint32(*security.RunAsUser), Gid: uint32(*security.RunAsGroup), Groups: []uint32{uint32(*security.FSGroup)}},
		}
	}
	check(t, a.cmd.Start())
	t.Cleanup(func() {
		_ = a.cmd.Process.Signal(syscall.SIGTERM)
		if err := a.cmd.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the agent's log:\n%s", a.log)
		}
	})
	listening := regexp.MustCompile(`msg=Listening address="127\.0\.0\.1:(\d+)"`)
	waittest.Until(t, "it to listen", func() bool {
		if found := listening.FindStringSubmatch(a.log.String()); found != nil {
			a.port, _ = strconv.Atoi(found[1])
		}
		return a.port != 0
	})
	return a
}

// agent is one that runs in a pod.
type agent struct {
	cmd  *exec.Cmd
	log  *waittest.Output
	port int
}

// probe asks as the kubelet does and returns the code.
func (a *agent) probe(t *testing.T, p *corev1.Probe) int {
	t.Helper()
	return a.get(t, p.HTTPGet.Host, p.HTTPGet.Path, nil)
}

func (a *agent) get(t *testing.T, host, path string, into any) int {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(fmt.Sprintf("http://%s:%d%s", host, a.port, path))
	check(t, err)
	defer resp.Body.Close()
	if into != nil {
		check(t, json.NewDecoder(resp.Body).Decode(into))
	}
	return resp.StatusCode
}

// clientFile is what `cilium clustermesh connect` writes for a cluster, whose
// server is reached at an endpoint of the simulator.
func clientFile(t *testing.T, n node, r *sim.Running, mesh, certificate string) string {
	t.Helper()
	host := r.Cluster().Name + ".mesh.cilium.io"
	port := r.Endpoint()[strings.LastIndex(r.Endpoint(), ":")+1:]
	text, err := yaml.Marshal(map[string]any{
		"endpoints":           []string{"https://" + host + ":" + port},
		"trusted-ca-file":     n.inside(filepath.Join(mesh, certificate+"-ca.crt")),
		"cert-file":           n.inside(filepath.Join(mesh, certificate+".crt")),
		"key-file":            n.inside(filepath.Join(mesh, certificate+".key")),
		"cilium-host-aliases": []map[string]any{{"hostname": host, "ips": []string{"127.0.0.1"}}},
	})
	check(t, err)
	return string(text)
}

// serveSecret runs the image as the manifest says on the Secrets of a simulated
// mesh: the certificate of the first cluster is the common one, the second has
// its own and comes while the agent runs.
func serveSecret(t *testing.T, im image, m *manifest) {
	mesh := meshtest.Mesh(t, sim.Options{}, meshtest.Clusters(2)...)

	n := node{im: im, m: m, confined: os.Geteuid() == 0}
	mounts := map[bool]corev1.VolumeMount{}
	for _, mount := range m.container().VolumeMounts {
		mounts[m.volume(mount.Name).Projected != nil] = mount
	}
	dir, socket := mounts[true], mounts[false].MountPath
	mkdir(t, n.outside(socket))
	n.give(t, n.outside(socket), 0o777)

	pem := func(name string) string { return readFile(t, filepath.Join(mesh.Dir(), name)) }
	secrets := map[string]map[string]string{
		"cilium-clustermesh": {"cluster1": clientFile(t, n, mesh.Clusters()[0], dir.MountPath, "common-etcd-client")},
		"clustermesh-apiserver-remote-cert": {
			"tls.crt": pem("cluster1.etcd-client.crt"), "tls.key": pem("cluster1.etcd-client.key"), "ca.crt": pem("cluster1.etcd-client-ca.crt"),
		},
	}
	n.project(t, dir, secrets)
	a := n.start(t, map[string]string{"cluster-name": "own", "cluster-id": "250"})
	waittest.Until(t, "readiness", func() bool { return a.probe(t, m.container().ReadinessProbe) == http.StatusOK })
	if code := a.probe(t, m.container().LivenessProbe); code != http.StatusOK {
		t.Errorf("liveness: %d", code)
	}
	own := maps.Clone(secrets["cilium-clustermesh"])
	own["cluster2"] = clientFile(t, n, mesh.Clusters()[1], dir.MountPath, "cluster2.etcd-client")
	for _, end := range []string{".crt", ".key", "-ca.crt"} {
		own["cluster2.etcd-client"+end] = pem("cluster2.etcd-client" + end)
	}
	secrets["cilium-clustermesh"] = own
	n.project(t, dir, secrets)
	var s api.Status
	waittest.Until(t, "both clusters", func() bool {
		a.get(t, "127.0.0.1", "/v1/status", &s)
		return s.State == api.StateReady && s.Summary.ClustersReady == 2
	})
	if s.Agent.Cluster != "own" || s.Agent.ClusterID != 250 || s.Agent.Node != "node-1" || s.Summary.IPs == 0 || len(s.Ignored) > 0 {
		t.Errorf("agent %+v, summary %+v, ignored %v", s.Agent, s.Summary, s.Ignored)
	}
	// As kubectl exec does.
	status := exec.Command(n.inside(im.entrypoint[0]), "status", "--socket", n.inside(m.flag(t, "socket")))
	status.SysProcAttr, status.Env, status.Dir = a.cmd.SysProcAttr, im.env, a.cmd.Dir
	if out, err := status.CombinedOutput(); err != nil || !strings.Contains(string(out), "cluster2") {
		t.Errorf("status: %v\n%s", err, out)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
