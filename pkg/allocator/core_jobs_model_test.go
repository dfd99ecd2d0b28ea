package allocator

import (
	"time"

	"pgregory.net/rapid"
)

func (m *coreModel) owe(text string) {
	if w := m.working[text]; w != nil && m.pending[text] != nil {
		m.pending[text].again = true
	}
	if m.pending[text] == nil {
		m.pending[text] = &modelDebt{due: m.now}
	}
}

func (m *coreModel) disturbed(text string) {
	if m.core.protect && text != "" {
		m.owe(text)
	}
}

// gone records in the model that a mapping of the key was deleted.
func (m *coreModel) gone(text string) {
	if w := m.working[text]; w != nil && w.kind == nil {
		w.changed = true
	}
}

func (m *coreModel) upsert(t *rapid.T) {
	id, text := rapid.Uint64Range(1, modelAll).Draw(t, "id"), m.key(t)
	before := m.mappings[id]
	old, duplicate := m.core.upsert(id, textKey(text), m.now)
	if (old == nil) != (before == "") || old != nil && old.GetKey() != before {
		t.Fatalf("%d was %q, got %v", id, before, old)
	}
	delete(m.rejected, id)
	if before == text {
		return
	}
	m.mappings[id] = text
	several := 0
	for _, has := range m.mappings {
		if has == text {
			several++
		}
	}
	if duplicate != (several > 1) {
		t.Fatalf("%s has %d IDs, duplicate: %v", text, several, duplicate)
	}
	m.gone(before)
	if m.user(id) != text {
		m.disturbed(m.user(id))
	}
}

func (m *coreModel) refuse(t *rapid.T) {
	id, text := rapid.Uint64Range(1, modelAll).Draw(t, "id"), m.key(t)
	m.core.reject(id, textKey(text), m.now)
	m.rejected[id] = text
	m.gone(m.mappings[id])
	if m.user(id) != text {
		m.disturbed(m.user(id))
	}
}

func (m *coreModel) delete(t *rapid.T) {
	id := rapid.Uint64Range(1, modelAll).Draw(t, "id")
	before := m.mappings[id]
	if old := m.core.delete(id, m.now); (old == nil) != (before == "") || old != nil && old.GetKey() != before {
		t.Fatalf("%d was %q, got %v", id, before, old)
	}
	if before == "" && m.rejected[id] == "" {
		return
	}
	delete(m.mappings, id)
	delete(m.rejected, id)
	m.gone(before)
	m.disturbed(m.user(id))
}

// began checks a job and records that it has started.
func (m *coreModel) began(t *rapid.T, j job) {
	want := jobRefresh
	switch mapped := m.there(j.id); {
	case m.refs[j.text] == 0:
		want = jobDrop
	case mapped == "":
		want = jobPutBack
	case m.core.protect && mapped != j.text:
		want = jobRestore
		if j.instead.GetKey() != mapped {
			t.Fatalf("%d says %s, not %s", j.id, mapped, j.instead)
		}
	}
	if j.kind != want || j.key.GetKey() != j.text || m.refs[j.text] > 0 && j.id != m.ids[j.text] {
		t.Fatalf("got job %+v, want it to %s %d", j, want, m.ids[j.text])
	}
	m.working[j.text] = &modelWork{kind: &j.kind}
	m.pending[j.text].again = false
}

func (m *coreModel) next(t *rapid.T) {
	n := rapid.IntRange(1, 3).Draw(t, "n")
	due := make(map[string]bool)
	for text, debt := range m.pending {
		if m.working[text] == nil && !debt.due.After(m.now) {
			due[text] = true
		}
	}
	jobs := m.core.next(m.now, n)
	if len(jobs) != min(n, len(due)) {
		t.Fatalf("got %d jobs of at most %d, due are %v", len(jobs), n, due)
	}
	for _, j := range jobs {
		if !due[j.text] {
			t.Fatalf("%s is not due", j.text)
		}
		m.began(t, j)
	}
}

func (m *coreModel) take(t *rapid.T) {
	text := m.key(t)
	j, ok := m.core.take(text)
	if ok != (m.pending[text] != nil && m.working[text] == nil) {
		t.Fatalf("took the job of %s: %v", text, ok)
	}
	if ok {
		m.began(t, j)
	}
}

func (m *coreModel) done(t *rapid.T) {
	for _, text := range modelKeys() {
		if w := m.working[text]; w == nil || w.kind == nil {
			continue
		}
		failed := rapid.Bool().Draw(t, "failed")
		m.core.done(text, failed, m.now, 0)
		delete(m.working, text)
		switch debt := m.pending[text]; {
		case failed:
			debt.failures++
			wait := 10 * time.Millisecond
			for n := 1; n < debt.failures && wait < 5*time.Second; n++ {
				wait *= 2
			}
			*debt = modelDebt{due: m.now.Add(min(wait, 5*time.Second)), failures: debt.failures}
		case debt.again:
			*debt = modelDebt{due: m.now}
		default:
			delete(m.pending, text)
		}
		return
	}
}

func (m *coreModel) refresh(*rapid.T) {
	m.core.refreshAll(m.now)
	for text := range m.ids {
		m.owe(text)
	}
}
