package allocate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
)

// directions are pairs: the side that allocates something, and the side that must respect it.
var directions = [][2]string{{"theirs", "ours"}, {"ours", "theirs"}}

// pair starts a node of each side on one etcd, the allocating one first.
func pair(t *testing.T, d [2]string) (client *clientv3.Client, allocates, respects node) {
	t.Helper()
	server := etcdtest.StartProcess(t)
	return server.Client(t), start(t, d[0], server.Endpoint(), "10.0.0.1"), start(t, d[1], server.Endpoint(), "10.0.0.2")
}

// acquiring has a node allocate a key; the channel gets the result.
func acquiring(t *testing.T, n node, key string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := n.acquire(t.Context(), key)
		done <- err
	}()
	return done
}

// TestALockOfOneSideHoldsTheOther: while one side holds the lock of a key, the other
// one queues behind it and allocates nothing, and allocates as soon as it is free.
func TestALockOfOneSideHoldsTheOther(t *testing.T) {
	t.Parallel()
	for _, d := range directions {
		t.Run(d[0]+" holds", func(t *testing.T) {
			t.Parallel()
			client, holder, waiter := pair(t, d)
			const key = "k8s:a=1;"
			unlock, err := holder.lock(t.Context(), key)
			interop.Must(t, err)
			done := acquiring(t, waiter, key)
			until(t, "the other side to queue", func() bool { return count(t, client, "locks/"+key+"/") == 2 })
			select {
			case err := <-done:
				t.Errorf("the other side did not wait: %v", err)
			default:
			}
			if n := count(t, client, "id/"); n != 0 {
				t.Errorf("%d mappings although the key is locked", n)
			}
			unlock()
			if err := <-done; err != nil {
				t.Error(err)
			}
			until(t, "no lock to be left", func() bool { return count(t, client, "locks/") == 0 })
		})
	}
}

// TestCollectionKeepsWhatTheOtherSideUses, and deletes it in the second round after
// the other side has released it.
func TestCollectionKeepsWhatTheOtherSideUses(t *testing.T) {
	t.Parallel()
	for _, d := range directions {
		t.Run(d[0]+" uses", func(t *testing.T) {
			t.Parallel()
			client, user, collector := pair(t, d)
			const keys = 50
			for i := range keys {
				if _, err := user.acquire(t.Context(), fmt.Sprintf("k8s:n=%d;", i)); err != nil {
					t.Fatal(err)
				}
			}
			for round, want := range []int64{keys, keys, keys, keys, 0} {
				if _, err := collector.gc(t.Context()); err != nil {
					t.Fatal(err)
				}
				if n := count(t, client, "id/"); n != want {
					t.Errorf("%d mappings after round %d, want %d", n, round, want)
				}
				if round != 2 {
					continue
				}
				for i := range keys {
					interop.Must(t, user.release(t.Context(), fmt.Sprintf("k8s:n=%d;", i)))
				}
				until(t, "the references to be gone", func() bool { return count(t, client, "value/") == 0 })
			}
		})
	}
}

// TestCollectionOfLocksTakesWhatTheOtherSideHolds: a lock of the other side that is
// held from one round to the next is deleted, and one that is not is left alone.
func TestCollectionOfLocksTakesWhatTheOtherSideHolds(t *testing.T) {
	t.Parallel()
	for _, d := range directions {
		t.Run(d[0]+" holds", func(t *testing.T) {
			t.Parallel()
			client, holder, collector := pair(t, d)
			unlock, err := holder.lock(t.Context(), "k8s:a=1;")
			interop.Must(t, err)
			for round, want := range []int64{1, 0} {
				interop.Must(t, collector.locksGC(t.Context()))
				if n := count(t, client, "locks/"); n != want {
					t.Errorf("%d locks after round %d, want %d", n, round, want)
				}
			}
			unlock()
			if _, err := collector.acquire(t.Context(), "k8s:a=1;"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAWaiterOutlivesTheCollectionOfLocks: a dead holder leaves a lock for
// which a node waits. Our collection deletes only the holder's lock, Cilium's also that of the
// waiter; in both cases the waiter gets the key.
func TestAWaiterOutlivesTheCollectionOfLocks(t *testing.T) {
	t.Parallel()
	for _, collects := range sides {
		for _, waits := range sides {
			t.Run(collects+" collects, "+waits+" wait", func(t *testing.T) {
				t.Parallel()
				server := etcdtest.StartProcess(t)
				client := server.Client(t)
				const key = "k8s:a=1;"
				holder := start(t, "theirs", server.Endpoint(), "10.0.0.1")
				if _, err := holder.lock(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				waiter, collector := start(t, waits, server.Endpoint(), "10.0.0.2"), start(t, collects, server.Endpoint(), "10.0.0.3")
				done := acquiring(t, waiter, key)
				until(t, "the waiter to queue", func() bool { return count(t, client, "locks/"+key+"/") == 2 })
				for range 2 {
					interop.Must(t, collector.locksGC(t.Context()))
				}
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(20 * time.Second): // less than the lock's lease
					t.Error("the waiter still waits")
				}
			})
		}
	}
}

// odd are keys whose text is not plain.
var odd = []string{
	"k8s:a=1;",
	"k8s:a=1;k8s:b=2;",
	"k8s:app=web;k8s:io.cilium.k8s.policy.cluster=east;k8s:io.kubernetes.pod.namespace=shop;",
	"any:empty=;",
	"k8s:equals=a=b=c;",
	"k8s:slash=a/b/c;",
	"k8s:slashes=a//b;",
	"k8s:ends=a/;",
	"cidr:10.0.0.0/8=;reserved:world=;",
	"k8s:space= a b ;",
	"k8s:ü=ß€😀;",
	"k8s:quote=\"'\\<>&;",
	"k8s:dots=../..;",
	"reserved:init=;",
}

// TestBothWriteTheSame: the keys and values of a mapping and of a reference, and the
// path of the lock, are the same from both sides, for the same ID.
func TestBothWriteTheSame(t *testing.T) {
	t.Parallel()
	written := map[string]string{}
	for _, side := range sides {
		server := etcdtest.StartProcess(t)
		client := server.Client(t)
		n := start(t, side, server.Endpoint(), "10.0.0.1")
		var all strings.Builder
		for _, key := range odd {
			unlock, err := n.lock(t.Context(), key)
			interop.Must(t, err)
			fmt.Fprintln(&all, strings.Join(dump(t, client, "locks/", 0), "\n"))
			unlock()
			id, err := n.acquire(t.Context(), key)
			if err != nil {
				t.Fatalf("%q: %v", key, err)
			}
			if id>>16 != clusterID {
				t.Errorf("%q: %d is none of cluster %d", key, id, clusterID)
			}
			fmt.Fprintln(&all, strings.Join(dump(t, client, "", id), "\n"))
			interop.Must(t, n.release(t.Context(), key))
			if _, err := client.Delete(t.Context(), base+"/", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
		}
		written[side] = all.String()
	}
	if written["ours"] != written["theirs"] {
		t.Errorf("theirs:\n%s\nours:\n%s", written["theirs"], written["ours"])
	}
}

// dump returns the keys and values below a part of the base. The ID is replaced,
// unless it is 0, also the leases at the end of locks.
func dump(t *testing.T, client *clientv3.Client, part string, id uint64) []string {
	t.Helper()
	resp, err := client.Get(t.Context(), base+"/"+part, clientv3.WithPrefix())
	interop.Must(t, err)
	var lines []string
	for _, kv := range resp.Kvs {
		key := string(kv.Key)
		if strings.HasPrefix(key, base+"/locks/") {
			lease := key[strings.LastIndexByte(key, '/')+1:]
			if lease != fmt.Sprintf("%x", kv.Lease) {
				t.Errorf("%q allocates not end in its lease %x", key, kv.Lease)
			}
			key = strings.TrimSuffix(key, lease) + "LEASE"
		}
		line := fmt.Sprintf("%q = %q leased=%t", key, kv.Value, kv.Lease != 0)
		if id != 0 {
			line = strings.ReplaceAll(line, fmt.Sprint(id), "ID")
		}
		lines = append(lines, line)
	}
	return lines
}
