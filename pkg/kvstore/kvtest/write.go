package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func writeCases(is cases) {
	is.onWriter("put without an option always writes", func(e *env, w kvstore.Writer) {
		first := e.do(w.Put(e.ctx, "k", []byte("v")))
		again := e.do(w.Put(e.ctx, "k", []byte("v")))
		e.errorIf(!first.Done || !again.Done || again.At.Revision != first.At.Revision+1, "%+v, and again: %+v", first, again)
		kv := e.has(w, "k", "v")
		e.errorIf(kv.ModRevision != again.At.Revision || kv.Lease != 0, "%+v", kv)
		e.do(w.Put(e.ctx, "k", nil))
		e.has(w, "k", "")
	})
	is.onWriter("the position of a write is that of its event", func(e *env, w kvstore.Writer) {
		before := e.head(w)
		s := e.watch(w, "p/", before)
		a := e.do(w.Put(e.ctx, "p/a", []byte("1")))
		b := e.do(w.Put(e.ctx, "p/b", []byte("1")))
		c := e.do(w.Delete(e.ctx, "p/a"))
		d := e.do(w.DeletePrefix(e.ctx, "p/"))
		at := before.Revision
		e.same("revisions", []int64{at + 1, at + 2, at + 3, at + 4}, []int64{a.At.Revision, b.At.Revision, c.At.Revision, d.At.Revision})
		e.same("events", []string{"put p/a=1@1", "put p/b=1@2", "delete p/a@3", "delete p/b@4"}, text(before, e.events(s, 4)))
		e.same("the head", d.At, e.head(w))
	})
	is.onWriter("delete deletes, and an absent key is fine", func(e *env, w kvstore.Writer) {
		put := e.put("k", "v", "k2", "v")
		r := e.do(w.Delete(e.ctx, "k"))
		e.errorIf(!r.Done || r.Deleted != 1 || r.At.Revision != put+1, "%+v", r)
		e.has(w, "k", "-")
		e.has(w, "k2", "v")
		again := e.do(w.Delete(e.ctx, "k"))
		e.errorIf(again.Done || again.Deleted != 0 || again.At != r.At, "an absent key: %+v, want nothing done at %v", again, r.At)
	})
	is.onWriter("delete prefix deletes what a list would give, at one revision", func(e *env, w kvstore.Writer) {
		put := e.put("a", "", "a/", "", "a/b", "", "a/b/c", "", "a0", "", "ab/c", "")
		r := e.do(w.DeletePrefix(e.ctx, "a/"))
		e.errorIf(!r.Done || r.Deleted != 3 || r.At.Revision != put+1, "%+v", r)
		again := e.do(w.DeletePrefix(e.ctx, "a/"))
		e.errorIf(again.Done || again.Deleted != 0 || again.At != r.At, "nothing below: %+v", again)
		for _, key := range []string{"a", "a0", "ab/c"} {
			e.has(w, key, "")
		}
		for _, whole := range []string{"a", "a/b", "absent"} {
			_, err := w.DeletePrefix(e.ctx, whole)
			if ke, is := errors.AsType[*kvstore.KeyError](err); !is || ke.Key != whole || !kvstore.IsRefused(err) ||
				!strings.Contains(err.Error(), fmt.Sprintf("%q", whole+"/")) {
				e.Errorf("a whole key: %v", err)
			}
		}
		e.has(w, "a", "")
	})
	is.onWriter("a write without a key fails", func(e *env, w kvstore.Writer) {
		e.put("k", "v")
		for what, write := range writes(w, "") {
			e.unfit(what+" of an empty key", write(e.ctx))
		}
		e.has(w, "k", "v")
	})
	is.onWriter("a cancelled context is the error of every write", func(e *env, w kvstore.Writer) {
		e.put("k", "v")
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		for what, write := range writes(w, "k") {
			e.wantErr(what, write(ctx), context.Canceled)
		}
		e.has(w, "k", "v")
	})
	is.onWriter("writes end with the client, and their errors name the operation and the key", func(e *env, w kvstore.Writer) {
		w.Close()
		for op, write := range writes(w, "some/key") {
			err := write(e.ctx)
			e.wantErr(op, err, kvstore.ErrClosed)
			ke, is := errors.AsType[*kvstore.KeyError](err)
			e.errorIf(!is || ke.Op != op || strings.TrimSuffix(ke.Key, "/") != "some/key", "%s: error %#v", op, err)
		}
		e.wantErr("leased put", second(w.Put(e.ctx, "k", nil, kvstore.Leased())), kvstore.ErrClosed)
	})
	is("writes to another server fail as server changed", func(e *env) {
		e.fill("p/", 9)
		w := e.writer()
		e.head(w)
		e.store.Replace(e.T)
		e.untilChanged(w)
		for what, write := range writes(w, "k") {
			e.wantErr(what, write(e.ctx), kvstore.ErrServerChanged)
		}
		e.has(e.open(), "k", "-")
	})
}

// do makes a write that must not fail.
func (e *env) do(r kvstore.Result, err error) kvstore.Result {
	e.Helper()
	e.must(err)
	return r
}

// has checks a key's value; "-" for an absent one.
func (e *env) has(c kvstore.Client, key, want string) kvstore.KeyValue {
	e.Helper()
	kv, _, err := c.Get(e.ctx, key)
	e.must(err)
	if kv == nil {
		kv = &kvstore.KeyValue{Value: []byte("-")}
	}
	e.errorIf(string(kv.Value) != want, "%s is %q, want %q", key, kv.Value, want)
	return *kv
}

// writes returns one write of each kind.
func writes(w kvstore.Writer, key string) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"put":           func(ctx context.Context) error { return second(w.Put(ctx, key, nil)) },
		"delete":        func(ctx context.Context) error { return second(w.Delete(ctx, key)) },
		"delete prefix": func(ctx context.Context) error { return second(w.DeletePrefix(ctx, below(key))) },
		"update":        func(ctx context.Context) error { return second(w.Update(ctx, []kvstore.Write{put(key, "")})) },
		"lock": func(ctx context.Context) error {
			l, err := w.Lock(ctx, key)
			if err == nil {
				l.Unlock()
			}
			return err
		},
	}
}

// below returns the prefix of the keys below a key; empty for an empty key.
func below(key string) string {
	if key == "" {
		return ""
	}
	return key + "/"
}
