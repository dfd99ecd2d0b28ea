package mirror

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

// everyConfig has a cluster for each combination of the fields of a configuration.
func everyConfig() model.Objects {
	var all model.Objects
	yes, no := true, false
	for _, canaries := range []bool{true, false} {
		for _, exports := range []*bool{nil, &no, &yes} {
			for _, mode := range []string{"", "services-and-endpointslices", "endpointslices-only"} {
				id := uint32(len(all.ClusterConfigs) + farID)
				all.ClusterConfigs = append(all.ClusterConfigs, model.ClusterConfig{
					Cluster: fmt.Sprintf("c%d", id), ID: id, SyncedCanaries: canaries, MaxConnectedClusters: 255,
					ServiceExportsEnabled: exports, EndpointSlicesExportMode: mode,
				})
			}
		}
	}
	return all
}

// asCopied returns the configurations as a mirror copies them (spec wire.md §2.1).
func asCopied(o model.Objects) model.Objects {
	var all model.Objects
	for _, c := range o.ClusterConfigs {
		c.SyncedCanaries, c.Cached = true, true
		all.ClusterConfigs = append(all.ClusterConfigs, c)
	}
	return all
}

// TestEachSideReadsTheOthersConfigurations: directly, and through either mirror.
func TestEachSideReadsTheOthersConfigurations(t *testing.T) {
	t.Parallel()
	for path, mirror := range map[interop.Path]string{interop.Direct: "", interop.ByCilium: "theirs", interop.ByUs: "ours"} {
		for _, d := range []interop.Direction{interop.TheyWrite, interop.WeWrite} {
			t.Run(fmt.Sprintf("%s, %s", path, d), func(t *testing.T) {
				t.Parallel()
				configurations(t, path, mirror, d)
			})
		}
	}
}

func configurations(t *testing.T, path interop.Path, mirror string, d interop.Direction) {
	w := &world{T: t, far: etcdtest.StartProcess(t), dir: t.TempDir()}
	want := everyConfig()
	if mirror == "theirs" { // it is slow with clusters that have a configuration alone
		want = model.Objects{ClusterConfigs: []model.ClusterConfig{config()}}
	}
	w.writes(d, want)
	read := w.far
	w.files(w.dir, want, w.far)
	if mirror != "" {
		read = etcdtest.StartProcess(t)
		w.start(mirror, read)
		want = asCopied(want)
	}
	dir := t.TempDir()
	w.files(dir, want, read)
	reads := w.weReadConfigs(dir)
	if d == interop.WeWrite {
		reads = w.theyReadConfigs(dir)
		for i := range want.ClusterConfigs {
			want.ClusterConfigs[i].MaxConnectedClusters = 0 // it does not report this
		}
	}
	interop.Until(t, "all configurations to be read", 2*time.Minute, func(ctx context.Context) error {
		got, err := reads(ctx)
		if err != nil {
			return err
		}
		return interop.Same(want, got)
	})
	interop.Keep(t, interop.Result{
		Release: interop.Newest, Kind: model.ClusterConfigs, Direction: d, Path: path, Objects: len(want.ClusterConfigs),
	})
}

// writes has the writing side encode objects, and puts them into the etcd of far.
func (w *world) writes(d interop.Direction, o model.Objects) {
	w.Helper()
	entries := ours.Encode(o)
	if d == interop.TheyWrite {
		entries = interop.Ask[model.EncodeReply](w, interop.Start(w, interop.Newest, "codec"), "Codec.Encode", o).Entries
	}
	client := w.far.Client(w)
	for _, e := range entries {
		if _, err := client.Put(w.Context(), e.Key, string(e.Value)); err != nil {
			w.Fatal(err)
		}
	}
}

// files makes a client file for each cluster, all of one etcd.
func (w *world) files(dir string, o model.Objects, etcd *etcdtest.Process) {
	w.Helper()
	for _, c := range o.ClusterConfigs {
		text := fmt.Appendf(nil, "endpoints:\n- %s\n", etcd.Endpoint())
		interop.Must(w, os.WriteFile(filepath.Join(dir, c.Cluster), text, 0o600))
	}
}

// weReadConfigs starts an agent and returns a function that reads its clusters.
func (w *world) weReadConfigs(dir string) func(context.Context) (model.Objects, error) {
	w.Helper()
	a := interop.StartAgent(w, "run", "--cluster-name", home, "--cluster-id", fmt.Sprint(homeID), "--clustermesh-config", dir)
	return func(ctx context.Context) (model.Objects, error) {
		var all model.Objects
		clusters, err := agentapi.List[api.Cluster](ctx, a.Socket, "clusters")
		for _, c := range clusters {
			if c.ID != 0 {
				all.ClusterConfigs = append(all.ClusterConfigs, shownConfig(c))
			}
		}
		return all, err
	}
}

func shownConfig(c api.Cluster) model.ClusterConfig {
	o := c.Capabilities
	return model.ClusterConfig{
		Cluster: c.Name, ID: c.ID, SyncedCanaries: or(o.SyncedCanaries), Cached: or(o.Cached),
		MaxConnectedClusters: or(o.MaxConnectedClusters), ServiceExportsEnabled: o.ServiceExportsEnabled,
		EndpointSlicesExportMode: or(o.EndpointSlicesExportMode),
	}
}

// or returns the value, if there is one.
func or[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// theyReadConfigs starts a reader and returns a function that reads its clusters.
func (w *world) theyReadConfigs(dir string) func(context.Context) (model.Objects, error) {
	w.Helper()
	r := interop.Read(w, interop.Newest, model.ReadArgs{Cluster: home, ClusterID: homeID, MaxConnectedClusters: 255, Dir: dir})
	return func(context.Context) (model.Objects, error) {
		var all model.Objects
		for _, c := range r.Clusters(w) {
			if c.Config != nil {
				all.ClusterConfigs = append(all.ClusterConfigs, *c.Config)
			}
		}
		return all, nil
	}
}
