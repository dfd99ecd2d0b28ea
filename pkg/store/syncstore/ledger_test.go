package syncstore

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestLedgerMachine: after random operations and events in random order, the kvstore finally has the contents that the
// owner wants.
func TestLedgerMachine(t *testing.T) {
	t.Parallel()
	for range 50 { // some sequences are rare, and each is short
		rapid.Check(t, ledgerMachine)
	}
}

func ledgerMachine(t *rapid.T) {
	unleased := rapid.Bool().Draw(t, "unleased")
	keep := !unleased && rapid.Bool().Draw(t, "keep")
	r := newLedgerRig(t, rapid.Bool().Draw(t, "shared"), rapid.Bool().Draw(t, "lean"), keep)
	if unleased {
		r.lease, r.l.leases.none = 0, true
	}
	names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	values := rapid.SampledFrom([]string{"own1", "own2", "own3"})
	others := rapid.SampledFrom([]string{"own1", "other1", "other2"})
	someSent := func(t *rapid.T, live bool) *sentPart {
		var of []*sentPart
		for i := range r.sent {
			if !live || !r.sent[i].lost {
				of = append(of, &r.sent[i])
			}
		}
		if len(of) == 0 {
			return nil
		}
		return rapid.SampledFrom(of).Draw(t, "sent part")
	}
	answer := func(f *sentPart) {
		i := slices.IndexFunc(r.sent, func(o sentPart) bool { return o.name == f.name && o.rev == f.rev && o.lost == f.lost })
		r.sent = slices.Delete(r.sent, i, i+1)
	}
	foreign := func(t *rapid.T) {
		name, value := names.Draw(t, "name"), others.Draw(t, "value")
		if r.l.shared {
			value = "other"
		}
		if rapid.Bool().Draw(t, "delete") {
			value = ""
		}
		r.write(name, value, rapid.SampledFrom([]int64{0, 7, r.lease}).Draw(t, "lease"))
	}
	t.Repeat(map[string]func(*rapid.T){
		"put": func(t *rapid.T) { r.put(names.Draw(t, "name"), values.Draw(t, "value")) },
		"delete": func(t *rapid.T) {
			name := names.Draw(t, "name")
			delete(r.wanted, name)
			r.note(name)
			r.l.remove(name, r.now)
		},
		"complete":       func(*rapid.T) { r.l.markComplete() },
		"somebody else":  foreign,
		"lease ends":     func(*rapid.T) { r.expireLease(); r.l.refreshLeases(r.owns) },
		"deliver":        func(t *rapid.T) { r.deliver(rapid.IntRange(0, len(r.events)).Draw(t, "events")) },
		"take":           func(t *rapid.T) { r.take(rapid.IntRange(1, 3).Draw(t, "most")) },
		"stop or go":     func(t *rapid.T) { r.l.setStopped(rapid.Bool().Draw(t, "stop")) },
		"ask and answer": func(*rapid.T) { r.ask(); r.answer() },
		"make": func(t *rapid.T) {
			if f := someSent(t, false); f != nil {
				r.make(f)
			}
		},
		"acknowledge": func(t *rapid.T) {
			if f := someSent(t, true); f != nil {
				r.acknowledge(f)
				answer(f)
			}
		},
		"lose the answer": func(t *rapid.T) {
			f := someSent(t, true)
			switch {
			case f == nil:
			case r.l.shared && f.rev == 0: // a write after this would leave a key that the ledger does not have
				r.l.finish(f.part, unknown, 0, nil, r.now)
				answer(f)
			default:
				r.l.finish(f.part, unknown, 0, nil, r.now)
				f.lost = true
			}
		},
		"refuse": func(t *rapid.T) {
			if f := someSent(t, true); f != nil && f.rev == 0 {
				r.l.finish(f.part, refused, 0, errTooLarge, r.now)
				if line := r.l.records.At(f.at); r.l.lean && line.Obj.value != nil {
					t.Fatalf("the refused value of %s is kept", line.Name)
				}
				answer(f)
			}
		},
		"time passes": func(t *rapid.T) {
			r.now = r.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "ms")) * time.Millisecond)
		},
		"list": func(t *rapid.T) {
			r.relist(func() {
				foreign(t)
				if f := someSent(t, true); f != nil && rapid.Bool().Draw(t, "answer") {
					r.acknowledge(f)
					answer(f)
				}
			})
		},
		"break and resume": func(*rapid.T) {
			r.l.setFollowing(false)
			r.l.setFollowing(r.l.listed)
		},
		"back up": func(*rapid.T) { r.backup = &backup{maps.Clone(r.items), r.rev} },
		"restore": func(*rapid.T) {
			if r.backup != nil {
				r.restore()
			}
		},
		"list of another kvstore": func(t *rapid.T) {
			clear(r.items)
			r.backup = nil
			r.sent = slices.DeleteFunc(r.sent, func(f sentPart) bool { return f.lost })
			if !r.l.leases.none {
				r.lease++
			}
			r.rev = rapid.SampledFrom([]int64{1, r.rev}).Draw(t, "revision")
			for i := range r.sent {
				r.sent[i].rev, r.sent[i].kept, r.sent[i].absent = 0, nil, false
			}
			for range rapid.IntRange(0, 3).Draw(t, "writes") {
				foreign(t)
			}
			r.relist(func() {})
		},
		"at rest": func(*rapid.T) {
			if !r.l.following {
				r.relist(func() {})
			}
			r.rest()
			r.check()
		},
		"checkpoint": func(*rapid.T) { r.begin() },
		"":           func(*rapid.T) { r.counts(); r.reached() },
	})
	if !r.l.following {
		r.relist(func() {})
	}
	r.rest()
	r.check()
}
