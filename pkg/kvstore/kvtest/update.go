package kvtest

import (
	"fmt"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func updateCases(is cases) {
	is.onWriter("an update makes all its writes at one revision, and none that changes nothing", func(e *env, w kvstore.Writer) {
		e.put("p/old", "1", "p/gone", "1")
		before := e.head(w)
		s := e.watch(w, "p/", before)
		r := e.do(w.Update(e.ctx, []kvstore.Write{put("p/a", "1"), gone("p/gone"), put("p/old", "2"), gone("p/absent"), put("p/empty", "")}))
		e.same("the result", kvstore.Result{Done: true, Met: true, Deleted: 1, At: e.head(w)}, r)
		e.same("its revision", before.Revision+1, r.At.Revision)
		got := text(before, e.events(s, 4))
		slices.Sort(got)
		e.same("events", []string{"delete p/gone@1", "put p/a=1@1", "put p/empty=@1", "put p/old=2@1"}, got)
		nothing := e.do(w.Update(e.ctx, []kvstore.Write{gone("a"), gone("b")}))
		e.same("an update that changes nothing", kvstore.Result{Met: true, At: r.At}, nothing)
	})
	is.onWriter("an update of nothing, of too much or of a key twice is refused", func(e *env, w kvstore.Writer) {
		many := make([]kvstore.Write, kvstore.MaxWrites+1)
		for i := range many {
			many[i] = put(fmt.Sprintf("p/%03d", i), "1")
		}
		for what, writes := range map[string][]kvstore.Write{
			"nothing": nil, "too many": many, "a key twice": {put("a", "1"), put("b", "1"), gone("a")}, "no key": {put("a", "1"), put("", "1")},
		} {
			err := second(w.Update(e.ctx, writes))
			e.errorIf(!kvstore.IsRefused(err), "%s: error %v", what, err)
		}
		e.has(w, "a", "-")
		r := e.do(w.Update(e.ctx, many[1:], kvstore.Leased()))
		e.errorIf(!r.Done, "as many as there may be: %+v", r)
		for i := range many {
			many[i] = gone(many[i].Key)
		}
		e.same("deleted", kvstore.MaxWrites, int(e.do(w.Update(e.ctx, many[1:])).Deleted))
	})
	// The other writes of the same update are made, in updates of all sizes.
	is.onWriter("a write leaves a key alone that is tied to no lease", func(e *env, w kvstore.Writer) {
		lost := observe(w, "p/")
		e.do(w.Update(e.ctx, []kvstore.Write{put("p/leased", "1"), put("p/leasedgone", "1"), put("p/taken", "1")}, kvstore.Leased()))
		e.put("p/foreign", "theirs", "p/foreigngone", "theirs", "p/taken", "theirs", "p/any", "theirs")
		for i := range 6 { // so that the last update needs a second lease
			var more []kvstore.Write
			for k := range 120 {
				more = append(more, put(fmt.Sprintf("q/%d/%03d", i, k), ""))
			}
			e.do(w.Update(e.ctx, more, kvstore.Leased()))
		}
		for _, n := range []int{0, 100, 500} { // few, many without groups, many in groups; a busy etcd gives up more
			value := fmt.Sprint(n)
			kept, absent := map[string]string{}, map[string]bool{}
			writes := []kvstore.Write{
				put("p/foreign", value), gone("p/foreigngone"), put("p/taken", value), put("p/absent", value), put("p/leased", value),
				gone("p/leasedgone"), gone("p/nothing"),
			}
			for i := len(writes); i < n-1; i++ {
				writes = append(writes, put(fmt.Sprintf("p/more/%04d", i), value))
			}
			for i := range writes {
				writes[i].Absent = func() { absent[writes[i].Key] = true }
				writes[i].Kept = func(kv kvstore.KeyValue) {
					if kept[writes[i].Key] = string(kv.Value); kv.Lease != 0 || kv.ModRevision == 0 || string(kv.Key) != writes[i].Key {
						e.Errorf("kept is %+v for %s", kv, writes[i].Key)
					}
				}
			}
			r := e.do(w.Update(e.ctx, append(writes, put("p/any", value)), kvstore.Leased()))
			want := kvstore.Result{Done: true, Met: true, Deleted: r.Deleted, At: e.head(w)}
			e.errorIf(r != want || n == 0 != (r.Deleted == 1), "%d writes: %+v, want %+v", n, r, want)
			e.same(fmt.Sprintf("kept of %d writes", n), map[string]string{"p/foreign": "theirs", "p/foreigngone": "theirs", "p/taken": "theirs"}, kept)
			gone := map[string]bool{"p/nothing": true}
			if n > 0 { // deleted in the round before
				gone["p/leasedgone"] = true
			}
			e.same(fmt.Sprintf("absent of %d writes", n), gone, absent)
			e.has(w, "p/foreign", "theirs")
			e.has(w, "p/foreigngone", "theirs")
			e.has(w, "p/leasedgone", "-")
			for _, key := range []string{"p/absent", "p/leased", "p/any"} {
				e.has(w, key, value)
			}
		}
		e.store.ExpireLeases(e.T)
		all := append(e.lost(lost), e.lost(lost)...)
		for _, key := range []string{"p/foreign", "p/foreigngone", "p/taken"} {
			e.errorIf(slices.Contains(all, key), "%s is lost as one of ours", key)
		}
		e.has(w, "p/taken", "theirs")
	})
	is.onWriter("a leased update ties its puts, over several leases if need be", func(e *env, w kvstore.Writer) {
		lost := observe(w, "p/")
		var keys []string
		for len(keys) < 1100 {
			var writes []kvstore.Write
			for range 110 {
				key := fmt.Sprintf("p/%04d", len(keys))
				keys, writes = append(keys, key), append(writes, put(key, "1"))
			}
			e.do(w.Update(e.ctx, writes, kvstore.Leased()))
		}
		e.counts(w, 2, 0, 0)
		items, _ := e.list(w, "p/")
		leases := make(map[int64]int)
		for _, kv := range items {
			leases[kv.Lease]++
		}
		e.errorIf(len(items) != len(keys) || len(leases) != 2 || leases[0] != 0, "%d keys, of leases %v", len(items), leases)
		e.store.ExpireLeases(e.T)
		all := append(e.lost(lost), e.lost(lost)...)
		slices.Sort(all)
		e.same("lost", keys, all)
	})
	is.onWriter("what is deleted, put without a lease, or to have none in an update is untied", func(e *env, w kvstore.Writer) {
		lost := observe(w, "")
		e.do(w.Update(e.ctx, []kvstore.Write{put("a", "1"), put("b", "1"), put("c", "1"), put("d", "1"), put("e", "1")}, kvstore.Leased()))
		e.errorIf(e.has(w, "a", "1").Lease == 0, "a leased key has no lease")
		stays := put("a", "2")
		stays.Unleased = true
		e.do(w.Update(e.ctx, []kvstore.Write{gone("b"), stays, put("f", "1")}, kvstore.Leased()))
		e.do(w.Update(e.ctx, []kvstore.Write{put("c", "2")}))
		e.do(w.Put(e.ctx, "d", []byte("2")))
		for _, key := range []string{"a", "c", "d"} {
			e.same("the lease of "+key, int64(0), e.has(w, key, "2").Lease)
		}
		e.store.ExpireLeases(e.T)
		e.loses(lost, "e", "f")
		for _, key := range []string{"a", "c", "d"} {
			e.has(w, key, "2")
		}
	})
	is.onWriter("an update that finds leases ended is made with others", func(e *env, w kvstore.Writer) {
		fill := func(value string) {
			for i := range 10 {
				var writes []kvstore.Write
				for k := range 120 {
					writes = append(writes, put(fmt.Sprintf("p/%d/%03d", i, k), value))
				}
				e.do(w.Update(e.ctx, writes, kvstore.Leased()))
			}
		}
		fill("0")
		for round := range 3 {
			before := e.has(w, "p/9/000", fmt.Sprint(round)).Lease
			e.store.ExpireLeases(e.T)
			value := fmt.Sprint(round + 1)
			e.do(w.Update(e.ctx, []kvstore.Write{put("p/0/000", value), put("p/9/000", value), gone("p/5/000")}, kvstore.Leased()))
			after := e.has(w, "p/9/000", value).Lease
			e.errorIf(after == before || !w.Owns(after), "round %d: the lease is %x, was %x", round, after, before)
			fill(value)
		}
	})
	is("a writer owns the leases of its keys while they last", func(e *env) {
		w, another := e.writer(), e.writer()
		lost := observe(w, "")
		e.do(w.Update(e.ctx, []kvstore.Write{put("k", "v")}, kvstore.Leased()))
		lease := e.has(w, "k", "v").Lease
		foreign := e.lease(another, "other")
		for lease, want := range map[int64]bool{lease: true, foreign: false, 0: false, lease + 1<<40: false} {
			e.errorIf(w.Owns(lease) != want, "owns %x: %t", lease, !want)
		}
		e.store.ExpireLeases(e.T)
		e.lost(lost)
		e.errorIf(w.Owns(lease), "%x has ended and is owned", lease)
	})
}

func put(key, value string) kvstore.Write { return kvstore.Write{Key: key, Value: []byte(value)} }
func gone(key string) kvstore.Write       { return kvstore.Write{Key: key, Delete: true} }
