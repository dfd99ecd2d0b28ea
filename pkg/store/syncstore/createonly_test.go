package syncstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// createOnce creates a key without a lease, and returns its revision; 0 if another client has created it. A busy etcd
// may time out for a transaction that it nevertheless executes.
func createOnce(ctx context.Context, client *clientv3.Client, key, value string) (int64, error) {
	for {
		resp, err := client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
		switch {
		case errors.Is(err, rpctypes.ErrTimeout):
		case err != nil:
			return 0, err
		case resp.Succeeded:
			return resp.Header.Revision, nil
		default:
			if kv := resp.Responses[0].GetResponseRange().Kvs[0]; kv.Lease == 0 {
				return kv.ModRevision, nil
			}
			return 0, nil
		}
	}
}

// TestOfTwoCreatorsOneHasTheKey: another client creates the same keys at the same time, without a lease. Its keys stay
// unchanged to the end, and the owner of the Sync is notified. The keys that it deletes become ours.
func TestOfTwoCreatorsOneHasTheKey(t *testing.T) {
	t.Parallel()
	keys := 2000
	if testing.Short() {
		keys = 500
	}
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%t", shared), func(t *testing.T) {
			t.Parallel()
			srv := etcdtest.Start(t)
			want := some(keys)
			names := slices.Sorted(maps.Keys(want))
			p := publish(t, hurried(), at(srv.Endpoint()), func(params *Params) { params.Shared, params.CreateOnly = shared, true })
			theirs := make(map[string]int64) // their revisions
			created := make(chan error, 1)
			go func() {
				for i, name := range slices.Backward(names) {
					if i == 0 {
						break // so that at least one is ours, regardless of the timing
					}
					value := "theirs"
					if i%2 == 0 {
						value = want[name] // the wanted value, so it is no contradiction
					}
					rev, err := createOnce(t.Context(), srv.Local(), testPrefix+name, value)
					if err != nil {
						created <- err
						return
					}
					if rev > 0 {
						theirs[name] = rev
					}
				}
				created <- nil
			}()
			p.put(want)
			must(t, <-created)
			p.clean()
			if len(theirs) == 0 || len(theirs) == len(want) {
				t.Logf("the two have not met: %d of %d are theirs", len(theirs), len(want))
			}
			contradicts := map[string]string{}
			for name := range theirs {
				if i, _ := slices.BinarySearch(names, name); i%2 != 0 {
					contradicts[name] = "theirs"
				}
			}
			untouched := func() {
				t.Helper()
				resp, err := srv.Local().Get(t.Context(), testPrefix, clientv3.WithPrefix())
				must(t, err)
				for _, kv := range resp.Kvs {
					name := string(kv.Key[len(testPrefix):])
					if rev, is := theirs[name]; is && (kv.ModRevision != rev || kv.Lease != 0) {
						t.Errorf("%s was created by the other at %d and is now of %d, with the lease %x and the value %s", name, rev, kv.ModRevision, kv.Lease, kv.Value)
					}
					if _, is := theirs[name]; !is && (kv.Lease == 0 || string(kv.Value) != want[name]) {
						t.Errorf("%s is %s with the lease %x", name, kv.Value, kv.Lease)
					}
				}
				reported := map[string]string{}
				for _, c := range p.sync.Contradictions() {
					if reported[c.Name] = string(c.Theirs); string(c.Wanted) != want[c.Name] {
						t.Errorf("%s is said to be wanted as %s", c.Name, c.Wanted)
					}
				}
				if !maps.Equal(reported, contradicts) {
					t.Errorf("%d contradictions are reported, there are %d", len(reported), len(contradicts))
				}
			}
			untouched()

			// One of our keys is replaced by the other client, one of its keys is deleted, and some are no longer
			// wanted.
			ours := nameWithout(want, theirs)
			rev := srv.Put(t, testPrefix+ours, "theirs")
			theirs[ours], contradicts[ours] = rev, "theirs"
			until(t, func() bool { return len(p.sync.Contradictions()) == len(contradicts) })
			for name := range contradicts {
				if name == ours {
					continue
				}
				srv.Delete(t, testPrefix+name)
				delete(theirs, name)
				delete(contradicts, name)
				break
			}
			until(t, func() bool { return len(p.sync.Contradictions()) == len(contradicts) })
			p.clean()
			untouched()
			for name := range theirs {
				p.sync.Delete(name)
				delete(contradicts, name)
			}
			p.clean()
			untouched()
		})
	}
}

// nameWithout returns the first name of all that is not in without.
func nameWithout(all map[string]string, without map[string]int64) string {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, is := without[name]; !is {
			return name
		}
	}
	return ""
}

// TestAWriteThatIsUnderWayReplacesNothing: the other client creates the key after the Sync has found that it does not
// exist, and before the write of the Sync arrives.
func TestAWriteThatIsUnderWayReplacesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	arrives, goes := make(chan struct{}), make(chan struct{})
	first := true
	d.mem.SetFault(func(ctx context.Context, op, _ string) error {
		if op == "update" && first {
			first = false
			close(arrives)
			<-goes
		}
		return nil
	})
	s := d.sync(Params{Prefix: "p/", Shared: true, CreateOnly: true})
	s.Put("a", []byte("ours"))
	s.Put("b", []byte("ours"))
	s.Complete()
	<-arrives
	d.mem.Set("p/a", "theirs")
	close(goes)
	d.clean(s)
	d.until("p/", map[string]string{"a": "theirs", "b": "ours"})
	if all := s.Contradictions(); len(all) != 1 || all[0].Name != "a" || string(all[0].Wanted) != "ours" || string(all[0].Theirs) != "theirs" {
		t.Errorf("%+v", all)
	}
	d.mem.Unset("p/a")
	d.until("p/", map[string]string{"a": "ours", "b": "ours"})
	until(t, func() bool { return len(s.Contradictions()) == 0 })
}

func until(t testing.TB, cond func() bool) {
	t.Helper()
	eventually(t, func() error {
		if cond() {
			return nil
		}
		return errors.New("not yet")
	})
}

// TestAKeyThatABackupBringsBackIsDeletedAgain: a kvstore that is restored from a backup has a key again that was deleted
// since, with a lease that is kept alive. Those of others stay.
func TestAKeyThatABackupBringsBackIsDeletedAgain(t *testing.T) {
	t.Parallel()
	for i := range 8 {
		// The restored server reaches the revision that was followed, perhaps one that was listed.
		createOnly, resumes, lists := i%2 == 0, i%4 < 2, i < 4
		t.Run(fmt.Sprintf("create only: %t, resumes: %t, lists: %t", createOnly, resumes, lists), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, nil)
			d.mem.Set("p/theirs", "1")
			leases := kvstore.NewLeases()
			w := kvstore.NewDurable(func(context.Context, int) (kvstore.Session, error) { return d.mem.ConnectWith(leases), nil }, kvstore.DurableOptions{Leases: leases})
			d.run(w.Run)
			s := d.through(w, Params{Shared: true, CreateOnly: createOnly, Sole: true})
			s.Put("a", []byte("1"))
			s.Put("b", []byte("1"))
			s.Complete()
			d.until("p/", map[string]string{"a": "1", "b": "1", "theirs": "1"})
			backup := d.mem.Backup()
			s.Delete("a")
			d.until("p/", map[string]string{"b": "1", "theirs": "1"})
			if lists {
				before := s.follower.Progress().Lists
				d.mem.Set("q/other", "0")
				d.mem.Compact()
				d.mem.Break(nil)
				waittest.Until(t, "another list", func() bool {
					return s.follower.Progress().Lists > before && s.follower.Status().Following
				})
			}
			d.mem.Restore(backup)
			for range 2 {
				if resumes {
					d.mem.Set("q/other", "1")
				}
			}
			d.until("p/", map[string]string{"b": "1", "theirs": "1"})
		})
	}
}
