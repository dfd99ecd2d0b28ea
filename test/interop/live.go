package interop

import (
	"context"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// callTimeout bounds a call of a peer that does not wait for anything.
const callTimeout = 2 * time.Minute

// Publisher is a peer that publishes a cluster.
type Publisher struct{ *Peer }

// Publish starts a peer that publishes a cluster to the etcd of a client
// configuration file. Further flags are Cilium's own.
func Publish(t testing.TB, release, file string, config model.ClusterConfig, flags ...string) Publisher {
	t.Helper()
	p := Publisher{Start(t, release, "publish")}
	args := model.PublishArgs{Config: config, Flags: append([]string{
		"--kvstore-opt=etcd.config=" + file,
		"--kvstore-opt=etcd.qps=100000", "--kvstore-opt=etcd.bootstrapQps=100000",
	}, flags...)}
	Ask[struct{}](t, p.Peer, "Publish.Open", args)
	return p
}

// Put creates or updates objects, kind by kind.
func (p Publisher) Put(t testing.TB, o model.Objects) {
	t.Helper()
	for _, part := range o.ByKind() {
		Ask[struct{}](t, p.Peer, "Publish.Put", part)
	}
}

// Delete deletes objects.
func (p Publisher) Delete(t testing.TB, o model.Objects) {
	t.Helper()
	for _, part := range o.ByKind() {
		Ask[struct{}](t, p.Peer, "Publish.Delete", part)
	}
}

// Synced marks the kinds as complete: all their objects were put.
func (p Publisher) Synced(t testing.TB, kinds ...model.Kind) {
	t.Helper()
	Ask[struct{}](t, p.Peer, "Publish.Synced", kinds)
}

// Reader is a peer that reads clusters as an agent does.
type Reader struct{ *Peer }

// Read starts a peer that reads the clusters of a directory of client configurations.
func Read(t testing.TB, release string, args model.ReadArgs) Reader {
	t.Helper()
	r := Reader{Start(t, release, "read")}
	if args.Options == nil {
		args.Options = map[string]string{"etcd.qps": "100000"}
	}
	Ask[struct{}](t, r.Peer, "Read.Open", args)
	return r
}

// Clusters returns the reader's status of the clusters that it reads.
func (r Reader) Clusters(t testing.TB) []model.RemoteCluster {
	t.Helper()
	return Ask[[]model.RemoteCluster](t, r.Peer, "Read.Clusters", struct{}{})
}

// View tells the objects that the reader holds.
func (r Reader) View(t testing.TB) model.Objects {
	t.Helper()
	var all model.Objects
	for _, kind := range model.Published() { // one by one, because they may be many
		all.Add(Ask[model.Objects](t, r.Peer, "Read.View", kind))
	}
	return all
}

// Ask calls a peer, which answers at once.
func Ask[R any](t testing.TB, p *Peer, method string, args any) R {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	reply, err := Call[R](ctx, p, method, args)
	Must(t, err)
	return reply
}
