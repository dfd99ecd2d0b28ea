package sim

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	kvetcd "github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestAgentsClientReadsASimulatedCluster uses the client of the agent, with
// nothing but the client file and the rights of a remote cluster.
func TestAgentsClientReadsASimulatedCluster(t *testing.T) {
	t.Parallel()
	r := loadCluster(t, Default("cluster2", 2), Options{})
	dir := t.TempDir()
	if err := r.WriteClientFiles(dir); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientfile.Load(filepath.Join(dir, "cluster2"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	o := kvetcd.DefaultOptions()
	o.Timings.ProbeInterval = 20 * time.Millisecond
	c, err := kvetcd.Connect(ctx, cfg, 0, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	probed := make(chan kvstore.Probe)
	probe := func(p kvstore.Probe) {
		select {
		case probed <- p:
		case <-ctx.Done():
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, probe) }()

	prefix := wire.IPs.Prefix("cluster2", false)
	seen := map[string]string{}
	at, err := c.List(ctx, prefix, func(p kvstore.Page) error {
		for _, e := range p.Items {
			seen[string(e.Key)] = string(e.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := c.Watch(ctx, prefix, at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Churn(ctx, 200); err != nil {
		t.Fatal(err)
	}
	head, err := c.Head(ctx)
	if err != nil {
		t.Fatal(err)
	}
	follow(t, stream, head, seen)
	stream.Close()
	for key, value := range r.Contents() {
		if strings.HasPrefix(key, prefix) {
			if seen[key] != value {
				t.Errorf("%s is %q, seen as %q", key, value, seen[key])
			}
			delete(seen, key)
		}
	}
	for key := range seen {
		t.Errorf("%s should be gone", key)
	}
	if p := <-probed; p.Err != nil {
		t.Errorf("probe: %v", p.Err)
	}
	cancel()
	<-ended
}

// follow applies the events of a stream up to a position.
func follow(t *testing.T, s kvstore.Stream, until kvstore.Position, into map[string]string) {
	t.Helper()
	for at := int64(0); at < until.Revision; {
		if err := s.RequestProgress(); err != nil {
			t.Fatal(err)
		}
		b, err := s.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			if e.Type == kvstore.EventPut {
				into[string(e.Key)] = string(e.Value)
			} else {
				delete(into, string(e.Key))
			}
		}
		if !b.Partial {
			at = b.At.Revision
		}
	}
}
