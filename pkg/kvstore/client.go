package kvstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Position is a point in the history of one etcd: everything up to Revision, of the etcd whose
// cluster ID is ClusterID. Revisions of different cluster IDs cannot be compared. The zero
// value is no position at all.
type Position struct {
	// ClusterID is etcd's own, of every response header: not that of a cluster of the mesh.
	ClusterID uint64
	// Revision is the revision of the key space, 1 for an empty one.
	Revision int64
}

// KeyValue is one key as it stood at some revision. The bytes belong to the receiver of the
// page or batch and are not reused; one kept value keeps no other alive.
type KeyValue struct {
	// Key is the full path, including the prefix that was asked for.
	Key []byte
	// Value is empty in an event that reports a deletion.
	Value []byte
	// ModRevision is the revision of the last change of this key; in an event,
	// that of the event itself, also for a deletion.
	ModRevision int64
	// Lease is the ID of the lease that the key is attached to, 0 for none. It is 0 in a deletion.
	Lease int64
}

// Page is a part of a list.
type Page struct {
	// Items are in ascending order of their keys, also across pages.
	Items []KeyValue
	// At is the same for all pages of a list: the position of the first one.
	At Position
	// Left is how many keys of the list come after this page.
	Left int64
}

// Past is what was selected at an earlier position.
type Past struct {
	// Items are the first keys, in ascending order.
	Items []KeyValue
	// Count is how many keys there were, those of Items included.
	Count int64
}

// EventType says what happened to a key.
type EventType uint8

const (
	// EventPut: the key was created or modified.
	EventPut EventType = iota
	// EventDelete: the key was deleted, by somebody or by the end of its lease.
	EventDelete
)

// String returns "put" or "delete".
func (t EventType) String() string {
	if t == EventDelete {
		return "delete"
	}
	return "put"
}

// Event is one change of one key.
type Event struct {
	Type EventType
	// Created: this put made the key, which was absent before. False for a deletion.
	Created bool
	KeyValue
}

// Batch is what a [Stream] delivers at a time; without events, an answer to a request for progress.
type Batch struct {
	// Events are in the order of their revisions. Only a partial batch splits a revision.
	Events []Event
	// At is the position that is reached once this batch has been applied: every event of
	// the watched prefix up to At.Revision has been delivered. It never goes back within a
	// stream. A partial batch does not advance it.
	At Position
	// Partial marks a fragment of a larger batch, other than its last one. The events may be
	// applied; the position may not be advanced.
	Partial bool
}

// Client is the reading side of a kvstore: one session with one server behind one endpoint. It
// neither reconnects to another server nor resumes a stream: both end with an error, and the
// owner decides.
//
// All methods may be called from any number of goroutines. Every call ends by its own
// deadlines, with its context, or with [Client.Close]. Errors are *[KeyError], except those
// that a page function returned and the error of a context that ended.
//
// The package kvtest holds every statement below as a test.
type Client interface {
	// Get reads one key by a linearizable read. It returns nil without an error when the key is
	// absent. The position is that of the read in either case. [Holding] a lock it is read only
	// while the lock is held, in one transaction; otherwise the error is [ErrLockLeaseExpired].
	Get(ctx context.Context, key string, opts ...ReadOption) (*KeyValue, Position, error)

	// List reads every key that the prefix selects, in pages, all at one revision: that of the
	// first page, which is a linearizable read. The prefix ends in "/" and selects every key that
	// begins with it: anything else is an error, as it is for [Writer.DeletePrefix], unless it is
	// [OneKey], which selects that key alone. The function gets pages one after another, in the order of the keys, and the next one is not requested
	// before it has returned: memory is bounded by a page. No page is empty; a prefix without
	// keys gives none, only the position. An error of the function ends the list and is
	// returned as it is. [ErrCompacted] says that the revision was compacted meanwhile: the
	// list must begin again, and what was missing in the pages so far means nothing. [Holding]
	// a lock each page is read only while the lock is held, as for Get.
	List(ctx context.Context, prefix string, page func(Page) error, opts ...ReadOption) (Position, error)

	// Recall reads the state at an earlier position: of the keys that the prefix selects, as
	// for List, those not before the key from (empty: all). It gives the first ones, at most
	// limit and as many as fit into one answer, and counts them all. It is one linearizable
	// read, so no position of the history that answers is too new for it. The error is
	// [ErrServerChanged] when at.ClusterID is not the one of this session, or when the server's
	// history does not reach at.Revision, and [ErrCompacted] when it no longer goes back that
	// far. None of these ends the session.
	Recall(ctx context.Context, prefix, from string, at Position, limit int, opts ...SelectOption) (Past, error)

	// Watch opens a stream of the events of the keys that the prefix selects, as for List, with
	// revisions above after.Revision: neither a gap nor a duplicate follows a list at that
	// position. The error is [ErrServerChanged] when after.ClusterID is not the one of this
	// session, or when the server's history does not reach after.Revision (one that was wiped
	// and started under its old token keeps its cluster ID). It is [ErrCompacted], here or from
	// the first Recv, when the events after the position are no longer available. The stream
	// ends with ctx.
	Watch(ctx context.Context, prefix string, after Position, opts ...SelectOption) (Stream, error)

	// Head returns the present position, by a linearizable read: every write that was
	// acknowledged before the call is at or before it.
	Head(ctx context.Context) (Position, error)

	// Status returns what is known about the session, without a request.
	Status() Status

	// Close ends all calls and streams with [ErrClosed] and returns in bounded time. It may be
	// called twice.
	Close()
}

// Stream is an open watch on one prefix. As long as Recv is not called the server collects the
// events, at no cost for the client and its other streams, and then sends many at a time.
type Stream interface {
	// Recv blocks until there is something to deliver. It is called by one goroutine. After an
	// error it returns errors for ever. The error is [ErrCompacted] when the server has dropped
	// events that were not yet delivered, [ErrServerChanged] when another server answers,
	// [ErrClosed] after Close of the stream or its client, the context's error when that ended,
	// and anything else when the connection was lost: then a new stream may be opened after the
	// last position.
	Recv() (Batch, error)

	// RequestProgress asks for a batch with the present position, although no event is due. It
	// does not wait for the answer, which may never come; ask again. It may be called while Recv
	// waits. The error is [ErrProgressUnreliable] when the answer could not be trusted.
	RequestProgress() error

	// Close ends the stream, waking up Recv. It may be called twice, and from any goroutine.
	Close()
}

// What [Client.List], [Client.Recall] and [Client.Watch] are given selects keys: a prefix ends in "/"
// and selects every key below it, and with [OneKey] it is a whole key and selects that key alone. So
// no prefix can match a sibling by accident ("c1" and "c10") or silently nothing, and a single key can
// be listed and watched by a user who may read no more than that (spec wire.md §0: the cluster configuration).

// CheckSelection returns an error unless the prefix is one, or with [OneKey] one whole key: an engine
// calls it before it asks for anything.
func CheckSelection[O ReadOption](op, prefix string, opts []O) error {
	isOne := slices.ContainsFunc(opts, func(o O) bool { _, is := any(o).(SelectOption); return is })
	switch isPrefix := strings.HasSuffix(prefix, "/"); {
	case prefix == "":
		return misused(op, prefix, unfitError("the prefix is empty"))
	case isOne && isPrefix:
		return misused(op, prefix, unfitError("OneKey is for a whole key, which does not end in /"))
	case !isOne && !isPrefix:
		return misused(op, prefix, unfitError(fmt.Sprintf(
			"a prefix ends in /: give %q for all keys below it, or OneKey for the one key", prefix+"/")))
	}
	return nil
}

// Selects reports whether the selection covers the key.
func Selects(selection, key string) bool {
	if strings.HasSuffix(selection, "/") {
		return strings.HasPrefix(key, selection)
	}
	return key == selection
}

// SelectionEnd returns the end of the range that etcd is asked for; empty for a single key.
func SelectionEnd(selection string) string {
	if below, ok := strings.CutSuffix(selection, "/"); ok {
		return below + "0" // what follows the slash
	}
	return ""
}
