package identity_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/sessiontest"
)

// stored is a key as etcd has it.
type stored struct {
	value  string
	leased bool
}

func contents(t *testing.T, client *clientv3.Client) map[string]stored {
	t.Helper()
	resp, err := client.Get(t.Context(), "", clientv3.WithPrefix())
	must(t, err)
	all := make(map[string]stored)
	for _, kv := range resp.Kvs {
		all[string(kv.Key)] = stored{string(kv.Value), kv.Lease != 0}
	}
	return all
}

// TestGoldenAllocation allocates the recorded identities on an etcd, which then
// holds what Cilium's own allocator writes, byte for byte, mappings without and
// references with a lease; while a lock is held, its key as well.
func TestGoldenAllocation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/golden/identities.json")
	must(t, err)
	var vectors []struct {
		Key            string `json:"key"`
		Value          string `json:"value"`
		Reference      string `json:"value_key"`
		ReferenceValue string `json:"value_key_value"`
		LockPath       string `json:"lock_path_allocate"`
	}
	if err := json.Unmarshal(text, &vectors); err != nil || len(vectors) < 10 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	server := etcdtest.Start(t)
	client := sessiontest.Connect(t, server.Endpoint())
	backend, err := kvbackend.New(client, kvbackend.Config{Paths: wire.IdentityAllocation, Node: "192.168.2.10", Keys: identity.Key{}})
	must(t, err)
	want := make(map[string]stored)
	for _, v := range vectors {
		key, err := identity.Key{}.PutKey(v.Value)
		must(t, err)
		id, err := wire.DecodeAllocatedID(v.ReferenceValue)
		must(t, err)
		// A range of one number leaves no choice.
		a, err := allocator.NewAllocator(backend, allocator.WithMin(id), allocator.WithMax(id))
		must(t, err)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		if got, isNew, first, err := a.Allocate(ctx, key); got != id || !isNew || !first || err != nil {
			t.Errorf("%s: %d, new %v, first use %v, %v; want %d", v.Value, got, isNew, first, err, id)
		}
		stop()
		<-ended
		want[v.Key], want[v.Reference] = stored{v.Value, false}, stored{v.ReferenceValue, true}

		lock, err := backend.Lock(t.Context(), key)
		must(t, err)
		compare(t, contents(t, server.Local()), want, v.LockPath)
		lock.Unlock()
	}
	compare(t, contents(t, server.Local()), want, "")
}

// compare compares the keys of an etcd with the wanted ones, and with one lock of a path if it is not empty.
func compare(t *testing.T, got, want map[string]stored, lock string) {
	t.Helper()
	locks := 0
	for key, s := range got {
		if w, ok := want[key]; ok {
			if s != w {
				t.Errorf("%s is %+v, want %+v", key, s, w)
			}
			continue
		}
		path, lease := key[:strings.LastIndexByte(key, '/')], key[strings.LastIndexByte(key, '/')+1:]
		var id int64
		if _, err := fmt.Sscanf(lease, "%x", &id); err != nil || path != lock || s != (stored{"", true}) || fmt.Sprintf("%x", id) != lease {
			t.Errorf("%s is %+v, wanted by nobody", key, s)
		}
		locks++
	}
	if (lock != "") != (locks == 1) {
		t.Errorf("%d locks, of %q", locks, lock)
	}
	for key := range want {
		if _, ok := got[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
}
