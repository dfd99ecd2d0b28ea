package sim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	clientyaml "go.etcd.io/etcd/client/v3/yaml"
	"go.uber.org/zap"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// list returns the names in a directory, with modes.
func list(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	out := map[string]string{}
	for _, e := range entries {
		info, err := e.Info()
		must(t, err)
		out[e.Name()] = info.Mode().String()
	}
	return out
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func openMesh(t *testing.T, o Options, clusters ...contents.Cluster) *Mesh {
	t.Helper()
	m, err := OpenMesh(testContext(t), clusters, o)
	must(t, err)
	t.Cleanup(func() { must(t, m.Close()) })
	return m
}

func TestMeshWritesClientFilesAndRemovesThem(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	o := Options{Dir: filepath.Join(base, "a", "mesh"), DataDir: filepath.Join(base, "data"), Churn: 100}
	m := openMesh(t, o, contents.Default("cluster1", 1), contents.Default("cluster2", 2))
	var reported []string
	err := m.Load(testContext(t), func(r *Running, _ Loaded) {
		name := r.Cluster().Name
		reported = append(reported, name)
		if !exists(filepath.Join(m.Dir(), name)) {
			t.Errorf("%s was reported before its files were there", name)
		}
	})
	if err != nil || len(reported) != 2 {
		t.Fatalf("reported %v: %v", reported, err)
	}
	want := map[string]string{}
	for _, name := range []string{"cluster1", "cluster2"} {
		want[name] = "-rw-------"
		want[name+".etcd-client-ca.crt"] = "-rw-r--r--"
		want[name+".etcd-client.crt"] = "-rw-r--r--"
		want[name+".etcd-client.key"] = "-rw-------"
	}
	if diff := cmp.Diff(want, list(t, m.Dir())); diff != "" {
		t.Errorf("client directory:\n%s", diff)
	}
	if info, _ := os.Stat(m.Dir()); info.Mode().Perm() != 0o700 {
		t.Errorf("client directory has mode %s", info.Mode())
	}
	readThrough(t, filepath.Join(m.Dir(), "cluster2"), "cluster2")
	running(t, m.Run)()
	temp := m.Temp()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{}, list(t, base)); diff != "" || exists(temp) {
		t.Errorf("left over: %s %t", diff, exists(temp))
	}
}

// readThrough reads a cluster by its client file only.
func readThrough(t *testing.T, path, cluster string) {
	t.Helper()
	for _, name := range []string{"", cluster + ".mesh.cilium.io", "localhost"} {
		cfg, err := clientyaml.NewConfig(path)
		must(t, err)
		cfg.Logger, cfg.TLS.ServerName = zap.NewNop(), name
		c, err := clientv3.New(*cfg)
		must(t, err)
		resp, err := c.Get(testContext(t), wire.ClusterConfigKey(cluster))
		if err != nil || resp.Count != 1 {
			t.Errorf("server name %q: %v", name, err)
		}
		_ = c.Close()
	}
}

func TestFilesOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "theirs")
	must(t, os.WriteFile(other, []byte("x"), 0o600))
	first := openMesh(t, Options{Dir: dir, Plain: true}, contents.Default("cluster1", 1))
	second := openMesh(t, Options{Dir: dir}, contents.Default("cluster2", 2))
	for _, m := range []*Mesh{first, second} {
		must(t, m.Load(testContext(t), nil))
	}
	if got := len(list(t, dir)); got != 1+1+4 {
		t.Errorf("%d files in the directory", got)
	}
	_, err := OpenMesh(testContext(t), []contents.Cluster{contents.Default("cluster1", 9)}, Options{Dir: dir})
	var unusable *DirectoryError
	if !errors.As(err, &unusable) || !strings.Contains(err.Error(), "cluster1 exists already") {
		t.Errorf("a third simulator got %v", err)
	}
	for _, m := range []*Mesh{first, second} {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(map[string]string{"theirs": "-rw-------"}, list(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestDirectoryThatWasMadeGoesWithEverything(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "parent", "new")
	m := openMesh(t, Options{Dir: dir}, contents.Default("cluster1", 1))
	for _, file := range []string{filepath.Join(dir, "cluster9"), filepath.Join(base, "parent", "theirs")} {
		must(t, os.WriteFile(file, nil, 0o600))
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"theirs": "-rw-------"}, list(t, filepath.Dir(dir))); diff != "" {
		t.Error(diff)
	}
}

func TestUnusableDirectories(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for name, o := range map[string]Options{
		"client directory is a file":    {Dir: file},
		"client directory under a file": {Dir: filepath.Join(file, "x")},
		"data directory is a file":      {DataDir: file},
	} {
		_, err := OpenMesh(testContext(t), []contents.Cluster{contents.Default("cluster1", 1)}, o)
		var unusable *DirectoryError
		if !errors.As(err, &unusable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWriteClientFiles(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, contents.Default("cluster4", 4), Options{})
	dir := t.TempDir()
	for range 2 { // the second call replaces the files
		must(t, r.WriteClientFiles(dir))
	}
	if got := list(t, dir); len(got) != 4 {
		t.Errorf("files: %v", got)
	}
	readThrough(t, filepath.Join(dir, "cluster4"), "cluster4")
}
