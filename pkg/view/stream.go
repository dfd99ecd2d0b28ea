package view

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"
	"time"
)

// EventType says what an [Event] is about.
type EventType string

// The events of a stream.
const (
	Upsert EventType = "upsert" // the object is there, as it is now
	Delete EventType = "delete" // the object is gone, or passes the filter no more
	Reset  EventType = "reset"  // forget everything: the state follows from the beginning; Reason says why
	Synced EventType = "synced" // the state of this kind is complete; changes follow
	// Page ends some changes, and Reached what was sent to a reader that was behind:
	// nothing of what came before the token is missing.
	Page    EventType = "page"
	Reached EventType = "reached"
)

// Event is one thing that a stream sends.
type Event struct {
	Type     EventType
	Kind     Kind   // of Upsert, Delete and Synced
	Position uint64 // of the change, or of the state
	// Object is the object as it is now, of a Delete as it was last. Before is what the
	// reader of the stream had of it; nil: nothing.
	Object, Before any
	Reason         string // of a Reset

	// Snapshot is not older than the event, of Upsert and Delete.
	Snapshot *Snapshot

	feed    *feed
	partial bool
}

// Token is where to go on after this event. That of an event of a state that is not
// complete is no position: to go on there means to begin again.
func (e Event) Token() string {
	if e.partial {
		return e.feed.partial()
	}
	return e.feed.token(e.Position)
}

// Receiver takes what a stream sends. Its methods are called by the goroutine that runs
// the stream; an error ends the stream.
type Receiver interface {
	// Event takes one event. While it does not return, nothing is buffered for it.
	Event(e Event) error
	// Idle is called when there is nothing to send, and returns when more is closed, or
	// earlier. The event is a Page.
	Idle(ctx context.Context, at Event, more <-chan struct{}) error
}

// Filter chooses objects of one kind. Its methods are called by the goroutine that runs the stream.
type Filter interface {
	// Named applies what is about the name of an object, which always passes or never;
	// Passes applies the rest, as of a snapshot.
	Named(object any) bool
	Passes(s *Snapshot, object any) bool
	// All are the objects of a snapshot; it may leave out some that do not pass.
	All(s *Snapshot) iter.Seq[any]
	// Uses names the kind that Passes looks at beside its own, empty for none. Touched are
	// the objects that changes of that kind may have let in or out.
	Uses() Kind
	Touched(s *Snapshot, changed []any) iter.Seq[any]
}

// Turns bounds how many streams may keep a snapshot while they are behind.
type Turns interface {
	// Take waits for a turn until ctx ends; Try does not wait. The turn ends with end.
	Take(ctx context.Context) (end func(), err error)
	Try() (end func(), ok bool)
	// Wanted reports whether somebody else waits for a turn, or did so in vain.
	Wanted() bool
}

// Ended is why a stream ends that was not asked to.
type Ended string

// Error implements error.
func (e Ended) Error() string { return string(e) }

// Limits of a stream.
const (
	pageSize    = 256              // changes taken from the feed at a time
	maxRestarts = 3                // states in a row after which too much may have changed at once
	turnWait    = 30 * time.Second // for the turn of a state
	// TurnTime is how long a reader may take for a state and what changes meanwhile, before
	// others have their turn.
	TurnTime = 10 * time.Minute
)

// Subscription is what a stream sends of one kind.
type Subscription struct {
	Kind   Kind
	Filter Filter // nil: everything

	index int // of the kind
	kind  *kind
	// sent holds what the reader has, when that depends on another kind; nil when it
	// follows from the changes.
	sent map[string]struct{}
}

// Stream is one reader's stream. It belongs to one goroutine.
type Stream struct {
	v     *View
	subs  []*Subscription
	to    Receiver
	turns Turns // nil: nobody waits
	token string
	// position is where to go on if resumes is set; else a state comes first.
	position uint64
	resumes  bool
	turn     turn
	page     *[]feedEntry    // lent while there is something to tell
	more     <-chan struct{} // of what there is to wait for; nil while there is something to tell
	restarts int             // states in a row after which too much had changed at once
	// has is what the reader has, at position, while it is behind; nil once it keeps up.
	has      *Snapshot
	kept     func() // while it is a keeper
	ended    atomic.Bool
	aborting atomic.Pointer[time.Timer]
}

// Stream returns a stream of some kinds, all of them when none is named, that goes on
// after a token; an empty one begins with the state.
func (v *View) Stream(token string, subscriptions ...Subscription) *Stream {
	if len(subscriptions) == 0 {
		for _, k := range Kinds() {
			subscriptions = append(subscriptions, Subscription{Kind: k})
		}
	}
	s := &Stream{v: v, token: token}
	for _, sub := range subscriptions {
		sub.index = indexOf(sub.Kind)
		sub.kind = &v.kinds[sub.index]
		if sub.Filter == nil {
			sub.Filter = everything{v, sub.kind}
		}
		s.subs = append(s.subs, &sub)
	}
	s.position, s.resumes = s.resume()
	return s
}

// Resumes reports whether the stream goes on after its token, without a state first.
func (s *Stream) Resumes() bool { return s.resumes }

// everything is the filter that lets everything pass.
type everything struct {
	v    *View
	kind *kind
}

func (everything) Named(any) bool                             { return true }
func (everything) Passes(*Snapshot, any) bool                 { return true }
func (f everything) All(s *Snapshot) iter.Seq[any]            { return f.kind.all(f.v, s) }
func (everything) Uses() Kind                                 { return "" }
func (everything) Touched(*Snapshot, []any) (n iter.Seq[any]) { return n }

// each calls give with every object of a snapshot that passes the filter, until that fails.
func (sub *Subscription) each(s *Snapshot, give func(object any) error) error {
	for object := range sub.Filter.All(s) {
		if !sub.Filter.Named(object) || !sub.Filter.Passes(s, object) {
			continue
		}
		if err := give(object); err != nil {
			return err
		}
	}
	return nil
}

// uses reports whether what the reader has depends on more than the changes say.
func (s *Stream) uses() bool {
	return slices.ContainsFunc(s.subs, func(sub *Subscription) bool { return sub.Filter.Uses() != "" })
}

// resume returns where the reader goes on; false when it needs a state first.
func (s *Stream) resume() (uint64, bool) {
	position, known := s.v.feed.position(s.token)
	if s.uses() {
		return 0, false // nobody knows what was sent
	}
	if known {
		s.v.Position()
		known, _ = s.v.feed.lag(position, s.kinds())
	}
	return position, known
}

// Run sends the state, unless the stream goes on after a token, and then the changes,
// until ctx ends or the receiver fails. Its error is that of ctx, that of the receiver,
// or an [Ended]. It is called once. Turns may be nil.
func (s *Stream) Run(ctx context.Context, to Receiver, turns Turns) error {
	s.to, s.turns = to, turns
	defer s.v.feed.reading()()
	defer s.release()
	defer s.keepUp()
	var err error
	if !s.resumes {
		err = s.begin(ctx, s.whyAgain())
	}
	for err == nil {
		if err = s.step(ctx); err == nil && s.more != nil {
			// Here, not deeper: idle streams are many, and each has a stack.
			more := s.more
			s.more = nil
			err = to.Idle(ctx, s.at(Page), more)
		}
	}
	return err
}

// whyAgain is why a reader that has a token needs a state; empty for those without one.
func (s *Stream) whyAgain() string {
	switch {
	case s.token == "":
		return ""
	case s.uses():
		return "addresses that are chosen by labels always begin again"
	}
	return "the token is not known here: the agent was started since, or too much has changed"
}

// step sends a page of changes, or everything that the reader lacks when it has fallen behind.
func (s *Stream) step(ctx context.Context) error {
	held, near := s.v.feed.lag(s.position, s.kinds())
	switch {
	case !held && s.has == nil:
		if s.restarts++; s.restarts > maxRestarts {
			return Ended("too slow: more changed than could be sent, several times in a row")
		}
		return s.begin(ctx, "too slow: more has changed than is kept")
	case near:
		s.keepUp()
		return s.follow(ctx)
	case s.has == nil && !s.tryTurn():
		return s.follow(ctx) // perhaps it is fast enough
	}
	return s.catchUp(ctx)
}

// follow sends the next page of changes, or says what to wait for.
func (s *Stream) follow(ctx context.Context) error {
	if s.page == nil {
		s.page = s.v.pages.Get().(*[]feedEntry)
	}
	entries, reached, more, held := s.v.feed.after(s.position, s.kinds(), *s.page)
	switch {
	case !held:
		return nil // the next step sees to it
	case len(entries) == 0:
		s.restarts = 0
		s.release()
		s.more = more
		return nil
	}
	s.keep()
	if err := s.deliver(ctx, s.snapshot(ctx), entries); err != nil {
		return err
	}
	s.letGo()
	s.position = reached
	return s.to.Event(s.at(Page))
}

// at is an event about the position of the reader.
func (s *Stream) at(t EventType) Event { return Event{Type: t, Position: s.position, feed: s.v.feed} }

// snapshot is one that shows all kinds.
func (s *Stream) snapshot(ctx context.Context) *Snapshot {
	kinds := make([]Kind, len(s.subs))
	for i, sub := range s.subs {
		kinds[i] = sub.Kind
	}
	return s.v.Snapshot(ctx, kinds...)
}

// kinds are the indexes of those that the stream is about, or depends on.
func (s *Stream) kinds() []int {
	var indexes []int
	for _, sub := range s.subs {
		indexes = append(indexes, sub.index)
		if other := sub.Filter.Uses(); other != "" {
			indexes = append(indexes, indexOf(other))
		}
	}
	return indexes
}

// release gives the page back, without its objects: an idle stream has none.
func (s *Stream) release() {
	if s.page != nil {
		clear((*s.page)[:cap(*s.page)])
		s.v.pages.Put(s.page)
		s.page = nil
	}
}
