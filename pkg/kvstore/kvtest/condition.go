package kvtest

import "github.com/mesh-agent/mesh-agent/pkg/kvstore"

func conditionCases(is cases) {
	is.onWriter("a put is made when all its conditions hold, and else not", func(e *env, w kvstore.Writer) {
		e.put("other", "o")
		conditions := func() []condition {
			return append(append(ownConditions(e.put("k", "v")), otherConditions()...),
				condition{"created although present", []kvstore.Option{kvstore.IfAbsent()}, false},
				condition{"changed, and another condition", []kvstore.Option{kvstore.IfChanged(), kvstore.IfOther("other", []byte("o"))}, true},
				condition{"changed, and a condition that does not hold", []kvstore.Option{kvstore.IfChanged(), kvstore.IfOther("absent", nil)}, false},
			)
		}
		for i := range conditions() {
			c := conditions()[i]
			e.checkDone(w, c, func() (kvstore.Result, error) { return w.Put(e.ctx, "k", []byte("new"), c.opts...) })
			e.has(w, "k", map[bool]string{true: "new", false: "v"}[c.done])
		}
		for _, c := range []condition{
			{"created while absent", []kvstore.Option{kvstore.IfAbsent()}, true},
			{"of no revision while absent", []kvstore.Option{kvstore.IfRevision(0)}, true},
			{"of a revision while absent", []kvstore.Option{kvstore.IfRevision(1)}, false},
			{"with a value while absent", []kvstore.Option{kvstore.IfValue([]byte("v"))}, false},
			{"with an empty value while absent", []kvstore.Option{kvstore.IfValue(nil)}, false},
			{"changed while absent", []kvstore.Option{kvstore.IfChanged()}, true},
			{"created and changed while absent", []kvstore.Option{kvstore.IfAbsent(), kvstore.IfChanged()}, true},
		} {
			e.store.Delete(e.T, "k")
			e.checkDone(w, c, func() (kvstore.Result, error) { return w.Put(e.ctx, "k", []byte("new"), c.opts...) })
			e.has(w, "k", map[bool]string{true: "new", false: "-"}[c.done])
		}
	})
	is.onWriter("a delete is made when all its conditions hold, and else not", func(e *env, w kvstore.Writer) {
		e.put("other", "o")
		for i := range append(ownConditions(0), otherConditions()...) {
			c := append(ownConditions(e.put("k", "v")), otherConditions()...)[i]
			e.checkDone(w, c, func() (kvstore.Result, error) { return w.Delete(e.ctx, "k", c.opts...) })
			e.has(w, "k", map[bool]string{true: "-", false: "v"}[c.done])
		}
	})
	is.onWriter("a delete of a prefix is made when all its conditions hold, and else not", func(e *env, w kvstore.Writer) {
		e.put("other", "o", "k", "v")
		for _, c := range otherConditions() {
			e.put("p/1", "v", "p/2", "v")
			e.checkDone(w, c, func() (kvstore.Result, error) { return w.DeletePrefix(e.ctx, "p/", c.opts...) })
			e.has(w, "p/2", map[bool]string{true: "-", false: "v"}[c.done])
		}
	})
	is("if changed writes only another value or another lease", func(e *env) {
		w, another := e.writer(), e.writer()
		leased, changed := kvstore.Leased(), kvstore.IfChanged()
		for i, step := range []struct {
			w     kvstore.Writer
			value string
			opts  []kvstore.Option
			done  bool
		}{
			{w, "", []kvstore.Option{changed}, true},
			{w, "", []kvstore.Option{changed}, false},
			{w, "1", []kvstore.Option{changed}, true},
			{w, "1", []kvstore.Option{changed}, false},
			{w, "1", []kvstore.Option{changed, leased}, true},
			{w, "1", []kvstore.Option{changed, leased}, false},
			{another, "1", []kvstore.Option{changed, leased}, true},
			{another, "1", []kvstore.Option{changed, leased}, false},
			{w, "1", []kvstore.Option{changed}, true},
			{w, "1", []kvstore.Option{changed}, false},
		} {
			r := e.do(step.w.Put(e.ctx, "k", []byte(step.value), step.opts...))
			e.errorIf(r.Done != step.done, "step %d: %+v, want done %t", i, r, step.done)
		}
	})
	is.onWriter("an option that is not for this kind of write is an error", func(e *env, w kvstore.Writer) {
		e.put("p/", "v")
		for name, o := range map[string]kvstore.Option{
			"leased": kvstore.Leased(), "if absent": kvstore.IfAbsent(), "if changed": kvstore.IfChanged(),
		} {
			e.unfit("delete "+name, second(w.Delete(e.ctx, "p/", o)))
			e.unfit("delete prefix "+name, second(w.DeletePrefix(e.ctx, "p/", o)))
		}
		for name, o := range map[string]kvstore.Option{"if revision": kvstore.IfRevision(1), "if value": kvstore.IfValue(nil)} {
			e.unfit("delete prefix "+name, second(w.DeletePrefix(e.ctx, "p/", o)))
		}
		for name, o := range map[string]kvstore.Option{
			"if absent": kvstore.IfAbsent(), "if changed": kvstore.IfChanged(), "if revision": kvstore.IfRevision(0),
			"if value": kvstore.IfValue(nil), "if other": kvstore.IfOther("o", nil),
		} {
			e.unfit("update "+name, second(w.Update(e.ctx, []kvstore.Write{put("p/", "1")}, o)))
		}
		e.has(w, "p/", "v")
	})
	is.onWriter("a write under a lock that is held is made", func(e *env, w kvstore.Writer) {
		a, b := e.lock(w, "locks/a"), e.lock(w, "locks/b")
		both := []kvstore.Option{kvstore.Holding(a), kvstore.Holding(b)}
		e.put("k/below", "")
		for i, r := range []kvstore.Result{
			e.do(w.Put(e.ctx, "k", []byte("1"), both...)),
			e.do(w.Put(e.ctx, "k", []byte("2"), append(both, kvstore.IfChanged(), kvstore.Leased())...)),
			e.do(w.Delete(e.ctx, "k", both...)),
			e.do(w.Put(e.ctx, "k", []byte("3"), append(both, kvstore.IfAbsent())...)),
			e.do(w.DeletePrefix(e.ctx, "k/", both...)),
			e.do(w.Update(e.ctx, []kvstore.Write{put("a", "1"), put("b", "1")}, append(both, kvstore.Holding(nil), kvstore.Leased())...)),
			e.do(w.Update(e.ctx, []kvstore.Write{gone("a"), put("b", "2")}, append(both, kvstore.Leased())...)),
		} {
			e.errorIf(!r.Done, "write %d was not made: %+v", i, r)
		}
		e.has(w, "a", "-")
		e.has(w, "b", "2")
	})
	is.onWriter("a write under a lock that is lost fails and does nothing", func(e *env, w kvstore.Writer) {
		e.put("k", "v")
		held, lost := e.lock(w, "locks/held"), e.lock(w, "locks/lost")
		lost.Unlock()
		for _, locks := range [][]*kvstore.Lock{{lost}, {held, lost}, {lost, nil}} {
			for what, err := range e.guarded(w, locks...) {
				e.wantErr(what, err, kvstore.ErrLockLeaseExpired)
			}
		}
		e.has(w, "absent", "-")
		again := e.lock(w, "locks/lost")
		for what, err := range e.guarded(w, lost) {
			e.wantErr(what+" while the path is locked again", err, kvstore.ErrLockLeaseExpired)
		}
		e.has(w, "k", "v")
		again.Unlock()
		held.Unlock()
	})
	is.onWriter("under a lock that is held another condition is no error", func(e *env, w kvstore.Writer) {
		e.put("k", "v")
		l := e.lock(w, "locks/l")
		before := e.head(w)
		r := e.do(w.Put(e.ctx, "k", []byte("new"), kvstore.Holding(l), kvstore.IfAbsent()))
		e.same("the result", kvstore.Result{At: before}, r)
		r = e.do(w.Delete(e.ctx, "k", kvstore.Holding(l), kvstore.IfValue([]byte("w"))))
		e.errorIf(r.Done, "%+v", r)
		e.has(w, "k", "v")
	})
	is.onWriter("reads under a lock succeed while it is held", func(e *env, w kvstore.Writer) {
		e.fill("p/", 2*PageSize)
		l := e.lock(w, "locks/l")
		kv, at, err := w.Get(e.ctx, "p/000", kvstore.Holding(l))
		e.fatalIf(err != nil || kv == nil || string(kv.Value) != "v0", "get: %v, %v", kv, err)
		items, listed := e.list(w, "p/", kvstore.Holding(l))
		e.same("keys", 2*PageSize, len(items))
		e.same("where it is read", []kvstore.Position{e.head(w), e.head(w)}, []kvstore.Position{at, listed})
		_, err = w.List(e.ctx, "p/", func(kvstore.Page) error {
			l.Unlock()
			return nil
		}, kvstore.Holding(l))
		e.wantErr("a list whose lock is lost after the first page", err, kvstore.ErrLockLeaseExpired)
	})
}

// condition is a condition of a write. It is about the keys "k" with the value "v", "other" and "absent".
type condition struct {
	name string
	opts []kvstore.Option
	done bool
}

// ownConditions are conditions on the written key, whose mod revision is rev.
func ownConditions(rev int64) []condition {
	return []condition{
		{"none", nil, true},
		{"of the present revision", []kvstore.Option{kvstore.IfRevision(rev)}, true},
		{"of another revision", []kvstore.Option{kvstore.IfRevision(rev - 1)}, false},
		{"of no revision", []kvstore.Option{kvstore.IfRevision(0)}, false},
		{"with the value", []kvstore.Option{kvstore.IfValue([]byte("v"))}, true},
		{"with another value", []kvstore.Option{kvstore.IfValue([]byte("w"))}, false},
		{"with an empty value", []kvstore.Option{kvstore.IfValue(nil)}, false},
		{"both hold", []kvstore.Option{kvstore.IfRevision(rev), kvstore.IfValue([]byte("v"))}, true},
		{"one does not hold", []kvstore.Option{kvstore.IfRevision(rev), kvstore.IfValue([]byte("w"))}, false},
	}
}

func otherConditions() []condition {
	return []condition{
		{"another has the value", []kvstore.Option{kvstore.IfOther("other", []byte("o"))}, true},
		{"another has another value", []kvstore.Option{kvstore.IfOther("other", []byte("p"))}, false},
		{"another is absent", []kvstore.Option{kvstore.IfOther("absent", nil)}, false},
		{"one of two is absent", []kvstore.Option{kvstore.IfOther("other", []byte("o")), kvstore.IfOther("absent", nil)}, false},
		{"two have theirs", []kvstore.Option{kvstore.IfOther("other", []byte("o")), kvstore.IfOther("k", []byte("v"))}, true},
		{"no lock at all", []kvstore.Option{kvstore.Holding(nil)}, true},
	}
}

// checkDone makes one write and checks its result.
func (e *env) checkDone(w kvstore.Writer, c condition, write func() (kvstore.Result, error)) {
	e.Helper()
	before := e.head(w)
	r, err := write()
	e.errorIf(err != nil || r.Done != c.done || r.Met != c.done, "%s: %+v, %v, want done and met %t", c.name, r, err, c.done)
	if c.done {
		before.Revision++
	}
	after := e.head(w)
	e.errorIf(after != before || r.At != after, "%s: the result is at %v, the head at %v, want %v", c.name, r.At, after, before)
}

// unfit checks that a write with an option that it does not support returns an error.
func (e *env) unfit(what string, err error) {
	e.Helper()
	e.errorIf(err == nil, "%s is no error", what)
}

func (e *env) lock(w kvstore.Writer, path string) *kvstore.Lock {
	e.Helper()
	l, err := w.Lock(e.ctx, path)
	e.must(err)
	return l
}

// guarded does all operations under locks, and returns their errors.
func (e *env) guarded(w kvstore.Writer, locks ...*kvstore.Lock) map[string]error {
	var opts []kvstore.Option
	var reads []kvstore.ReadOption
	for _, l := range locks {
		opts, reads = append(opts, kvstore.Holding(l)), append(reads, kvstore.Holding(l))
	}
	errs := make(map[string]error)
	_, errs["put"] = w.Put(e.ctx, "k", []byte("new"), opts...)
	_, errs["leased put"] = w.Put(e.ctx, "k", []byte("new"), append(opts, kvstore.Leased(), kvstore.IfChanged())...)
	_, errs["put if absent"] = w.Put(e.ctx, "k", []byte("new"), append(opts, kvstore.IfAbsent())...)
	_, errs["delete"] = w.Delete(e.ctx, "k", opts...)
	_, errs["delete an absent key"] = w.Delete(e.ctx, "absent", opts...)
	_, errs["delete prefix"] = w.DeletePrefix(e.ctx, "k/", opts...)
	_, errs["update"] = w.Update(e.ctx, []kvstore.Write{{Key: "k", Value: []byte("new")}, {Key: "absent", Value: []byte("new")}}, opts...)
	_, errs["leased update"] = w.Update(e.ctx, []kvstore.Write{{Key: "absent", Delete: true}, {Key: "k", Delete: true}, {Key: "k2"}},
		append(opts, kvstore.Leased())...)
	_, _, errs["get"] = w.Get(e.ctx, "k", reads...)
	_, errs["list"] = w.List(e.ctx, "k/", anything, reads...)
	return errs
}
