package mirror

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// TestAStandbyTakesOver: there is a mirror of each side on one etcd; the first one copies and the other one waits. When
// the first one is killed, the other one continues with the present keys: it deletes only keys that the remote has
// deleted meanwhile, and attaches all others to its own leases. Our mirror deletes those keys at once; with Cilium's
// they expire with the lease of the first mirror.
func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	for _, d := range [][2]string{{"theirs", "ours"}, {"ours", "theirs"}} {
		t.Run(d[1]+" from "+d[0], func(t *testing.T) {
			t.Parallel()
			takeOver(t, d[0], d[1])
		})
	}
}

// leaseTTL is longer than the lock of a dead leader lasts, which is 25 seconds, plus the time that the next leader
// needs.
const leaseTTL = "--kvstore-lease-ttl=75s"

func takeOver(t *testing.T, leads, waits string) {
	w := newWorld(t)
	copy := etcdtest.StartProcess(t)
	client := copy.Client(t)
	p := interop.Publish(t, interop.Newest, w.file(), config())
	all := w.maker.Objects(0, 100)
	p.Put(t, all)
	p.Synced(t, model.Published()...)
	leader := w.start(leads, copy, leaseTTL)
	w.complete(client, all)
	w.queue(client, 1)
	w.start(waits, copy, leaseTTL)
	w.queue(client, 2)

	now := both(w.maker.Objects(0, 50), cut(all, 50, 100))
	p.Put(t, cut(now, 0, 50))
	r := w.reader(copy)
	w.shows("by the leader", r, now)
	before, err := entries(t.Context(), client)
	interop.Must(t, err)
	old := leases(before)
	from := revision(t, client)

	leader.Kill()
	killed := time.Now()
	p.Delete(t, cut(now, 90, 100))
	now = both(w.maker.Objects(0, 10), cut(now, 10, 90))
	p.Put(t, cut(now, 0, 10))
	w.shows("by the standby", r, now)
	took := time.Since(killed).Round(time.Second)
	w.queue(client, 1)
	interop.Until(t, "everything to be the new leader's", time.Minute, func(ctx context.Context) error {
		after, err := entries(ctx, client)
		for key, e := range after {
			if old[e.lease] && !strings.HasPrefix(key, wire.KVStoreMeshLockPath+"/") {
				return fmt.Errorf("%s still has a lease of the old leader", key)
			}
		}
		return err
	})
	deleted := 0
	for _, key := range deletions(t, client, from) {
		if strings.HasPrefix(key, wire.KVStoreMeshLockPath+"/") || strings.HasPrefix(key, "cilium/.initlock/") {
			continue
		}
		if deleted++; !strings.HasPrefix(key, "cilium/cache/") {
			t.Errorf("%s was deleted meanwhile", key)
		}
	}
	if want := cut(all, 90, 100).Len(); deleted != want {
		t.Errorf("%d entries were deleted meanwhile, want %d", deleted, want)
	}
	interop.KeepTrial(t, interop.Trial{
		Name: fmt.Sprintf("A mirror of %s takes over from a mirror of %s", sides[waits], sides[leads]), Release: interop.Newest,
		Figures: []interop.Figure{
			{Name: "entries", Value: fmt.Sprint(now.Len())},
			{Name: "seconds until the copy was correct", Value: fmt.Sprint(took.Seconds())},
			{Name: "seed", Value: fmt.Sprint(w.seed)},
		},
	})
}

// sides are the names of the sides in the report, by those in the tests.
var sides = map[string]string{"theirs": "Cilium", "ours": "mesh-agent"}

// queue waits until so many mirrors hold the lock or wait for it.
func (w *world) queue(client *clientv3.Client, n int) {
	w.Helper()
	interop.Until(w, fmt.Sprintf("%d mirrors to queue", n), time.Minute, func(ctx context.Context) error {
		all, err := entries(ctx, client)
		if got := count(all, wire.KVStoreMeshLockPath+"/"); err == nil && got != n {
			return fmt.Errorf("%d do", got)
		}
		return err
	})
}

// leases are the leases of all entries.
func leases(all map[string]entry) map[int64]bool {
	found := map[int64]bool{}
	for _, e := range all {
		found[e.lease] = true
	}
	return found
}

func revision(t *testing.T, client *clientv3.Client) int64 {
	t.Helper()
	resp, err := client.Get(t.Context(), wire.HeartbeatKey)
	interop.Must(t, err)
	return resp.Header.Revision
}

// deletions are the keys that were deleted after a revision.
func deletions(t *testing.T, client *clientv3.Client, after int64) []string {
	t.Helper()
	const end = "cilium/~" // sorts last
	if _, err := client.Put(t.Context(), end, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the history does not end"))
	defer cancel()
	var keys []string
	for resp := range client.Watch(ctx, "cilium/", clientv3.WithPrefix(), clientv3.WithRev(after+1)) {
		for _, e := range resp.Events {
			switch {
			case string(e.Kv.Key) == end:
				return keys
			case e.Type == mvccpb.Event_DELETE:
				keys = append(keys, string(e.Kv.Key))
			}
		}
	}
	t.Fatal(context.Cause(ctx))
	return nil
}
