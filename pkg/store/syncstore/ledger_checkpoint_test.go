package syncstore

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// checkpointRig is a ledger after its list. The test decides when its writes are acknowledged.
type checkpointRig struct {
	l   ledger
	rev int64
}

func newCheckpointRig() *checkpointRig {
	r := &checkpointRig{l: newLedger(false, false, false), rev: 1}
	r.l.beginList()
	r.l.endList(r.rev, ownsSeven)
	r.l.setFollowing(true)
	r.l.markComplete()
	return r
}

func ownsSeven(lease int64) bool { return lease == 7 }

func (r *checkpointRig) put(value string, names ...string) {
	for _, name := range names {
		r.l.put(name, []byte(value), time.Time{})
	}
}

func (r *checkpointRig) take() []part {
	parts, _ := r.l.takeWrites(100, 1<<20, 0, true)
	return parts
}

// make acknowledges writes, all at one revision.
func (r *checkpointRig) make(parts []part) (rev int64) {
	r.rev++
	for _, one := range parts {
		r.l.finish(one, acknowledged, r.rev, nil, time.Time{})
	}
	return r.rev
}

// tell applies the events of writes at a revision.
func (r *checkpointRig) tell(rev int64, parts []part) {
	for _, one := range parts {
		e := kvstore.Event{KeyValue: kvstore.KeyValue{Value: one.value, ModRevision: rev, Lease: 7}}
		if one.deletes {
			e = kvstore.Event{Type: kvstore.EventDelete, KeyValue: kvstore.KeyValue{ModRevision: rev}}
		}
		r.l.applyEvent([]byte(one.name), &e, ownsSeven)
	}
}

// otherWriter applies the event of a write by another client; an empty value deletes.
func (r *checkpointRig) otherWriter(name, value string) {
	r.rev++
	e := kvstore.Event{KeyValue: kvstore.KeyValue{Value: []byte(value), ModRevision: r.rev}}
	if value == "" {
		e.Type = kvstore.EventDelete
	}
	r.l.applyEvent([]byte(name), &e, ownsSeven)
}

// TestACheckpointUnderChanges: names change faster than they are written. Each name counts once, and is reached with
// the first write that started after the checkpoint was requested.
func TestACheckpointUnderChanges(t *testing.T) {
	t.Parallel()
	r := newCheckpointRig()
	r.put("1", "a", "b")
	older := r.take()
	r.put("2", "a", "b")
	c := r.l.newCheckpoint()
	r.tell(r.make(older), older)
	if c.isReached() {
		t.Fatal("reached by writes of what was wanted before")
	}
	parts := r.take()
	r.put("3", "a", "b", "c")
	rev := r.make(parts)
	if c.isReached() {
		t.Fatal("reached before it was heard of")
	}
	another := r.l.newCheckpoint()
	following := r.take() // before the events of the earlier ones arrive
	r.tell(rev, parts)
	switch {
	case !c.isReached():
		t.Errorf("%d names are not written", c.n)
	case r.l.isClean():
		t.Error("it is clean: that proves nothing")
	case another.isReached():
		t.Error("a later one is reached by writes of what was wanted before")
	}
	rev = r.make(following)
	r.put("4", "a", "b", "c")
	r.tell(rev, following)
	if !another.isReached() {
		t.Errorf("%d names of the later one are not written", another.n)
	}
}

// TestACheckpointBesideAnAwaitedWrite: the event that arrives is that of an older value, while the write of the wanted
// value is in progress.
func TestACheckpointBesideAnAwaitedWrite(t *testing.T) {
	t.Parallel()
	r := newCheckpointRig()
	r.put("1", "a")
	older := r.take()
	rev := r.make(older)
	r.put("2", "a")
	c := r.l.newCheckpoint()
	parts := r.take()
	r.tell(rev, older)
	if c.isReached() {
		t.Fatal("reached by the event of an older value")
	}
	r.put("3", "a")
	r.tell(r.rev+1, parts) // before it is acknowledged
	if c.isReached() {
		t.Fatal("reached before it was acknowledged")
	}
	if r.make(parts); !c.isReached() {
		t.Error("it is not reached")
	}
}

// TestACheckpointAndLosses: a change that another client makes to a wanted name must be repaired first. A name that the
// owner does not want does not count. A loss of everything ends the checkpoint.
func TestACheckpointAndLosses(t *testing.T) {
	t.Parallel()
	written := func() (*checkpointRig, *checkpoint) {
		r := newCheckpointRig()
		r.put("1", "a", "b")
		parts := r.take()
		r.tell(r.make(parts), parts)
		return r, r.l.newCheckpoint()
	}
	for name, lost := range map[string]func(*checkpointRig){
		"deleted":                     func(r *checkpointRig) { r.otherWriter("a", "") },
		"changed":                     func(r *checkpointRig) { r.otherWriter("a", "x") },
		"taken over by another lease": func(r *checkpointRig) { r.otherWriter("a", "1") },
		"deleted while it is written": func(r *checkpointRig) {
			r.put("2", "a")
			parts := r.take()
			r.otherWriter("a", "")
			r.rev -= 2 // our write was made before the deletion
			r.make(parts)
			r.rev++
		},
		"perhaps": func(r *checkpointRig) {
			r.put("2", "a")
			for _, one := range r.take() {
				r.l.finish(one, unknown, 0, nil, time.Time{})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, c := written()
			if !c.isReached() {
				t.Fatal("it is not reached at once")
			}
			if lost(r); c.isReached() {
				t.Fatal("it is reached although a name was lost")
			}
			parts := r.take()
			r.put("3", "a", "b")
			if r.tell(r.make(parts), parts); !c.isReached() {
				t.Errorf("written again, and %d names are not", c.n)
			}
		})
	}
	r, c := written()
	r.put("2", "b", "c")
	r.otherWriter("nobody's", "x")
	if !c.isReached() {
		t.Error("what has changed since is waited for")
	}
	for name, end := range map[string]func(*ledger){
		"a list": (*ledger).beginList,
		"leases": func(l *ledger) { l.refreshLeases(func(int64) bool { return false }) },
	} {
		r, c := written()
		if end(&r.l); c.isReached() || !c.invalid {
			t.Errorf("%s: reached %t, invalid %t", name, c.isReached(), c.invalid)
		}
	}
}

// TestALateAnswerDelaysACheckpoint: a deletion that is answered after a list, or during it, was made after the list. The
// name is wanted again meanwhile, and as listed: it is not written before the event of the deletion.
func TestALateAnswerDelaysACheckpoint(t *testing.T) {
	t.Parallel()
	for _, during := range []bool{false, true} {
		r := newCheckpointRig()
		r.put("v", "a")
		put := r.take()
		r.tell(r.make(put), put)
		before := kvstore.KeyValue{Value: []byte("v"), ModRevision: r.rev, Lease: 7}
		r.l.remove("a", time.Time{})
		deletion := r.take()

		var deleted int64
		r.l.beginList()
		r.l.listItem([]byte("a"), &before, ownsSeven)
		at := r.rev
		if during {
			deleted = r.make(deletion)
		}
		r.l.endList(at, ownsSeven)
		r.put("v", "a")
		c := r.l.newCheckpoint()
		if !during {
			deleted = r.make(deletion)
		}
		if c.isReached() {
			t.Errorf("answered during the list: %t: reached before the event of the deletion", during)
		}
		r.tell(deleted, deletion)
		again := r.take()
		if len(again) != 1 || again[0].deletes || c.isReached() {
			t.Fatalf("answered during the list: %t: %d writes after the deletion, reached: %t", during, len(again), c.isReached())
		}
		r.tell(r.make(again), again)
		if !c.isReached() {
			t.Errorf("answered during the list: %t: not reached after all", during)
		}
	}
}

// TestADeletionOfWhatAnotherWrote: a deletion, sent before a list that does not have the key, deletes what another writer
// wrote after that list. The event of that writer, whose value is wanted again, comes first.
func TestADeletionOfWhatAnotherWrote(t *testing.T) {
	t.Parallel()
	r := newCheckpointRig()
	r.put("v", "a")
	put := r.take()
	r.tell(r.make(put), put)
	r.l.remove("a", time.Time{})
	deletion := r.take()
	r.l.beginList()
	r.l.endList(r.rev, ownsSeven)

	r.rev++
	theirs := r.rev
	deleted := r.make(deletion)
	r.put("v", "a")
	c := r.l.newCheckpoint()
	r.tell(theirs, put)
	if c.isReached() {
		t.Fatal("reached, and the key was deleted")
	}
	r.tell(deleted, deletion)
	again := r.take()
	if len(again) != 1 || c.isReached() {
		t.Fatalf("%d writes after the deletion, reached: %t", len(again), c.isReached())
	}
	if r.tell(r.make(again), again); !c.isReached() {
		t.Error("not reached after all")
	}
}

// TestWhatARestoredServerLostIsWrittenAgain: the stream resumes where it ended, on a server that has lost the
// acknowledged writes whose events had not arrived.
func TestWhatARestoredServerLostIsWrittenAgain(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]bool{"answered before": false, "answered later": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newCheckpointRig()
			r.put("1", "a")
			parts := r.take()
			r.tell(r.make(parts), parts)
			r.put("1", "b")
			r.l.remove("a", time.Time{})
			parts = r.take()
			if !late {
				r.make(parts)
			}
			r.l.setFollowing(false)
			r.l.setFollowing(true)
			if late {
				r.make(parts)
			}
			if again := r.take(); len(again) != 2 {
				t.Errorf("%d writes are made again", len(again))
			}
		})
	}
}
