package view

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"
	"time"
)

// EventType is the type of an [Event].
type EventType string

// The events of a stream.
const (
	Upsert EventType = "upsert" // the object is there, as it is now
	Delete EventType = "delete" // the object is gone, or no longer passes the filter
	Reset  EventType = "reset"  // discard everything: the state follows from the beginning; Reason has the cause
	Synced EventType = "synced" // the state of this kind is complete; changes follow
	// Page ends some changes, and Reached ends the differences sent to a reader that was behind: all events up to the
	// token were sent.
	Page    EventType = "page"
	Reached EventType = "reached"
)

// Event is one message of a stream.
type Event struct {
	Type     EventType
	Kind     Kind   // of Upsert, Delete and Synced
	Position uint64 // of the change, or of the state
	// Object is the present version of the object; for a Delete it is the last one. Before is the version that the
	// reader of the stream had; nil: none. In a stream that continues after a token, the first Before of an object may be a
	// newer version than the reader's: the stream before may have left out a change that had already been replaced.
	Object, Before any
	Reason         string // of a Reset

	// Snapshot is set for Upsert and Delete; it is not older than the event.
	Snapshot *Snapshot

	feed    *feed
	partial bool
}

// Token names the position at which a later stream continues after this event. For an event of a state that is not
// complete, the token is no position: a stream with it begins again.
func (e Event) Token() string {
	if e.partial {
		return e.feed.partial()
	}
	return e.feed.token(e.Position)
}

// Receiver receives the events of a stream. Its methods are called by the goroutine that runs the stream; an error ends
// the stream.
type Receiver interface {
	// Event handles one event. Until it returns, no events are buffered for it.
	Event(e Event) error
	// Idle is called when there is nothing to send. It returns when more is closed, or earlier. The event is a Page.
	Idle(ctx context.Context, at Event, more <-chan struct{}) error
}

// Filter chooses objects of one kind. Its methods are called by the goroutine that runs the stream.
type Filter interface {
	// MatchesName applies the conditions on the name of an object, whose result never changes. Matches applies the rest, with
	// a snapshot.
	MatchesName(object any) bool
	Matches(s *Snapshot, object any) bool
	// All returns the objects of a snapshot; it may leave out some that do not pass.
	All(s *Snapshot) iter.Seq[any]
	// DependsOn names the other kind that Matches reads, empty for none. Affected returns the objects that may newly pass, or
	// no longer pass, because of changes of that kind.
	DependsOn() Kind
	Affected(s *Snapshot, changed []any) iter.Seq[any]
}

// Turns bounds how many streams may keep a snapshot while they are behind.
type Turns interface {
	// Take waits for a turn until ctx ends; Try does not wait. Calling end ends the turn.
	Take(ctx context.Context) (end func(), err error)
	Try() (end func(), ok bool)
	// Wanted reports whether another stream waits for a turn, or waited in vain.
	Wanted() bool
}

// Ended is the reason why a stream was ended by the agent.
type Ended string

// Error implements error.
func (e Ended) Error() string { return string(e) }

// Limits of a stream.
const (
	pageSize    = 256              // changes taken from the feed at a time
	maxRestarts = 3                // states sent in a row because too much had changed; after that, the stream ends
	turnWait    = 30 * time.Second // how long a stream waits for its turn
	// TurnTime is how long a reader may take for a state and the changes meanwhile, before its turn goes to another
	// reader that waits.
	TurnTime = 10 * time.Minute
)

// Subscription is the part of a stream that is about one kind.
type Subscription struct {
	Kind   Kind
	Filter Filter // nil: everything

	index int // of the kind
	kind  *kind
	// sent has the keys of the objects that the reader has, when that depends on another kind; nil when it follows from
	// the changes.
	sent map[string]struct{}
}

// Stream is one reader's stream. It belongs to one goroutine.
type Stream struct {
	v     *View
	subs  []*Subscription
	to    Receiver
	turns Turns // nil: no limit
	token string
	// position is where the stream continues if resumes is set; else it begins with a state.
	position uint64
	resumes  bool
	turn     turn
	page     *[]feedEntry    // lent while there is something to send
	more     <-chan struct{} // closed when there is more to send; nil while there is something to send
	restarts int             // states sent in a row because too much had changed
	// has is the state that the reader has, at position, while it is behind; nil once it keeps up.
	has      *Snapshot
	kept     func() // ends its time as a keeper; nil when it is none
	ended    atomic.Bool
	aborting atomic.Pointer[time.Timer]
}

// Stream returns a stream of some kinds, or of all when none is named. It continues after the token; with an empty one
// it begins with the state.
func (v *View) Stream(token string, subscriptions ...Subscription) *Stream {
	if len(subscriptions) == 0 {
		for i := range v.kinds {
			subscriptions = append(subscriptions, Subscription{Kind: v.kinds[i].name})
		}
	}
	s := &Stream{v: v, token: token}
	for _, sub := range subscriptions {
		sub.index = v.indexOf(sub.Kind)
		sub.kind = &v.kinds[sub.index]
		if sub.Filter == nil {
			sub.Filter = everything{v, sub.kind}
		}
		s.subs = append(s.subs, &sub)
	}
	s.position, s.resumes = s.resume()
	return s
}

// Resumes reports whether the stream continues after its token, without sending a state first.
func (s *Stream) Resumes() bool { return s.resumes }

// everything is a filter that every object passes.
type everything struct {
	v    *View
	kind *kind
}

func (everything) MatchesName(any) bool                        { return true }
func (everything) Matches(*Snapshot, any) bool                 { return true }
func (f everything) All(s *Snapshot) iter.Seq[any]             { return f.kind.all(f.v, s) }
func (everything) DependsOn() Kind                             { return "" }
func (everything) Affected(*Snapshot, []any) (n iter.Seq[any]) { return n }

// each calls give with every object of a snapshot that passes the filter, until give fails.
func (sub *Subscription) each(s *Snapshot, give func(object any) error) error {
	for object := range sub.Filter.All(s) {
		if !sub.Filter.MatchesName(object) || !sub.Filter.Matches(s, object) {
			continue
		}
		if err := give(object); err != nil {
			return err
		}
	}
	return nil
}

// uses reports whether a filter depends on another kind: then the changes alone do not show what the reader has.
func (s *Stream) uses() bool {
	return slices.ContainsFunc(s.subs, func(sub *Subscription) bool { return sub.Filter.DependsOn() != "" })
}

// resume returns the position at which the reader continues; false when it needs a state first.
func (s *Stream) resume() (uint64, bool) {
	position, known := s.v.feed.position(s.token)
	if s.uses() {
		return 0, false // the objects that were sent are not known
	}
	if known {
		s.v.Position()
		known, _ = s.v.feed.lag(position, s.kinds())
	}
	return position, known
}

// Run sends the state, unless the stream continues after a token, and then the changes, until ctx ends or the receiver
// fails. Its error is that of ctx, that of the receiver, or an [Ended]. It must be called only once. Turns may be nil.
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
			// Idle is called here, not deeper: there are many idle streams, and each has a stack.
			more := s.more
			s.more = nil
			err = to.Idle(ctx, s.at(Page), more)
		}
	}
	return err
}

// whyAgain returns why a reader that has a token needs a state; empty for those without one.
func (s *Stream) whyAgain() string {
	switch {
	case s.token == "":
		return ""
	case s.uses():
		return "addresses that are chosen by labels always begin again"
	}
	return "the token is not known here: the agent was started since, or too much has changed"
}

// step sends a page of changes, or all changes that the reader lacks when it has fallen behind.
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
		return s.follow(ctx) // it may be fast enough
	}
	return s.catchUp(ctx)
}

// follow sends the next page of changes, or sets the channel to wait for.
func (s *Stream) follow(ctx context.Context) error {
	if s.page == nil {
		s.page = s.v.pages.Get().(*[]feedEntry)
	}
	entries, reached, more, held := s.v.feed.after(s.position, s.kinds(), *s.page)
	switch {
	case !held:
		return nil // the next step handles it
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

// at returns an event at the position of the reader.
func (s *Stream) at(t EventType) Event { return Event{Type: t, Position: s.position, feed: s.v.feed} }

// snapshot returns a snapshot with all kinds of the stream.
func (s *Stream) snapshot(ctx context.Context) *Snapshot {
	kinds := make([]Kind, len(s.subs))
	for i, sub := range s.subs {
		kinds[i] = sub.Kind
	}
	return s.v.Snapshot(ctx, kinds...)
}

// kinds returns the indexes of the kinds that the stream is about, or depends on.
func (s *Stream) kinds() []int {
	var indexes []int
	for _, sub := range s.subs {
		indexes = append(indexes, sub.index)
		if other := sub.Filter.DependsOn(); other != "" {
			indexes = append(indexes, s.v.indexOf(other))
		}
	}
	return indexes
}

// release gives the page back, without its objects, so that an idle stream keeps no page.
func (s *Stream) release() {
	if s.page != nil {
		clear((*s.page)[:cap(*s.page)])
		s.v.pages.Put(s.page)
		s.page = nil
	}
}
