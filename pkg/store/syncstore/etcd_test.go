package syncstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestAllComesBackAfterTheLeases: the server ends the leases; all keys are written again, and the canary last.
func TestAllComesBackAfterTheLeases(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	want := some(2500)
	p := publish(t, hurried(), at(srv.Endpoint()), nil)
	p.put(want)
	before := p.await(srv.Local(), want)
	before.last(t)
	if len(before.leases) < 3 {
		t.Errorf("%d keys have %d leases", len(want), len(before.leases))
	}
	for lease := range before.leases {
		if _, err := srv.Local().Revoke(t.Context(), clientv3.LeaseID(lease)); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "the canary to be written again", func() bool {
		is := read(t, srv.Local())
		return is.canary != nil && is.canary.ModRevision != before.canary.ModRevision
	})
	p.await(srv.Local(), want).last(t)
}

// TestAllComesBackAfterTheLeasesRanOut: the writer cannot reach the server until its leases have ended.
func TestAllComesBackAfterTheLeasesRanOut(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	gate := etcdserver.NewGate("127.0.0.1:0")
	defer gate.Close()
	must(t, gate.Open(srv.Addr()))
	o := hurried()
	o.LeaseTTL = 2 * time.Second
	want := some(300)
	p := publish(t, o, at("http://"+gate.Addr()), nil)
	p.put(want)
	before := p.await(srv.Local(), want)
	gate.Shut()
	eventually(t, func() error {
		if is := read(t, srv.Local()); len(is.values) > 0 || is.canary != nil {
			return fmt.Errorf("%d keys are left", len(is.values))
		}
		return nil
	})
	must(t, gate.Open(srv.Addr()))
	after := p.await(srv.Local(), want)
	after.last(t)
	if after.canary.ModRevision == before.canary.ModRevision {
		t.Error("the canary is the one of before")
	}
}

// TestAllComesBackAfterTheServer: the server is killed and restarts empty, as the same etcd or as another one, or with
// its data.
func TestAllComesBackAfterTheServer(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]func(*etcdtest.Process, testing.TB){
		"under the same token": (*etcdtest.Process).RestartEmpty,
		"as another etcd":      (*etcdtest.Process).RestartAsOther,
		"with its data":        (*etcdtest.Process).Restart,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := etcdtest.StartProcess(t)
			want := some(1000)
			p := publish(t, hurried(), at(srv.Endpoint()), nil)
			p.put(want)
			p.await(srv.Client(t), want)
			names := slices.Sorted(maps.Keys(want))
			srv.Kill(t)
			for i, name := range names[:100] { // changes continue
				want[name] = fmt.Sprint("new ", i)
				p.sync.Put(name, []byte(want[name]))
			}
			p.sync.Delete(names[100])
			delete(want, names[100])
			restart(srv, t)
			is := p.await(srv.Client(t), want)
			if name != "with its data" {
				is.last(t)
			}
		})
	}
}

// TestARestartWithOtherContents: each key is written once, for the lease of the new process. Keys that are no longer
// wanted are deleted after the owner has given all.
func TestARestartWithOtherContents(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	want := some(500)
	p := publish(t, hurried(), at(srv.Endpoint()), nil)
	p.put(want)
	before := p.await(srv.Local(), want)
	p.stop()
	names := slices.Sorted(maps.Keys(want))
	for _, name := range names[:50] {
		delete(want, name)
	}
	for _, name := range names[50:60] {
		want[name] = "changed"
	}
	maps.Copy(want, map[string]string{"new/1": "1", "new/2": "2"})
	p = publish(t, hurried(), at(srv.Endpoint()), nil)
	p.sync.Put("new/1", []byte("1"))
	waittest.Until(t, "a new key", func() bool { return read(t, srv.Local()).values["new/1"] == "1" })
	if is := read(t, srv.Local()); len(is.values) != 501 {
		t.Errorf("%d keys before everything is known", len(is.values))
	}
	p.put(want)
	p.await(srv.Local(), want).last(t)
	h := history(t, srv.Local(), before.rev)
	if h.deletes != 50 || len(h.puts) != len(want) || h.canary != 1 {
		t.Errorf("%d keys were written, of %d, %d deleted, of 50, and the canary %d times", len(h.puts), len(want), h.deletes, h.canary)
	}
	for name, n := range h.puts {
		if n != 1 {
			t.Errorf("%s was written %d times", name, n)
		}
	}
}

// TestAChangeIsOneWrite: without changes nothing is written, and a change increases the revision by one.
func TestAChangeIsOneWrite(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	want := some(100)
	p := publish(t, hurried(), at(srv.Endpoint()), nil)
	p.put(want)
	rev := p.await(srv.Local(), want).rev
	names := slices.Sorted(maps.Keys(want))
	for i := range 20 {
		name := names[i]
		if i%4 == 3 {
			delete(want, name)
			p.sync.Delete(name)
		} else {
			want[name] = "changed"
			p.sync.Put(name, []byte("changed"))
		}
		p.clean()
		if is := read(t, srv.Local()); is.rev != rev+1 {
			t.Fatalf("a change has moved the revision from %d to %d", rev, is.rev)
		} else if rev = is.rev; true {
			if diff := cmp.Diff(want, is.values); diff != "" {
				t.Fatal(diff)
			}
		}
		p.put(want) // unchanged
	}
}

// TestADeniedKeyHoldsUpNobody: it is tried again, and written once the rights allow it.
func TestADeniedKeyHoldsUpNobody(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	bad := testPrefix + "bad"
	srv.EnableAuth(t, etcdserver.User{Name: "w", Password: "w", Role: []etcdserver.Range{
		{Key: testPrefix, End: bad, Write: true},
		{Key: bad + "\x00", End: clientv3.GetPrefixRangeEnd(testPrefix), Write: true},
		{Key: bad},
		etcdserver.Prefix("cilium/.heartbeat"),
		{Key: testDir, End: clientv3.GetPrefixRangeEnd(testDir), Write: true},
	}})
	root := srv.ClientAs(t, "root", "root")
	path := srv.ConfigFile(t, "username: w", "password: w")
	p := publish(t, hurried(), func() (*clientfile.Config, error) { return clientfile.Load(path) }, nil)
	want := some(300)
	p.put(want)
	p.sync.Put("bad", []byte("1"))
	eventually(t, func() error {
		st := p.sync.Status()
		if st.Failed != 1 || st.Pending != 1 || st.Errors < 2 || !strings.Contains(st.Err, bad) || !strings.Contains(st.Err, "permission denied") {
			return fmt.Errorf("%+v", st)
		}
		return nil
	})
	if diff := cmp.Diff(want, read(t, root).values); diff != "" {
		t.Error(diff)
	}
	for range 20 {
		p.sync.Put("good", fmt.Append(nil, time.Now()))
	}
	p.sync.Put("good", []byte("1"))
	want["good"] = "1"
	eventually(t, func() error {
		is := read(t, root)
		if is.canary != nil {
			t.Fatal("there is a canary, although a key is missing")
		}
		if diff := cmp.Diff(want, is.values); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	p.sync.Put("bad", []byte("2")) // the first value is never written, even after the rights are granted
	want["bad"] = "2"
	if _, err := root.RoleGrantPermission(t.Context(), "w", bad, "", clientv3.PermissionType(clientv3.PermReadWrite)); err != nil {
		t.Fatal(err)
	}
	p.await(root, want).last(t)
	if st := p.sync.Status(); st.Failed != 0 || st.Pending != 0 || st.Err != "" || !st.Synced {
		t.Errorf("%+v", st)
	}
}

// TestALostLockEndsWriting: Run of the outbox and of the canaries return the error, and nothing more is written.
func TestALostLockEndsWriting(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	w := etcd.NewDurable(at(srv.Endpoint()), hurried())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 3)
	go func() { done <- w.Run(ctx) }()
	lock, err := w.Lock(ctx, "leader")
	must(t, err)
	o := NewOutbox(w, func() *kvstore.Lock { return lock }, nil, nil)
	written := make(chan error, 1)
	go func() { written <- o.Run(ctx) }()
	s := New(Params{Prefix: testPrefix, Outbox: o})
	go func() { done <- s.Run(ctx) }()
	c := NewCanaries(CanariesParams{Dir: testDir, Writer: w, Holding: func() *kvstore.Lock { return lock }})
	c.Add(testCanary, s)
	canaries := make(chan error, 1)
	go func() { canaries <- c.Run(ctx) }()
	p := &publisher{t: t, w: w, sync: s}
	p.put(some(10))
	p.await(srv.Local(), some(10))
	srv.Delete(t, lock.Key)
	rev := srv.Delete(t, testDir+testCanary)
	ends := func(what string, ended <-chan error) {
		t.Helper()
		if err := waittest.Receive(t, what+" to end", ended); !errors.Is(err, kvstore.ErrLockLeaseExpired) {
			t.Errorf("%s ended with %v", what, err)
		}
	}
	ends("the canaries", canaries)
	s.Put("more", []byte("1"))
	ends("the outbox", written)
	s.Put("still more", []byte("1"))
	if is := read(t, srv.Local()); is.rev != rev {
		t.Errorf("the revision is %d, and was %d when the lock was lost", is.rev, rev)
	}
	cancel()
	for range 2 {
		<-done
	}
	w.Close()
}
