// Package mirror tests mirrors of either side between readers and writers of either side: KVStoreMesh with our agent as
// the reader, and `mesh-agent mirror` with the code of Cilium's agent.
package mirror

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// The clusters: the mirrors belong to home, and copy far.
const (
	home, homeID = "home", 1
	far, farID   = "far", 2
)

// world is the etcd of far, and a mesh directory for home's mirrors that names it, in which a test may change files.
// Each etcd that a mirror fills is named copy.
type world struct {
	*testing.T
	far   *etcdtest.Process
	dir   string
	seed  uint64
	maker interop.Maker
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, far: etcdtest.StartProcess(t), dir: t.TempDir(), seed: interop.Seed(t)}
	w.maker = interop.NewMaker(w.seed, far, farID)
	interop.ClientFile(t, w.dir, far, w.far.Endpoint())
	return w
}

// file is the client file of far.
func (w *world) file() string { return filepath.Join(w.dir, far) }

// config is the configuration of far.
func config() model.ClusterConfig { return interop.Config(far, farID) }

// cut returns the objects of each kind in this range.
func cut(o model.Objects, from, to int) model.Objects {
	return model.Objects{
		Nodes: o.Nodes[from:to], Services: o.Services[from:to], EndpointSlices: o.EndpointSlices[from:to],
		ServiceExports: o.ServiceExports[from:to], Identities: o.Identities[from:to], Addresses: o.Addresses[from:to],
	}
}

// both returns the objects of two lists.
func both(a, b model.Objects) (all model.Objects) {
	all.Add(a)
	all.Add(b)
	return all
}

// mirrorer is a running mirror, theirs or ours.
type mirrorer interface{ Kill() }

// limits are the rate limits of a test.
const limits = "etcd.qps=100000,etcd.bootstrapQps=100000,etcd.maxInflight=100"

// theirs starts KVStoreMesh.
func (w *world) theirs(copy *etcdtest.Process, flags ...string) *interop.Peer {
	w.Helper()
	return interop.Start(w, interop.Newest, "kvstoremesh", append([]string{
		"--cluster-name=" + home, fmt.Sprintf("--cluster-id=%d", homeID), "--clustermesh-config=" + w.dir,
		"--kvstore-opt=etcd.address=" + copy.Endpoint() + "," + limits,
		"--enable-gops=false", "--health-port=0", "--api-serve-addr=127.0.0.1:0", "--shell-sock-path=",
		"--log-opt=format=json", "--per-cluster-ready-timeout=2s",
	}, flags...)...)
}

// ours starts `mesh-agent mirror`.
func (w *world) ours(copy *etcdtest.Process, flags ...string) *interop.Agent {
	w.Helper()
	return interop.StartAgent(w, "mirror", append([]string{
		"--cluster-name", home, "--cluster-id", strconv.Itoa(homeID), "--clustermesh-config", w.dir,
		"--kvstore-opt", "etcd.address=" + copy.Endpoint() + "," + limits,
		"--drain-delay", "2s", "--per-cluster-ready-timeout", "2s",
	}, flags...)...)
}

// start starts a mirror of this side.
func (w *world) start(side string, copy *etcdtest.Process, flags ...string) mirrorer {
	w.Helper()
	if side == "theirs" {
		return w.theirs(copy, append(flags, "--enable-heartbeat")...)
	}
	return w.ours(copy, flags...)
}

// entries are all keys of an etcd below cilium/, with their values and leases.
func entries(ctx context.Context, client *clientv3.Client) (map[string]entry, error) {
	resp, err := client.Get(ctx, "cilium/", clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	all := make(map[string]entry, len(resp.Kvs))
	for _, kv := range resp.Kvs {
		all[string(kv.Key)] = entry{string(kv.Value), kv.Lease}
	}
	return all, nil
}

type entry struct {
	value string
	lease int64
}

// copied returns the copy of far in an etcd: its configuration, its canaries, without their times, and its entries.
func copied(all map[string]entry) map[string]string {
	found := map[string]string{}
	for key, e := range all {
		switch {
		case strings.HasPrefix(key, wire.SyncedPrefix+"/"):
			found[key] = "a time"
		case strings.HasPrefix(key, "cilium/cache/"), strings.HasPrefix(key, wire.ClusterConfigPrefix+"/"):
			found[key] = e.value
		}
	}
	return found
}

// count returns the number of keys with a prefix.
func count(all map[string]entry, prefix string) int {
	n := 0
	for key := range all {
		if strings.HasPrefix(key, prefix) {
			n++
		}
	}
	return n
}

// shows waits until a copy has exactly these objects, as decoded by our stores.
func (w *world) shows(when string, r *ours.Reader, want model.Objects) {
	w.Helper()
	want = interop.KeptByUs(want)
	interop.Until(w, "the copy to be complete "+when, 2*time.Minute, func(context.Context) error {
		got, refused := r.View()
		if refused > 0 {
			return fmt.Errorf("%d are refused", refused)
		}
		return interop.Same(want, got)
	})
}

// reader reads a copy with our stores.
func (w *world) reader(copy *etcdtest.Process) *ours.Reader {
	w.Helper()
	file := interop.ClientFile(w, w.TempDir(), far, copy.Endpoint())
	return ours.Read(w, file, wire.Expect{Cluster: far, ClusterID: farID}, true)
}

// keep keeps a result of each kind.
func (w *world) keep(o model.Objects, d interop.Direction, p interop.Path) {
	for _, kind := range model.Published() {
		interop.Keep(w, interop.Result{
			Release: interop.Newest, Kind: kind, Direction: d, Path: p, Objects: interop.Count(o, kind), Seed: w.seed,
		})
	}
}
