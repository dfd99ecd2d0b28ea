package kvtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func readCases() []testCase {
	return []testCase{
		{"get of an absent key gives nil and a position", getAbsent},
		{"get gives value, revision and lease", getPresent},
		{"head is not before an acknowledged write", headSeesWrites},
		{"list of an empty prefix gives a position and no page", listEmpty},
		{"list is complete, in order, and in pages of bounded size", listPages},
		{"list takes what ends in a slash as a prefix and all else as a key", listLiteral},
		{"list is at one revision while keys are written and deleted", listOneRevision},
		{"list returns the error of the page function and calls it no more", listPageError},
		{"list that is overtaken by a compaction fails as compacted", listCompacted},
		{"pages are not reused", listOwnsBytes},
		{"recall gives what was there, from a key on, and counts the rest", recallPast},
		{"recall works back to the compacted revision and no further", recallCompacted},
		{"recall at another server's position, or beyond the history, says that the server changed", recallForeign},
		{"a cancelled context is the error of every call", cancelled},
		{"status tells endpoint, cluster ID and connection", status},
	}
}

func getAbsent(e *env) {
	rev := e.put("other", "x")
	kv, at, err := e.open().Get(e.ctx, "absent")
	if kv != nil || err != nil {
		e.Errorf("get: %v, %v; want nil, nil", kv, err)
	}
	if at.Revision < rev || at.ClusterID == 0 {
		e.Errorf("position %v, want revision %d or later and a cluster ID", at, rev)
	}
}

func getPresent(e *env) {
	e.put("k", "old")
	rev := e.put("k", "new")
	last := e.put("k2", "not this one")
	kv, at, err := e.open().Get(e.ctx, "k")
	if err != nil || kv == nil {
		e.Fatalf("get: %v, %v", kv, err)
	}
	want := kvstore.KeyValue{Key: []byte("k"), Value: []byte("new"), ModRevision: rev}
	e.same("the key", want, *kv)
	if at.Revision < last {
		e.Errorf("position %v, want revision %d or later", at, last)
	}
}

func headSeesWrites(e *env) {
	c := e.open()
	for i := range 5 {
		rev := e.put("k", fmt.Sprint(i))
		if at := e.head(c); at.Revision < rev {
			e.Errorf("head %d after the write of revision %d", at.Revision, rev)
		}
	}
}

func listEmpty(e *env) {
	rev := e.put("other", "x")
	c := e.open()
	pages := 0
	at, err := c.List(e.ctx, "p/", func(kvstore.Page) error {
		pages++
		return nil
	})
	if err != nil || pages != 0 {
		e.Errorf("list: %d pages, error %v", pages, err)
	}
	if want := (kvstore.Position{ClusterID: e.head(c).ClusterID, Revision: rev}); at != want {
		e.Errorf("position %v, want %v", at, want)
	}
}

func listPages(e *env) {
	const n = 3*PageSize + 2
	e.fill("p/", n)
	c := e.open()
	var pages []kvstore.Page
	at, err := c.List(e.ctx, "p/", func(p kvstore.Page) error {
		pages = append(pages, p)
		return nil
	})
	if err != nil {
		e.Fatal(err)
	}
	var got []string
	for i, p := range pages {
		if len(p.Items) == 0 || len(p.Items) > PageSize {
			e.Errorf("page %d has %d keys", i, len(p.Items))
		}
		if p.At != at {
			e.Errorf("page %d is at %v, the list at %v", i, p.At, at)
		}
		got = append(got, keys(p.Items)...)
	}
	if len(got) != n || !slices.IsSorted(got) {
		e.Errorf("%d keys, want %d in order: %v", len(got), n, got)
	}
}

func listLiteral(e *env) {
	e.put("a", "", "a/", "", "a/b", "", "a0", "", "ab", "", "b", "")
	c := e.open()
	for prefix, want := range map[string][]string{
		"a":    {"a"},
		"a/":   {"a/", "a/b"},
		"a/b":  {"a/b"},
		"a/b/": nil,
		"ab/":  nil,
		"c":    nil,
	} {
		items, _ := e.list(c, prefix)
		e.same("below "+prefix, want, keys(items))
	}
}

// listOneRevision changes, deletes and adds keys of pages that were not yet
// read.
func listOneRevision(e *env) {
	const n = 3 * PageSize
	e.fill("p/", n)
	c := e.open()
	var values []string
	first := true
	at, err := c.List(e.ctx, "p/", func(p kvstore.Page) error {
		for _, kv := range p.Items {
			values = append(values, string(kv.Value))
			if kv.ModRevision > p.At.Revision {
				e.Errorf("%s of revision %d in a list at %d", kv.Key, kv.ModRevision, p.At.Revision)
			}
		}
		if first {
			first = false
			e.put(fmt.Sprintf("p/%03d", n-1), "changed")
			e.store.Delete(e.T, fmt.Sprintf("p/%03d", n-2))
			e.put("p/zzz", "added")
		}
		return nil
	})
	if err != nil {
		e.Fatal(err)
	}
	if len(values) != n || slices.Contains(values, "changed") || slices.Contains(values, "added") {
		e.Errorf("the list is not of one revision: %v", values)
	}
	got := text(e.events(e.watch(c, "p/", at), 3))
	want := []string{
		fmt.Sprintf("put p/%03d=changed@%d", n-1, at.Revision+1),
		fmt.Sprintf("delete p/%03d@%d", n-2, at.Revision+2),
		fmt.Sprintf("put p/zzz=added@%d", at.Revision+3),
	}
	e.same("what follows the list", want, got)
}

func listPageError(e *env) {
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
	if calls != 2 {
		e.Errorf("the page function was called %d times, want 2", calls)
	}
}

func listCompacted(e *env) {
	e.fill("p/", 3*PageSize)
	c := e.open()
	_, err := c.List(e.ctx, "p/", func(kvstore.Page) error {
		e.put("p/000", "again")
		e.store.Compact(e.T)
		return nil
	})
	e.wantErr("list", err, kvstore.ErrCompacted)
	if items, _ := e.list(c, "p/"); len(items) != 3*PageSize {
		e.Errorf("the next list has %d keys, want %d", len(items), 3*PageSize)
	}
}

func listOwnsBytes(e *env) {
	e.fill("p/", 3*PageSize)
	items, _ := e.list(e.open(), "p/")
	for i, kv := range items {
		if want := fmt.Sprintf("p/%03d", i); string(kv.Key) != want || string(kv.Value) != fmt.Sprintf("v%d", i) {
			e.Errorf("item %d is now %s=%s", i, kv.Key, kv.Value)
		}
		if cap(kv.Value) > 0 {
			kv.Value[0] = '!' // must not show anywhere else
		}
	}
	again, _ := e.list(e.open(), "p/")
	if string(again[0].Value) != "v0" {
		e.Errorf("a page shares its bytes with the store: %s", again[0].Value)
	}
}

// recallPast reads a state that has since been changed in every way.
func recallPast(e *env) {
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
	}{
		{"p/", "", 10, []string{"p/a=1@2", "p/b=2@4", "p/c=1@3"}, 3},
		{"p/", "", 1, []string{"p/a=1@2"}, 3},
		{"p/", "p/b", 1, []string{"p/b=2@4"}, 2},
		{"p/", "p/bb", 10, []string{"p/c=1@3"}, 1},
		{"p/", "p/x", 10, nil, 0},
		{"p/b", "", 10, []string{"p/b=2@4"}, 1},
		{"p/d", "", 10, nil, 0},
		{"q/", "", 10, nil, 0},
	} {
		past, err := c.Recall(e.ctx, q.prefix, q.from, at, q.limit)
		if err != nil {
			e.Fatalf("recall %q from %q: %v", q.prefix, q.from, err)
		}
		var got []string
		for _, kv := range past.Items {
			got = append(got, fmt.Sprintf("%s=%s@%d", kv.Key, kv.Value, kv.ModRevision))
		}
		what := fmt.Sprintf("recall %q from %q, at most %d", q.prefix, q.from, q.limit)
		e.same(what, q.want, got)
		e.same(what+", in all", q.count, past.Count)
	}
}

func recallCompacted(e *env) {
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
	e.wantErr("recall before the compacted revision", second(c.Recall(e.ctx, "p/", "", kvstore.Position{ClusterID: id, Revision: before}, 1)), kvstore.ErrCompacted)
}

func recallForeign(e *env) {
	e.put("p/a", "1")
	c := e.open()
	at := e.head(c)
	for what, pos := range map[string]kvstore.Position{
		"another cluster ID":    {ClusterID: at.ClusterID + 1, Revision: 1},
		"a revision to come":    {ClusterID: at.ClusterID, Revision: at.Revision + 1},
		"one of a wiped server": {ClusterID: at.ClusterID, Revision: at.Revision + 100},
	} {
		_, err := c.Recall(e.ctx, "p/", "", pos, 1)
		e.wantErr(what, err, kvstore.ErrServerChanged)
	}
	if got := e.head(c); got != at {
		e.Errorf("the session stands at %v, was at %v", got, at)
	}
}

func cancelled(e *env) {
	c := e.open()
	at := e.head(c)
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	e.readsFail(ctx, c, at, context.Canceled)
}

func status(e *env) {
	c := e.open()
	s := c.Status()
	if !s.Connected || !s.Quorum || s.Endpoint == "" || s.ConnectedSince.IsZero() || s.LastSuccess.IsZero() {
		e.Errorf("status of a new session: %+v", s)
	}
	if at := e.head(c); s.EtcdClusterID != at.ClusterID {
		e.Errorf("cluster ID %x, want %x", s.EtcdClusterID, at.ClusterID)
	}
	c.Close()
	if c.Status().Connected {
		e.Error("connected after Close")
	}
}
