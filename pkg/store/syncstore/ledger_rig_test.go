package syncstore

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// ledgerRig is a ledger, the naive kvstore that it maintains, and all writes and events in transit between them.
type ledgerRig struct {
	t *rapid.T
	l ledger

	now    time.Time
	items  map[string]kvstore.Event // the contents
	rev    int64
	lease  int64 // our lease; 0 if our keys have none
	events []kvstore.Event
	pos    int64                    // up to this revision they are delivered
	heard  map[string]int64         // the contents according to the delivered events, by revision
	values map[string]kvstore.Event // the same, with the complete events
	// written has the results of acknowledged writes, whose events may not have arrived yet.
	written map[string]kvstore.Event
	sent    []sentPart
	backup  *backup // of the kvstore; nil when there is none

	wanted map[string]string // the values that the owner wants
	asked  map[string]bool

	checkpoint *checkpoint                // the latest; nil when there is none
	since      map[string]map[string]bool // values wanted since then, for each name that was always wanted
}

// sentPart is a write that the outbox has taken.
type sentPart struct {
	part
	rev   int64 // the revision of the write; 0 if it is not made yet
	lease int64 // of the written key
	lost  bool  // the ledger was informed that the result is unknown
	gone  bool  // the kvstore was restored from an earlier backup since it was made
}

// backup has the contents of the kvstore at a revision.
type backup struct {
	items map[string]kvstore.Event
	rev   int64
}

func newLedgerRig(t *rapid.T, shared, lean, keep bool) *ledgerRig {
	return &ledgerRig{
		t: t, l: newLedger(shared, lean, keep), now: time.Unix(0, 0), items: map[string]kvstore.Event{}, rev: 1, lease: 100,
		heard: map[string]int64{}, values: map[string]kvstore.Event{}, written: map[string]kvstore.Event{}, wanted: map[string]string{}, asked: map[string]bool{},
	}
}

func (r *ledgerRig) owns(lease int64) bool { return lease == r.lease }

// write writes to the kvstore; an empty value deletes.
func (r *ledgerRig) write(name, value string, lease int64) int64 {
	if _, has := r.items[name]; value == "" && !has {
		return r.rev
	}
	r.rev++
	e := kvstore.Event{KeyValue: kvstore.KeyValue{Key: []byte(name), Value: []byte(value), Lease: lease, ModRevision: r.rev}}
	if r.items[name] = e; value == "" {
		e.Type, e.Value, e.Lease = kvstore.EventDelete, nil, 0
		delete(r.items, name)
	}
	r.events = append(r.events, e)
	return r.rev
}

func (r *ledgerRig) deliver(n int) {
	for _, e := range r.events[:n] {
		r.pos = e.ModRevision
		if e.ModRevision <= r.values[string(e.Key)].ModRevision { // already known from a write that was not made
			r.l.applyEvent(e.Key, &e, r.owns)
			continue
		}
		if r.heard[string(e.Key)] = e.ModRevision; e.Type == kvstore.EventDelete {
			delete(r.heard, string(e.Key))
		}
		r.values[string(e.Key)] = e
		r.l.applyEvent(e.Key, &e, r.owns)
	}
	r.events = r.events[n:]
}

func (r *ledgerRig) take(n int) {
	parts, _ := r.l.takeWrites(n, 1<<20, 10, true)
	if one, ok := r.l.takeRetry(r.now); ok {
		parts = append(parts, one)
	}
	for _, one := range parts {
		if r.l.stopped && !one.deletes {
			r.t.Fatalf("%s is put, and puts are stopped", one.name)
		}
		r.sent = append(r.sent, sentPart{part: one})
	}
}

// make executes a write in the kvstore.
func (r *ledgerRig) make(f *sentPart) {
	is, there := r.items[f.name]
	switch {
	case f.rev != 0:
	case r.l.keep && there && is.Lease == 0:
		f.kept, f.rev = &is.KeyValue, r.rev
	case f.deletes:
		f.absent = !there
		f.rev = r.write(f.name, "", 0)
	default:
		f.rev, f.lease = r.write(f.name, string(f.value), r.lease), r.lease
	}
}

// acknowledge reports the result of a write to the ledger.
func (r *ledgerRig) acknowledge(f *sentPart) {
	if r.make(f); f.kept != nil {
		if f.epoch == r.l.epoch && f.kept.ModRevision > r.values[f.name].ModRevision {
			r.heard[f.name], r.values[f.name] = f.kept.ModRevision, kvstore.Event{KeyValue: *f.kept}
		}
		r.l.finishKept(f.part, f.kept, r.owns, r.now)
	} else {
		if !f.absent && !f.gone {
			r.written[f.name] = kvstore.Event{KeyValue: kvstore.KeyValue{Value: f.value, Lease: f.lease, ModRevision: f.rev}}
		}
		r.l.finish(f.part, acknowledged, f.rev, nil, r.now)
	}
}

// isKept reports whether the key belongs permanently to another client.
func (r *ledgerRig) isKept(e kvstore.Event) bool {
	return r.l.keep && e.ModRevision > 0 && e.Type == kvstore.EventPut && e.Lease == 0
}

func (r *ledgerRig) list() {
	names := slices.Sorted(maps.Keys(r.items))
	for _, name := range names {
		e := r.items[name]
		r.heard[name], r.values[name] = e.ModRevision, e
		r.l.listItem([]byte(name), &e.KeyValue, r.owns)
	}
}

// relist lists everything, while other events occur.
func (r *ledgerRig) relist(meanwhile func()) {
	r.l.setFollowing(false)
	r.l.beginList()
	r.events = nil
	at := r.rev
	clear(r.heard)
	clear(r.values)
	clear(r.written)
	r.list()
	meanwhile()
	r.pos = at
	r.l.endList(at, r.owns)
	r.l.setFollowing(true)
}

// restore gives the kvstore the contents of the backup. The stream resumes if it has passed nothing that is not in it.
// Without [Params.Sole] the owner cannot know a shared key that was deleted before, so the backup does not have it.
func (r *ledgerRig) restore() {
	r.l.setFollowing(false)
	clear(r.written)
	forgotten := func(name string) bool {
		_, known := r.l.records.FindString(name)
		return r.l.shared && !known
	}
	maps.DeleteFunc(r.backup.items, func(name string, _ kvstore.Event) bool { return forgotten(name) })
	r.items, r.rev = maps.Clone(r.backup.items), r.backup.rev
	for i := range r.sent {
		f := &r.sent[i]
		f.gone = f.gone || f.rev > r.rev
	}
	r.events = slices.DeleteFunc(r.events, func(e kvstore.Event) bool { return e.ModRevision > r.rev || forgotten(string(e.Key)) })
	if r.pos > r.rev || !r.resumable() {
		r.relist(func() {})
		return
	}
	r.l.setFollowing(r.l.listed)
}

// resumable reports whether the present keys agree with those that the kvstore had at the position of the stream: not if
// one is known from the answer to a write.
func (r *ledgerRig) resumable() bool {
	for p := range r.l.records.All() {
		if line := r.l.records.At(p); isPresentLine(line) && line.Rev > r.pos {
			return false
		}
	}
	return r.l.present > 0
}

func (r *ledgerRig) expireLease() {
	if r.l.leases.none {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(r.items)) {
		if r.items[name].Lease == r.lease {
			r.write(name, "", 0)
		}
	}
	r.lease++
}

// answer supplies the requested values.
func (r *ledgerRig) answer() {
	for _, name := range slices.Sorted(maps.Keys(r.asked)) {
		delete(r.asked, name)
		r.l.supply(name, []byte("other"), r.now) // an outdated value
		if value, wanted := r.wanted[name]; wanted {
			r.l.supply(name, []byte(value), r.now)
		}
	}
}

func (r *ledgerRig) put(name, value string) {
	r.wanted[name] = value
	r.note(name)
	r.l.put(name, []byte(value), r.now)
}

// rest processes everything until no work is left.
func (r *ledgerRig) rest() {
	r.l.setStopped(false)
	for range 1000 {
		r.ask()
		r.answer()
		r.deliver(len(r.events))
		r.now = r.now.Add(retryLatest)
		r.take(3)
		if len(r.sent) == 0 && len(r.events) == 0 && len(r.asked) == 0 && len(r.l.missing) == 0 && r.l.dirty == 0 {
			return
		}
		for i := range r.sent {
			f := &r.sent[i]
			if r.make(f); !f.lost {
				r.acknowledge(f)
			}
		}
		r.sent = nil
	}
	r.t.Fatalf("it does not come to rest: %d dirty, %d inFlight, %v asked", r.l.dirty, r.l.inFlight, r.asked)
}

func (r *ledgerRig) ask() {
	for _, name := range r.l.takeMissing() {
		if r.asked[name] {
			r.t.Fatalf("%s is asked for twice", name)
		}
		r.asked[name] = true
	}
}

// check compares the kvstore, after rest, with the wanted values.
func (r *ledgerRig) check() {
	got, contradicts := map[string]string{}, map[string]string{}
	for name, e := range r.items {
		if r.isKept(e) {
			if value := r.wanted[name]; value != "" && value != string(e.Value) {
				contradicts[name] = string(e.Value)
			}
			continue
		}
		if !r.l.shared && (r.l.complete || r.wanted[name] != "") || r.wanted[name] != "" || strings.HasPrefix(string(e.Value), "own") {
			got[name] = string(e.Value)
		}
		if r.wanted[name] != "" && e.Lease != r.lease {
			r.t.Fatalf("%s is tied to lease %d, ours is %d", name, e.Lease, r.lease)
		}
	}
	for _, c := range r.l.contradictions() {
		if contradicts[c.Name] != string(c.Theirs) || !r.l.lean && string(c.Wanted) != r.wanted[c.Name] {
			r.t.Fatalf("at rest %s is said to contradict with %s", c.Name, c.Theirs)
		}
		delete(contradicts, c.Name)
	}
	if len(contradicts) > 0 {
		r.t.Fatalf("at rest nothing is said of %v", contradicts)
	}
	want := maps.Clone(r.wanted)
	maps.DeleteFunc(want, func(name, _ string) bool { return r.isKept(r.items[name]) })
	for name, value := range got {
		if !r.l.complete && want[name] == "" && !r.l.shared {
			want[name] = value // before completion the owner may still want it
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Fatalf("at rest (-want +kvstore):\n%s", diff)
	}
	if r.l.isClean() != r.l.complete {
		r.t.Fatalf("at rest, and clean is %t", r.l.isClean())
	}
	if c := r.checkpoint; c != nil && !c.invalid && c.n > 0 {
		r.t.Fatalf("at rest, and %d names of a checkpoint are not", c.n)
	}
}

// counts compares the counters with the marks of all lines.
func (r *ledgerRig) counts() {
	var wanted, there, dirty, inFlight, awaits, bytes int
	for p := range r.l.records.All() {
		line := r.l.records.At(p)
		is := line.Obj.marks
		for _, c := range []struct {
			n    *int
			mark mark
		}{{&wanted, isWanted}, {&there, isPresent}, {&dirty, isDirty}, {&inFlight, isInFlight}, {&awaits, isAwaited}} {
			if is.has(c.mark) {
				*c.n++
			}
		}
		bytes += len(line.Obj.value)
		if rev, heard := r.heard[line.Name]; is.has(isPresent) != heard && (!r.l.shared || !heard) || heard && is.has(isPresent) && rev != line.Rev {
			r.t.Fatalf("%s is noted as there (%t) at %d, heard of at %d", line.Name, is.has(isPresent), line.Rev, rev)
		}
		if is.has(isDirty) != r.l.differs(line) {
			r.t.Fatalf("%s is marked wrongly: %b", line.Name, is)
		}
		if is.has(isWanted) && line.Obj.want != maphash.String(r.l.seed, r.wanted[line.Name]) {
			r.t.Fatalf("%s is wanted otherwise", line.Name)
		}
		if r.l.lean && !is.has(isDirty|isInFlight|isAwaited) && line.Obj.value != nil {
			r.t.Fatalf("the value of %s is kept", line.Name)
		}
		if r.l.lean && r.l.stopped && is.has(isDirty) && !is.has(isInFlight|isAwaited) && line.Obj.value != nil {
			r.t.Fatalf("the value of %s is kept although puts are stopped", line.Name)
		}
	}
	sent := 0
	for _, f := range r.sent {
		if !f.lost {
			sent++
		}
	}
	if bytes != r.l.bytes || awaits != len(r.l.awaited) || !r.l.shared && there != len(r.heard) {
		r.t.Fatalf("%d bytes are held, %d noted; %d awaited, %d noted; %d there, %d heard of", bytes, r.l.bytes, awaits, len(r.l.awaited),
			there, len(r.heard))
	}
	if l := &r.l; wanted != l.wanted || there != l.present || dirty != l.dirty || inFlight != l.inFlight || sent != inFlight || wanted != len(r.wanted) {
		r.t.Fatalf("counted %d wanted, %d there, %d dirty, %d inFlight, %d sent; noted %d, %d, %d, %d; model %d", wanted, there, dirty,
			inFlight, sent, l.wanted, l.present, l.dirty, l.inFlight, len(r.wanted))
	}
}

// note records the value now wanted for a name, for the checkpoint.
func (r *ledgerRig) note(name string) {
	value, wanted := r.wanted[name]
	switch {
	case !wanted:
		delete(r.since, name)
	case r.since[name] != nil:
		r.since[name][value] = true
	}
}

// begin creates a checkpoint, and drops the previous one.
func (r *ledgerRig) begin() {
	if r.checkpoint != nil {
		r.l.dropCheckpoint(r.checkpoint)
	}
	r.checkpoint = r.l.newCheckpoint()
	if (r.checkpoint != nil) != (r.l.listed && r.l.complete) {
		r.t.Fatalf("a checkpoint: %t; listed %t, complete %t", r.checkpoint != nil, r.l.listed, r.l.complete)
	}
	r.since = map[string]map[string]bool{}
	for name, value := range r.wanted {
		r.since[name] = map[string]bool{value: true}
	}
}

// reached checks a reached checkpoint: each name that was wanted then has a value that was wanted then or later, with
// our lease. Names with a write in progress are skipped, since its result is unknown.
func (r *ledgerRig) reached() {
	if r.checkpoint == nil || !r.checkpoint.isReached() {
		return
	}
	for name, wants := range r.since {
		if p, known := r.l.records.FindString(name); known && r.l.records.At(p).Obj.marks.has(isInFlight) {
			continue
		}
		is := r.values[name]
		if written := r.written[name]; written.ModRevision > is.ModRevision {
			is = written // the last event is older than the write
		}
		if r.isKept(is) {
			continue
		}
		if value := string(is.Value); !wants[value] || is.Lease != r.lease {
			r.t.Fatalf("a checkpoint is reached, and %s is %q with the lease %d; wanted since then: %v", name, value, is.Lease, wants)
		}
	}
}
