package identity_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mesh-agent/mesh-agent/internal/own/identity"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/sessiontest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// onBoth runs a test on the kvstore in memory and on a real etcd.
func onBoth(t *testing.T, test func(t *testing.T, client kvstore.Writer, compact func())) {
	t.Helper()
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		m := memory.New()
		test(t, m, func() { m.Compact() })
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		server := etcdtest.Start(t)
		test(t, sessiontest.Connect(t, server.Endpoint()), func() { server.Compact(t) })
	})
}

func put(t *testing.T, client kvstore.Writer, kvs ...string) {
	t.Helper()
	for i := 0; i < len(kvs); i += 2 {
		if _, err := client.Put(t.Context(), kvs[i], []byte(kvs[i+1])); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, client kvstore.Writer, place identity.Place) *identity.Contents {
	t.Helper()
	c, err := identity.Read(t.Context(), client, place, identity.History)
	must(t, err)
	return c
}

func TestEverythingThatHasToDoWithIdentitiesIsRead(t *testing.T) {
	onBoth(t, func(t *testing.T, client kvstore.Writer, _ func()) {
		paths := wire.IdentityAllocation
		pair := wire.NewHostPair(netip.MustParseAddr("10.1.0.1"))
		pair.Identity = 131072
		put(t, client,
			paths.Mapping(131072), "k8s:a=1;",
			string(paths)+"/id/x", "k8s:b=1;",
			paths.Mapping(131073), ";;",
			paths.Reference("k8s:a=1;", "10.0.0.1"), "131072",
			paths.Reference("k8s:c=1;", "10.0.0.1"), "zero",
			string(paths)+"/value/10.0.0.1", "131072",
			pair.Key(), string(pair.Encode()),
			wire.IPs.Prefix("", false)+"nonsense", "{}",
		)
		want := &identity.Contents{
			Mappings:   []identity.Mapping{{ID: 131072, Key: "k8s:a=1;"}},
			Unreadable: []identity.Mapping{{ID: 131073, Key: ";;"}},
			References: []identity.Reference{{Key: "k8s:a=1;", Node: "10.0.0.1", ID: 131072}},
			Uses:       []identity.Use{{Address: "10.1.0.1", ID: 131072}},
			Malformed: []identity.Malformed{
				{Key: string(paths) + "/id/131073"},
				{Key: string(paths) + "/id/x"},
				{Key: string(paths) + "/value/10.0.0.1"},
				{Key: paths.Reference("k8s:c=1;", "10.0.0.1")},
				{Key: wire.IPs.Prefix("", false) + "nonsense"},
			},
		}
		got := read(t, client, identity.OwnPlace())
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(identity.Mapping{}, "Revision"), cmpopts.IgnoreFields(identity.Malformed{}, "Why")); diff != "" {
			t.Error(diff)
		}
		for _, m := range got.Malformed {
			if m.Why == "" {
				t.Errorf("why %s cannot be read is not said", m.Key)
			}
		}
	})
}

// recorder is a client that notes what it is asked for.
type recorder struct {
	kvstore.Client
	asked []string
}

func (r *recorder) List(ctx context.Context, prefix string, page func(kvstore.Page) error, opts ...kvstore.ReadOption) (kvstore.Position, error) {
	r.asked = append(r.asked, prefix)
	return r.Client.List(ctx, prefix, page, opts...)
}

func (r *recorder) Recall(ctx context.Context, prefix, from string, at kvstore.Position, limit int, opts ...kvstore.SelectOption) (kvstore.Past, error) {
	r.asked = append(r.asked, prefix)
	return r.Client.Recall(ctx, prefix, from, at, limit, opts...)
}

func TestNoMoreIsReadThanIsAskedFor(t *testing.T) {
	t.Parallel()
	all := []string{wire.IdentityAllocation.Mappings(), wire.IdentityAllocation.References(), wire.IPs.Prefix("", false), wire.HeartbeatKey}
	for depth, want := range map[identity.Depth][]string{identity.Allocations: all[:2], identity.Addresses: all[:3], identity.History: all} {
		r := &recorder{Client: memory.New()}
		if _, err := identity.Read(t.Context(), r, identity.OwnPlace(), depth); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.asked); diff != "" {
			t.Errorf("at the depth %d:\n%s", depth, diff)
		}
	}
}

func TestAMirrorsCopyIsRead(t *testing.T) {
	onBoth(t, func(t *testing.T, client kvstore.Writer, _ func()) {
		put(t, client, "cilium/cache/identities/v1/west/id/196608", "k8s:a=1;", wire.IdentityAllocation.Mapping(131072), "k8s:b=1;")
		got := read(t, client, identity.CachedPlace("west"))
		if len(got.Mappings) != 1 || got.Mappings[0].ID != 196608 || got.Mappings[0].Key != "k8s:a=1;" {
			t.Errorf("%+v", got.Mappings)
		}
	})
}

// TestThePaceIsThatOfTheKnownHistory: the time is the heartbeats', and begins
// where the history begins.
func TestThePaceIsThatOfTheKnownHistory(t *testing.T) {
	onBoth(t, func(t *testing.T, client kvstore.Writer, compact func()) {
		now := time.Now().Truncate(time.Second)
		heartbeat := func(ago time.Duration) {
			t.Helper()
			put(t, client, wire.HeartbeatKey, string(wire.EncodeTimestamp(now.Add(-ago))))
		}
		pace := func(made int, in time.Duration) {
			t.Helper()
			if got := read(t, client, identity.OwnPlace()).Pace; got != (identity.Pace{Made: made, In: in}) {
				t.Errorf("%d in %s, want %d in %s", got.Made, got.In, made, in)
			}
		}
		n := uint64(131072)
		mapping := func() {
			t.Helper()
			n++
			put(t, client, wire.IdentityAllocation.Mapping(n), "k8s:n="+string(wire.EncodeAllocatedID(n))+";")
		}
		mapping()
		pace(0, 0) // no heartbeat, no time
		heartbeat(10 * time.Minute)
		mapping()
		pace(0, 0) // one is not enough
		heartbeat(5 * time.Minute)
		mapping()
		heartbeat(4 * time.Minute)
		pace(2, 6*time.Minute)
		compact()
		mapping()
		heartbeat(0)
		pace(1, 4*time.Minute)
		put(t, client, wire.HeartbeatKey, "now")
		pace(0, 0)
	})
}

var must = waittest.Must
