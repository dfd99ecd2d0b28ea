package kvtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func readCases(is cases) {
	is("get gives value, revision and lease, nil for an absent key, and a position", func(e *env) {
		e.put("k", "old")
		rev := e.put("k", "new")
		last := e.put("k2", "not this one")
		c := e.open()
		for key, want := range map[string]*kvstore.KeyValue{
			"k": {Key: []byte("k"), Value: []byte("new"), ModRevision: rev}, "absent": nil,
		} {
			kv, at, err := c.Get(e.ctx, key)
			if err != nil || at.Revision < last || at.ClusterID == 0 {
				e.Errorf("get %s: %v at %v, want revision %d or later and a cluster ID", key, err, at, last)
			}
			e.same(key, want, kv)
		}
	})
	is.onClient("head is not before an acknowledged write", func(e *env, c kvstore.Client) {
		for i := range 5 {
			rev := e.put("k", fmt.Sprint(i))
			at := e.head(c)
			e.errorIf(at.Revision < rev, "head %d after the write of revision %d", at.Revision, rev)
		}
	})
	is("list of an empty prefix gives a position and no page", func(e *env) {
		rev := e.put("other", "x")
		c := e.open()
		pages, at := e.pages(c, "p/")
		e.same("pages", 0, len(pages))
		e.same("the position", kvstore.Position{ClusterID: e.head(c).ClusterID, Revision: rev}, at)
	})
	is("list is complete, in order, and in pages of bounded size", func(e *env) {
		const n = 3*PageSize + 2
		e.fill("p/", n)
		c := e.open()
		pages, at := e.pages(c, "p/")
		var got []string
		for i, p := range pages {
			e.errorIf(len(p.Items) == 0 || len(p.Items) > PageSize, "page %d has %d keys", i, len(p.Items))
			e.errorIf(p.At != at, "page %d is at %v, the list at %v", i, p.At, at)
			got = append(got, keys(p.Items)...)
		}
		e.errorIf(len(got) != n || !slices.IsSorted(got), "%d keys, want %d in order: %v", len(got), n, got)
	})
	is("list takes what ends in a slash as a prefix, and one key with OneKey", func(e *env) {
		e.put("a", "", "a/", "", "a/b", "", "a0", "", "ab", "", "b", "")
		c := e.open()
		for prefix, want := range map[string][]string{"a/": {"a/", "a/b"}, "a/b/": nil, "ab/": nil} {
			items, _ := e.list(c, prefix)
			e.same("below "+prefix, want, keys(items))
		}
		for key, want := range map[string][]string{"a": {"a"}, "a/b": {"a/b"}, "c": nil} {
			items, _ := e.list(c, key, kvstore.OneKey())
			e.same("the key "+key, want, keys(items))
		}
	})
	is.onWriter("a prefix without a slash, and a key with one, are errors that say what to give", func(e *env, w kvstore.Writer) {
		e.put("a/b", "", "a", "")
		at := e.head(w)
		for _, c := range []struct {
			prefix, want string
			opts         []kvstore.SelectOption
		}{
			{"a", `"a/"`, nil},
			{"a/b", `"a/b/"`, nil},
			{"absent", "OneKey", nil},
			{"", "empty", nil},
			{"", "empty", []kvstore.SelectOption{kvstore.OneKey()}},
			{"a/", "whole key", []kvstore.SelectOption{kvstore.OneKey()}},
		} {
			var reads []kvstore.ReadOption
			for _, o := range c.opts {
				reads = append(reads, o)
			}
			for op, err := range map[string]error{
				"list":   second(w.List(e.ctx, c.prefix, anything, reads...)),
				"recall": second(w.Recall(e.ctx, c.prefix, "", at, 1, c.opts...)),
				"watch":  second(w.Watch(e.ctx, c.prefix, at, c.opts...)),
			} {
				ke, is := errors.AsType[*kvstore.KeyError](err)
				if !is || ke.Key != c.prefix || ke.Op != op || !kvstore.IsRefused(err) || !strings.Contains(err.Error(), c.want) {
					e.Errorf("%s of %q with %d options: %v", op, c.prefix, len(c.opts), err)
				}
			}
		}
		for op, err := range map[string]error{
			"put": second(w.Put(e.ctx, "k", nil, kvstore.OneKey())), "delete": second(w.Delete(e.ctx, "k", kvstore.OneKey())),
			"delete prefix": second(w.DeletePrefix(e.ctx, "a/", kvstore.OneKey())),
			"update":        second(w.Update(e.ctx, []kvstore.Write{{Key: "k"}}, kvstore.OneKey())),
		} {
			e.unfit(op+" of OneKey", err)
		}
		e.has(w, "a/b", "")
	})
	// It changes, deletes and adds keys of pages that were not yet read.
	is("list is at one revision while keys are written and deleted", func(e *env) {
		const n = 3 * PageSize
		e.fill("p/", n)
		c := e.open()
		var values []string
		first := true
		at, err := c.List(e.ctx, "p/", func(p kvstore.Page) error {
			for _, kv := range p.Items {
				values = append(values, string(kv.Value))
				e.errorIf(kv.ModRevision > p.At.Revision, "%s of revision %d in a list at %d", kv.Key, kv.ModRevision, p.At.Revision)
			}
			if first {
				first = false
				e.put(fmt.Sprintf("p/%03d", n-1), "changed")
				e.store.Delete(e.T, fmt.Sprintf("p/%03d", n-2))
				e.put("p/zzz", "added")
			}
			return nil
		})
		e.must(err)
		mixed := len(values) != n || slices.Contains(values, "changed") || slices.Contains(values, "added")
		e.errorIf(mixed, "the list is not of one revision: %v", values)
		want := []string{fmt.Sprintf("put p/%03d=changed@1", n-1), fmt.Sprintf("delete p/%03d@2", n-2), "put p/zzz=added@3"}
		e.same("what follows the list", want, e.follow(c, "p/", at, 3))
	})
	is("list returns the error of the page function and calls it no more", func(e *env) {
		e.fill("p/", 3*PageSize)
		stop := errors.New("enough")
		calls := 0
		_, err := e.open().List(e.ctx, "p/", func(kvstore.Page) error {
			if calls++; calls == 2 {
				return stop
			}
			return nil
		})
		if err != stop { //nolint:errorlint // it is to be the very same
			e.Errorf("error %v, want %v", err, stop)
		}
		e.errorIf(calls != 2, "the page function was called %d times, want 2", calls)
	})
	is("list that is overtaken by a compaction fails as compacted", func(e *env) {
		e.fill("p/", 3*PageSize)
		c := e.open()
		_, err := c.List(e.ctx, "p/", func(kvstore.Page) error {
			e.put("p/000", "again")
			e.store.Compact(e.T)
			return nil
		})
		e.wantErr("list", err, kvstore.ErrCompacted)
		items, _ := e.list(c, "p/")
		e.same("keys of the next list", 3*PageSize, len(items))
	})
	is("pages are not reused", func(e *env) {
		e.fill("p/", 3*PageSize)
		items, _ := e.list(e.open(), "p/")
		for i, kv := range items {
			want := fmt.Sprintf("p/%03d", i)
			e.errorIf(string(kv.Key) != want || string(kv.Value) != fmt.Sprintf("v%d", i), "item %d is now %s=%s", i, kv.Key, kv.Value)
			if cap(kv.Value) > 0 {
				kv.Value[0] = '!' // must not change any other result
			}
		}
		again, _ := e.list(e.open(), "p/")
		e.errorIf(string(again[0].Value) != "v0", "a page shares its bytes with the store: %s", again[0].Value)
	})
	// Keys have since been changed, deleted and added.
	is("recall gives what was there, from a key on, and counts the rest", func(e *env) {
		e.put("a", "", "p0", "", "p/a", "1", "p/b", "1")
		e.put("p/c", "1")
		rev := e.put("p/b", "2")
		e.put("p/a", "later")
		e.put("p/d", "later")
		e.store.Delete(e.T, "p/c")
		c := e.open()
		at := kvstore.Position{ClusterID: e.head(c).ClusterID, Revision: rev}
		for _, q := range []struct {
			prefix, from string
			limit        int
			want         []string
			count        int64
			which        []kvstore.SelectOption
		}{
			{"p/", "", 10, []string{"p/a=1@2", "p/b=2@4", "p/c=1@3"}, 3, nil},
			{"p/", "", 1, []string{"p/a=1@2"}, 3, nil},
			{"p/", "p/b", 1, []string{"p/b=2@4"}, 2, nil},
			{"p/", "p/bb", 10, []string{"p/c=1@3"}, 1, nil},
			{"p/", "p/x", 10, nil, 0, nil},
			{"p/b", "", 10, []string{"p/b=2@4"}, 1, []kvstore.SelectOption{kvstore.OneKey()}},
			{"p/d", "", 10, nil, 0, []kvstore.SelectOption{kvstore.OneKey()}},
			{"q/", "", 10, nil, 0, nil},
		} {
			past, err := c.Recall(e.ctx, q.prefix, q.from, at, q.limit, q.which...)
			e.fatalIf(err != nil, "recall %q from %q: %v", q.prefix, q.from, err)
			var got []string
			for _, kv := range past.Items {
				got = append(got, fmt.Sprintf("%s=%s@%d", kv.Key, kv.Value, kv.ModRevision))
			}
			what := fmt.Sprintf("recall %q from %q, at most %d", q.prefix, q.from, q.limit)
			e.same(what, q.want, got)
			e.same(what+", in all", q.count, past.Count)
		}
	})
	is("recall works back to the compacted revision and no further", func(e *env) {
		e.put("p/old", "1")
		before := e.put("p/gone", "1")
		e.put("p/changed", "1")
		at := e.store.Delete(e.T, "p/gone")
		e.store.Compact(e.T)
		e.put("p/changed", "2")
		c := e.open()
		id := e.head(c).ClusterID
		past, err := c.Recall(e.ctx, "p/", "", kvstore.Position{ClusterID: id, Revision: at}, 1)
		if err != nil || past.Count != 2 || string(past.Items[0].Key) != "p/changed" || string(past.Items[0].Value) != "1" {
			e.Errorf("recall at the compacted revision: %+v, %v", past, err)
		}
		_, err = c.Recall(e.ctx, "p/", "", kvstore.Position{ClusterID: id, Revision: before}, 1)
		e.wantErr("recall before the compacted revision", err, kvstore.ErrCompacted)
	})
	is("a position of another server, or beyond the history, says that the server changed", func(e *env) {
		e.put("p/a", "1")
		c := e.open()
		at := e.head(c)
		recall := func(at kvstore.Position) error { return second(c.Recall(e.ctx, "p/", "", at, 1)) }
		watch := func(at kvstore.Position) error { return second(c.Watch(e.ctx, "p/", at)) }
		for _, id := range []uint64{at.ClusterID + 1, 0} {
			other := kvstore.Position{ClusterID: id, Revision: at.Revision}
			e.wantErr("recall of another cluster ID", recall(other), kvstore.ErrServerChanged)
			e.wantErr("watch of another cluster ID", watch(other), kvstore.ErrServerChanged)
		}
		for _, later := range []int64{1, 100} {
			future := kvstore.Position{ClusterID: at.ClusterID, Revision: at.Revision + later}
			e.wantErr("recall of a revision to come", recall(future), kvstore.ErrServerChanged)
		}
		e.same("where the session is", at, e.head(c))
		at.Revision += 1000
		e.wantErr("watch of a revision to come", watch(at), kvstore.ErrServerChanged)
	})
	is.onClient("a cancelled context is the error of every call", func(e *env, c kvstore.Client) {
		at := e.head(c)
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		e.readsFail(ctx, c, at, context.Canceled)
	})
	is.onClient("status tells endpoint, cluster ID and connection", func(e *env, c kvstore.Client) {
		s := c.Status()
		if !s.Connected || !s.Quorum || s.Endpoint == "" || s.ConnectedSince.IsZero() || s.LastSuccess.IsZero() {
			e.Errorf("status of a new session: %+v", s)
		}
		e.same("the cluster ID", e.head(c).ClusterID, s.EtcdClusterID)
		c.Close()
		e.errorIf(c.Status().Connected, "connected after Close")
	})
}
