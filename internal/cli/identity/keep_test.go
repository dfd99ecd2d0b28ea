package identity

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/cli/target"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestLocksOutliveTheirLease: a collection takes its locks under one lease, and may take longer than
// that lease lasts.
func TestLocksOutliveTheirLease(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	cfg, err := clientfile.New(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	settings := config.Default()
	settings.ClusterName, settings.ClusterID = "east", 2
	typed, err := settings.Typed()
	if err != nil {
		t.Fatal(err)
	}
	k := &target.Choice{Settings: config.NewSettings()}
	i, err := open(t.Context(), &target.Target{Cfg: cfg, Opts: etcd.DefaultOptions(), Settings: typed}, k)
	if err != nil {
		t.Fatal(err)
	}
	defer i.close()
	lock, err := i.client.Lock(t.Context(), "locked")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	client := server.Local()
	kvs, err := client.Get(t.Context(), lock.Key)
	if err != nil {
		t.Fatal(err)
	}
	lease, before := clientv3.LeaseID(kvs.Kvs[0].Lease), int64(-1)
	waittest.Until(t, "the lease to be kept alive", func() bool {
		left, err := client.TimeToLive(t.Context(), lease)
		if err != nil || left.TTL <= 0 {
			t.Fatalf("the lease has ended: %v", err)
		}
		kept := before >= 0 && left.TTL > before
		before = left.TTL
		return kept
	})
}

func TestMain(m *testing.M) { etcdtest.Main(m) }
