package publish

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/own/manifests"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var _ Target = (*syncstore.Sync)(nil)

// keys are the names below a prefix that a reader accepts.
func keys(t *testing.T, from *memory.Store, prefix string, accepts func(name string, value []byte) error) (names []string) {
	t.Helper()
	_, err := from.List(t.Context(), prefix, func(p kvstore.Page) error {
		for _, kv := range p.Items {
			name := string(kv.Key[len(prefix):])
			if err := accepts(name, kv.Value); err != nil {
				t.Errorf("a reader refuses %s: %v", kv.Key, err)
			}
			names = append(names, name)
		}
		return nil
	})
	must(t, err)
	return names
}

// From a directory of manifests to keys that a reader accepts, and back to none
// when the manifests are gone.
func TestFromManifestsToKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("apiVersion: v1\nkind: List\nitems:\n"+
		"- {apiVersion: v1, kind: Service, "+globalService("a")[1:]+"\n"+
		"- {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, "+slice("a-1", "a", "10.1.0.1")[1:]+"\n"+
		"- {apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, metadata: {namespace: prod, name: a}}\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "b.yaml"), []byte("{apiVersion: v1, kind: Service, "+globalService("b")[1:]), 0o600))

	mem := memory.New()
	outbox := syncstore.NewOutbox(mem, nil, nil, nil)
	e := wire.Expect{Cluster: "cluster2", ClusterID: 2}
	prefix := func(r wire.Resource) string { return r.Prefix("cluster2", false) }
	sync := func(r wire.Resource) *syncstore.Sync {
		mem.Set(prefix(r)+"prod/left-behind", "by another process")
		s := syncstore.New(syncstore.Params{Prefix: prefix(r), Outbox: outbox})
		w.start(s.Run)
		return s
	}
	services, slices, exports := sync(wire.Services), sync(wire.EndpointSlices), sync(wire.ServiceExports)
	w.start(func(ctx context.Context) error { return mem.Run(ctx, nil) })
	w.start(outbox.Run)
	w.start(manifests.New(dir, w.cluster, discard()).Run)
	w.start(NewServices(w.cluster, cluster2(), true, ServiceTargets{services, slices, exports}).Run)

	published := func() (all [3][]string) {
		t.Helper()
		all[0] = keys(t, mem, prefix(wire.Services), func(name string, value []byte) error {
			_, err := wire.DecodeService(name, value, e)
			return err
		})
		all[1] = keys(t, mem, prefix(wire.EndpointSlices), func(name string, value []byte) error {
			_, err := wire.DecodeEndpointSlice(name, value, e)
			return err
		})
		all[2] = keys(t, mem, prefix(wire.ServiceExports), func(name string, value []byte) error {
			_, err := wire.DecodeServiceExport(name, value, e)
			return err
		})
		return all
	}
	ctx := waittest.Context(t)
	for _, s := range []*syncstore.Sync{services, slices, exports} {
		must(t, s.WaitClean(ctx))
	}
	if d := cmp.Diff([3][]string{{"prod/a", "prod/b"}, {"prod/a-1"}, {"prod/a"}}, published()); d != "" {
		t.Errorf("published (-want +got):\n%s", d)
	}
	head, err := mem.Head(ctx)
	must(t, err)
	stream, err := mem.Watch(ctx, "cilium/state/", head)
	must(t, err)
	defer stream.Close()
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	for gone := 0; gone < 3; {
		batch, err := stream.Recv()
		must(t, err)
		for _, event := range batch.Events {
			if event.Type == kvstore.EventDelete {
				gone++
			}
		}
	}
	if d := cmp.Diff([3][]string{{"prod/b"}, nil, nil}, published()); d != "" {
		t.Errorf("published after one file is gone (-want +got):\n%s", d)
	}
}
