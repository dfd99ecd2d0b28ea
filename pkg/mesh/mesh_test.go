package mesh_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is an etcd with one cluster, and a mesh directory with its client file.
type cluster struct {
	directory string
	name      string
	etcd      *etcdserver.Server
}

func must(err error) {
	if err != nil {
		panic(err) // an example has no other way to report it
	}
}

func startCluster(name string, id uint32) *cluster {
	etcd, err := etcdserver.Start(etcdserver.Config{})
	must(err)
	c := &cluster{name: name, etcd: etcd}
	c.directory, err = os.MkdirTemp("", "mesh-")
	must(err)
	c.write(wire.ClusterConfigKey(name), wire.ClusterConfig{ID: id})
	must(os.WriteFile(filepath.Join(c.directory, name), []byte("endpoints: ["+etcd.Endpoint()+"]\n"), 0o600))
	return c
}

func (c *cluster) write(key string, value any) {
	text, err := json.Marshal(value)
	must(err)
	_, err = c.etcd.Local().Put(context.Background(), key, string(text))
	must(err)
}

// put writes an address with its pod.
func (c *cluster) put(address, pod string) {
	c.write(wire.IPs.Key("", false, address), map[string]any{"IP": address, "ID": 65536 + 1000, "K8sNamespace": "default", "K8sPodName": pod})
}

func (c *cluster) stop() {
	c.etcd.Close()
	must(os.RemoveAll(c.directory))
}

// TestMistakesNameFields: the error reports all mistakes at once, with the names of fields and not of flags.
func TestMistakesNameFields(t *testing.T) {
	t.Parallel()
	_, err := mesh.New(mesh.Config{ClusterID: 300, MaxConnectedClusters: 255})
	for _, want := range []string{"Config.Directory: is missing", "Config.ClusterID: 300 is greater than 255", "Config.ClusterName: a cluster with a ClusterID"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if _, err := mesh.New(mesh.Config{Directory: t.TempDir(), MaxConnectedClusters: 7, ClusterName: "Bad_"}); err == nil || strings.Count(err.Error(), "Config.") != 2 {
		t.Errorf("%v", err)
	}
}

// TestAMeshOfNothing: a mesh with an empty directory and no logger is ready at once, and exports its metrics.
func TestAMeshOfNothing(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	m, err := mesh.New(mesh.Config{Directory: t.TempDir(), Metrics: reg})
	waittest.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	if err := m.WaitReady(ctx); err != nil {
		t.Error(err)
	}
	synced := ""
	for e, err := range m.Changes(ctx, "") {
		waittest.Must(t, err)
		if synced += fmt.Sprint(e.Type, " ", e.Kind, ";"); e.Kind == view.Health {
			break
		}
	}
	if want := strings.Count(synced, "synced"); want != len(view.Kinds()) {
		t.Errorf("came %s", synced)
	}
	if families, err := reg.Gather(); err != nil || len(families) == 0 {
		t.Errorf("%d families of metrics: %v", len(families), err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAMeshThatNeverRuns: its creator closes it.
func TestAMeshThatNeverRuns(t *testing.T) {
	t.Parallel()
	m, err := mesh.New(mesh.Config{Directory: t.TempDir()})
	waittest.Must(t, err)
	m.Close()
}
