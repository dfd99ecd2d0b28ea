package allocator

import (
	"cmp"
	"errors"
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var coreSteps = flag.Int("core.steps", 10_000, "how many steps the test of the core against its model takes")

// The model is small, so that its operations often collide: IDs 1 to 6 may be allocated, 7 and 8 occur only as
// mappings.
const modelMax, modelAll = 6, 8

func modelKeys() []string { return []string{"a", "b", "c", "d"} }

// coreModel is a naive implementation of the core.
type coreModel struct {
	core *core
	now  time.Time

	mappings map[uint64]string
	rejected map[uint64]string
	refs     map[string]int
	ids      map[string]uint64 // of used keys
	working  map[string]*modelWork
	pending  map[string]*modelDebt
}

// modelWork is an allocation, or a job if kind is not nil.
type modelWork struct {
	kind    *jobKind
	try     *candidate
	lease   uint64
	taken   uint64
	gone    uint64
	unsure  bool
	changed bool // a mapping of the key was deleted
}

type modelDebt struct {
	due      time.Time
	failures int
	again    bool
}

// TestCoreAgainstModel: after random operations in random order, the core and a naive model agree.
func TestCoreAgainstModel(t *testing.T) {
	t.Parallel()
	const rounds = 100 // the default of rapid
	rapid.Check(t, func(t *rapid.T) {
		m := &coreModel{
			core: newCore(1, modelMax, rapid.Bool().Draw(t, "protect")), now: time.Unix(1000, 0),
			mappings: make(map[uint64]string), rejected: make(map[uint64]string), refs: make(map[string]int), ids: make(map[string]uint64),
			working: make(map[string]*modelWork), pending: make(map[string]*modelDebt),
		}
		m.core.pool.random = func(below uint64) uint64 { return rapid.Uint64Range(0, below-1).Draw(t, "random") }
		steps := map[string]func(*rapid.T){
			"begin": m.begin, "candidate": m.candidate, "refused": m.refused, "unsure": m.unsure, "used": m.used,
			"abandon": m.abandon, "release": m.release, "upsert": m.upsert, "refuse": m.refuse, "delete": m.delete,
			"next": m.next, "take": m.take, "done": m.done, "refresh": m.refresh, "time": m.time,
		}
		step := rapid.SampledFrom(slices.Sorted(maps.Keys(steps)))
		for range *coreSteps / rounds {
			steps[step.Draw(t, "step")](t)
			m.check(t)
		}
	})
}

// key draws a key.
func (m *coreModel) key(t *rapid.T) string {
	return rapid.SampledFrom(modelKeys()).Draw(t, "key")
}

// allocation draws an allocation that is in progress; nil if there is none.
func (m *coreModel) allocation(t *rapid.T, tried bool) (string, *modelWork) {
	var texts []string
	for _, text := range modelKeys() {
		if w := m.working[text]; w != nil && w.kind == nil && (!tried || w.try != nil) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return "", nil
	}
	text := rapid.SampledFrom(texts).Draw(t, "allocation")
	return text, m.working[text]
}

func (m *coreModel) user(id uint64) string {
	for text, has := range m.ids {
		if has == id {
			return text
		}
	}
	return ""
}

func (m *coreModel) leaser(id uint64) *modelWork {
	for _, w := range m.working {
		if w.lease == id {
			return w
		}
	}
	return nil
}

func (m *coreModel) available(id uint64) bool {
	return id <= modelMax && m.there(id) == "" && m.user(id) == "" && m.leaser(id) == nil
}

func (m *coreModel) there(id uint64) string { return cmp.Or(m.rejected[id], m.mappings[id]) }

func (m *coreModel) least(text string) uint64 {
	for id := uint64(1); id <= modelAll; id++ {
		if m.mappings[id] == text {
			return id
		}
	}
	return NoID
}

func (m *coreModel) begin(t *rapid.T) {
	text := m.key(t)
	id, whose := m.core.begin(textKey(text), text)
	switch {
	case m.refs[text] > 0:
		m.refs[text]++
		if whose != turnInUse || id != m.ids[text] {
			t.Fatalf("%s is in use as %d: got %v, %d", text, m.ids[text], whose, id)
		}
	case m.working[text] != nil:
		if whose != turnWait {
			t.Fatalf("somebody works on %s: got %v", text, whose)
		}
	default:
		if whose != turnMine {
			t.Fatalf("nobody works on %s: got %v", text, whose)
		}
		m.working[text] = &modelWork{}
	}
}

func (m *coreModel) candidate(t *rapid.T) {
	text, w := m.allocation(t, false)
	if w == nil {
		return
	}
	referenced := rapid.SampledFrom([]uint64{NoID, NoID, 1, 2, 3, 7}).Draw(t, "referenced")
	free := make(map[uint64]bool)
	for id := uint64(1); id <= modelMax; id++ {
		if m.available(id) {
			free[id] = true
		}
	}
	got, err := m.core.candidate(text, referenced)
	least := m.least(text)
	var want candidate
	switch {
	case referenced != NoID && m.user(referenced) != "":
		if !errors.Is(err, errInUse) {
			t.Fatalf("%d is in use here: got %v, %v", referenced, got, err)
		}
		return
	case referenced != NoID:
		want = candidate{referenced, w.gone == referenced}
	case least != NoID && least <= modelMax && least != w.taken && m.user(least) == "" && m.rejected[least] == "":
		want = candidate{least, w.gone == least}
	default:
		if w.lease != NoID && m.user(w.lease) != "" {
			w.lease = NoID
		}
		if w.lease == NoID && len(free) == 0 {
			if !errors.Is(err, ErrNoFreeID) {
				t.Fatalf("nothing is free: got %v, %v", got, err)
			}
			return
		}
		if w.lease == NoID {
			if !free[got.id] {
				t.Fatalf("leased %d, which was not free", got.id)
			}
			w.lease = got.id
		}
		want = candidate{w.lease, true}
	}
	if err != nil || got != want {
		t.Fatalf("candidate for %s with %d referenced: got %v, %v, want %v", text, referenced, got, err, want)
	}
	w.try = &got
}

func (m *coreModel) refused(t *rapid.T) {
	text, w := m.allocation(t, true)
	if w == nil {
		return
	}
	m.core.refused(text, *w.try)
	m.wasRefused(w, *w.try)
}

func (m *coreModel) wasRefused(w *modelWork, tried candidate) {
	switch {
	case !tried.create:
		w.gone = tried.id
	default:
		w.taken = tried.id
		if w.lease == tried.id {
			w.lease = NoID
		}
	}
	w.try = nil
}

func (m *coreModel) unsure(t *rapid.T) {
	text, w := m.allocation(t, true)
	if w == nil {
		return
	}
	m.core.unsure(text, w.try.id)
	w.unsure, w.try = true, nil
}

func (m *coreModel) used(t *rapid.T) {
	text, w := m.allocation(t, true)
	if w == nil {
		return
	}
	id := w.try.id
	ok := m.core.used(text, id, m.now)
	if ok != (m.user(id) == "") {
		t.Fatalf("%s got %d, which %q uses: %v", text, id, m.user(id), ok)
	}
	if !ok {
		m.wasRefused(w, candidate{id, true})
		w.unsure = true
		return
	}
	delete(m.working, text)
	delete(m.pending, text)
	m.refs[text], m.ids[text] = 1, id
	if w.changed || m.there(id) != "" && m.there(id) != text {
		m.disturbed(text)
	}
}

func (m *coreModel) abandon(t *rapid.T) {
	text, w := m.allocation(t, false)
	if w == nil {
		return
	}
	m.core.abandon(text, m.now)
	delete(m.working, text)
	if w.unsure {
		m.owe(text)
	}
}

func (m *coreModel) release(t *rapid.T) {
	text := m.key(t)
	last, err := m.core.release(text, m.now)
	if m.refs[text] == 0 {
		if !errors.Is(err, ErrIdentityNonExistent) {
			t.Fatalf("%s is not in use: got %v", text, err)
		}
		return
	}
	m.refs[text]--
	if err != nil || last != (m.refs[text] == 0) {
		t.Fatalf("%d uses of %s are left: got %v, %v", m.refs[text], text, last, err)
	}
	if last {
		delete(m.ids, text)
		m.owe(text)
		m.pending[text].due = m.now
	}
}

func (m *coreModel) time(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "ms")) * time.Millisecond)
}

// check compares the complete state.
func (m *coreModel) check(t *rapid.T) {
	for id := uint64(1); id <= modelAll; id++ {
		if m.core.pool.available(id) != m.available(id) {
			t.Fatalf("%d available: %v, want %v", id, m.core.pool.available(id), m.available(id))
		}
		key, user := m.core.mappings.key(id), m.user(id)
		if (key == nil) != (m.mappings[id] == "") || key != nil && key.GetKey() != m.mappings[id] {
			t.Fatalf("%d is %v, want %q", id, key, m.mappings[id])
		}
		if u := m.core.byID[id]; (u == nil) != (user == "") || u != nil && u.text != user {
			t.Fatalf("%d is used by %v, want %q", id, u, user)
		}
	}
	var first *time.Time
	for _, text := range modelKeys() {
		u, debt := m.core.uses[text], m.pending[text]
		if (u == nil) != (m.refs[text] == 0 && m.working[text] == nil && debt == nil) {
			t.Fatalf("there is %+v of %s, uses %d", u, text, m.refs[text])
		}
		if got := m.core.mappings.id(text); got != m.least(text) {
			t.Fatalf("%s is %d, want %d", text, got, m.least(text))
		}
		if debt != nil && m.working[text] == nil && (first == nil || debt.due.Before(*first)) {
			first = &debt.due
			if first.Before(m.now) {
				first = &m.now
			}
		}
	}
	if at, ok := m.core.wake(m.now); ok != (first != nil) || ok && !at.Equal(*first) {
		t.Fatalf("next job at %v, %v, want %v", at, ok, first)
	}
	if len(m.core.todo) != len(m.pending) || len(m.core.byID) != len(m.ids) {
		t.Fatalf("%d jobs pending, want %d; %d IDs in use, want %d", len(m.core.todo), len(m.pending), len(m.core.byID), len(m.ids))
	}
}
