package converters

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/kube/serviceimports"
	"github.com/mesh-agent/mesh-agent/simtest/children"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/ports"
	"github.com/mesh-agent/mesh-agent/test/interop"
)

// The cluster that both publish.
const (
	cluster   = "east"
	clusterID = 3
)

// definitions are the CRDs of the release: those of Cilium's kinds, and those of the MCS API.
func definitions(t *testing.T, release string) (all []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(os.Getenv(interop.PeersEnv), "crds-"+release, "*.yaml"))
	interop.Must(t, err)
	if len(paths) == 0 {
		t.Fatalf("no definitions of Cilium %s beside the peers; `make interop` puts them there", release)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		interop.Must(t, err)
		all = append(all, string(text))
	}
	mcs, err := serviceimports.Definitions()
	interop.Must(t, err)
	for _, o := range mcs {
		all = append(all, object(o.Object).text(t))
	}
	return all
}

// startCilium runs the clustermesh-apiserver of a release until the end of the test.
func startCilium(t *testing.T, release string, kube *kubetest.Server, etcd *etcdtest.Process, flags ...string) {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "etcd.yaml")
	interop.Must(t, os.WriteFile(config, []byte("endpoints: ["+etcd.Endpoint()+"]\n"), 0o600))
	program := filepath.Join(os.Getenv(interop.PeersEnv), "apiserver-"+release)
	help, err := exec.Command(program, "clustermesh", "--help").Output()
	interop.Must(t, err)
	for _, one := range []string{"--health-port=" + freePort(t), "--gops-port=" + freePort(t), "--shell-sock-path=" + filepath.Join(dir, "shell.sock")} {
		if name, _, _ := strings.Cut(one, "="); strings.Contains(string(help), name) { // not every release has it
			flags = append(flags, one)
		}
	}
	cmd := exec.Command(program, append([]string{
		"clustermesh", "--cluster-name", cluster, "--cluster-id", strconv.Itoa(clusterID), "--kvstore-opt", "etcd.config=" + config + ",etcd.qps=1000",
		"--k8s-kubeconfig-path", kube.Kubeconfig(t, kube.Addr(), kubetest.Admin), "--cluster-users-enabled=false",
	}, flags...)...)
	cmd.SysProcAttr = children.Attributes()
	var log bytes.Buffer // until it has ended
	cmd.Stdout, cmd.Stderr = &log, &log
	interop.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("clustermesh-apiserver of %s: %v", release, err)
			}
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			for line := range strings.Lines(log.String()) {
				if !strings.Contains(line, "level=info") && !strings.Contains(line, "level=debug") {
					t.Logf("clustermesh-apiserver of %s: %s", release, line)
				}
			}
		}
	})
}

// freePort returns a port without a listener.
func freePort(t *testing.T) string {
	t.Helper()
	p, err := ports.Reserve("127.0.0.1:0")
	interop.Must(t, err)
	t.Cleanup(p.Release)
	_, port, err := net.SplitHostPort(p.Addr())
	interop.Must(t, err)
	return port
}
