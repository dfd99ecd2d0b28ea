package kvtest

import (
	"errors"
	"fmt"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func watchCases(is cases) {
	// It writes while the list is being read and the watch opened.
	is("watch follows a list without gap or duplicate", func(e *env) {
		const n = 300
		last := e.fill("p/", 20) + n // the revision of the last write
		c := e.open()
		started := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range n {
				if i == n/10 {
					close(started)
				}
				e.put(fmt.Sprintf("p/%03d", i%40), fmt.Sprintf("w%d", i))
			}
		}()
		<-started
		revisions := func() (map[string]int64, kvstore.Position) {
			all := make(map[string]int64)
			items, at := e.list(c, "p/")
			for _, kv := range items {
				all[string(kv.Key)] = kv.ModRevision
			}
			return all, at
		}
		model, at := revisions()
		s := e.watch(c, "p/", at)
		for next := at.Revision + 1; next <= last; {
			for _, ev := range e.events(s, 1) {
				e.fatalIf(ev.ModRevision != next, "revision %d, want %d", ev.ModRevision, next)
				next++
				model[string(ev.Key)] = ev.ModRevision
			}
		}
		<-done
		want, _ := revisions()
		e.same("revisions", want, model)
	})
	is.onClient("watch takes what ends in a slash as a prefix, and one key with OneKey", func(e *env, c kvstore.Client) {
		at := e.head(c)
		e.put("a", "1", "a/", "2", "a/b", "3", "a0", "4")
		e.put("ba", "", "b/", "", "b", "5", "a/c", "6")
		e.same("events", []string{"put a/=2@1", "put a/b=3@1", "put a/c=6@2"}, e.follow(c, "a/", at, 3))
		e.same("events", []string{"put b=5@2"}, e.follow(c, "b", at, 1, kvstore.OneKey()))
	})
	is.onClient("a revision is not split over batches", func(e *env, c kvstore.Client) {
		at := e.head(c)
		var kvs []string
		for i := range 40 {
			kvs = append(kvs, fmt.Sprintf("p/%03d", i), "v")
		}
		for range 20 {
			e.put(kvs...)
		}
		s := e.watch(c, "p/", at)
		for got := 0; got < 20*40; {
			b := e.recv(s)
			got += len(b.Events)
			e.fatalIf(got%40 != 0 && !b.Partial, "a batch splits a revision: %d events so far", got)
		}
	})
	is.onClient("two streams of one prefix do not know of each other", func(e *env, c kvstore.Client) {
		at := e.head(c)
		a, b := e.watch(c, "p/", at), e.watch(c, "p/", at)
		e.fill("p/", 3)
		first := text(at, e.events(a, 3))
		a.Close()
		e.put("p/last", "")
		e.same("events", first, text(at, e.events(b, 4))[:3])
	})
	is.onWriter("an event tells whether it has created the key; a deletion has its revision and no value", func(e *env, w kvstore.Writer) {
		at := e.head(w)
		e.put("p/a", "1")
		e.put("p/a", "2", "p/b", "1")
		e.store.Delete(e.T, "p/absent")
		e.store.Delete(e.T, "p/a")
		e.put("p/a", "3")
		e.do(w.Put(e.ctx, "p/a", []byte("4")))
		e.do(w.Put(e.ctx, "p/c", []byte("1"), kvstore.IfAbsent()))
		var got []string
		for _, ev := range e.events(e.watch(w, "p/", at), 7) {
			got = append(got, fmt.Sprintf("%d %s %s=%s %t", ev.ModRevision-at.Revision, ev.Type, ev.Key, ev.Value, ev.Created))
		}
		want := []string{
			"1 put p/a=1 true", "2 put p/a=2 false", "2 put p/b=1 true", "3 delete p/a= false", "4 put p/a=3 true", "5 put p/a=4 false", "6 put p/c=1 true",
		}
		e.same("events", want, got)
	})
	is.onClient("watch fails as compacted from before the compacted revision, and delivers that", func(e *env, c kvstore.Client) {
		at := e.head(c)
		e.fill("p/", 5)
		rev := e.put("p/k", "v")
		e.store.Compact(e.T)
		s, err := c.Watch(e.ctx, "p/", at)
		if err == nil {
			defer s.Close()
			_, err = s.Recv()
		}
		e.wantErr("watch", err, kvstore.ErrCompacted)
		ke, is := errors.AsType[*kvstore.KeyError](err)
		e.errorIf(!is || ke.Op != "watch" || ke.Key != "p/", "error %#v, want a KeyError of watch and p/", err)
		at.Revision = rev - 1
		e.same("the event", []string{"put p/k=v@1"}, e.follow(c, "p/", at, 1))
	})
	is.onClient("a stream that is up to date does not notice a compaction", func(e *env, c kvstore.Client) {
		s := e.watch(c, "p/", e.head(c))
		for range 3 {
			rev := e.put("p/k", "v")
			e.same("the revision", rev, e.events(s, 1)[0].ModRevision)
			e.store.Compact(e.T)
		}
	})
	is.onClient("watch from an old position delivers all since; unread it holds up neither reads nor other streams", func(e *env, c kvstore.Client) {
		at := e.head(c)
		lazy := e.watch(c, "p/", at)
		e.fill("p/", 500)
		for _, s := range []kvstore.Stream{e.watch(c, "p/", at), lazy} {
			items, _ := e.list(c, "p/")
			e.same("keys", 500, len(items))
			for i, ev := range e.events(s, 500) {
				if want := at.Revision + 1 + int64(i); ev.ModRevision != want || string(ev.Key) != fmt.Sprintf("p/%03d", i) {
					e.Fatalf("event %d is %s of revision %d, want revision %d", i, ev.Key, ev.ModRevision, want)
				}
			}
		}
	})
	// It asks repeatedly, because an answer may never come.
	is.onClient("progress is answered, and not ahead of the events", func(e *env, c kvstore.Client) {
		s := e.watch(c, "p/", e.head(c))
		e.fill("p/", 5)
		e.put("elsewhere", "x")
		want := e.head(c)
		stop := make(chan struct{})
		asked := make(chan error, 1)
		go func() { asked <- e.ask(s, stop) }()
		seen := 0
		for {
			b := e.recv(s)
			if seen += len(b.Events); len(b.Events) == 0 && seen < 5 && b.At.Revision >= want.Revision {
				e.Fatalf("progress to %d after %d of 5 events", b.At.Revision, seen)
			}
			e.fatalIf(b.At.ClusterID != want.ClusterID, "cluster ID %x, want %x", b.At.ClusterID, want.ClusterID)
			if b.At.Revision >= want.Revision {
				break
			}
		}
		close(stop)
		e.wantErr("request progress", <-asked, nil)
	})
}
