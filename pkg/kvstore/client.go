package kvstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Position is a point in the history of one etcd: everything up to Revision, of the etcd whose
// cluster ID is ClusterID. Revisions of different cluster IDs cannot be compared. The zero
// value is not a position.
type Position struct {
	// ClusterID is etcd's cluster ID, from its response headers. It is not the ID of a cluster of the mesh.
	ClusterID uint64
	// Revision is the revision of the key space, 1 for an empty key space.
	Revision int64
}

// KeyValue is one key as it was at some revision. The bytes belong to the receiver of the page or
// batch and are not reused. A caller that keeps one value does not keep the memory of others.
type KeyValue struct {
	// Key is the full path, including the requested prefix.
	Key []byte
	// Value is empty in an event that reports a deletion.
	Value []byte
	// ModRevision is the revision of the last change of this key. In an event it is the
	// revision of the event itself, also for a deletion.
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
	// Left is the number of keys of the list that follow this page.
	Left int64
}

// Past has the selected keys as they were at an earlier position.
type Past struct {
	// Items are the first keys, in ascending order.
	Items []KeyValue
	// Count is the number of all selected keys at that position, including Items.
	Count int64
}

// EventType is the kind of a change of a key.
type EventType uint8

const (
	// EventPut: the key was created or modified.
	EventPut EventType = iota
	// EventDelete: the key was deleted, by a client or by the end of its lease.
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
	// Created: this put created the key, which was absent before. False for a deletion.
	Created bool
	KeyValue
}

// Batch is one delivery of a [Stream]. A batch without events is an answer to a request for progress.
type Batch struct {
	// Events are in the order of their revisions. Only a partial batch splits a revision.
	Events []Event
	// At is the position that the reader has reached once it has applied this batch: every
	// event of the watched prefix up to At.Revision has been delivered. It never decreases
	// within a stream. A partial batch does not advance it.
	At Position
	// Partial marks a fragment of a larger batch, except its last fragment. The events may be
	// applied; the position may not be advanced.
	Partial bool
}

// Client is the reading side of a kvstore: one session with one server behind one endpoint. It
// neither reconnects to another server nor resumes a stream: the session or the stream ends with
// an error, and the owner decides.
//
// All methods may be called from any number of goroutines. Every call ends by its own
// deadlines, with its context, or with [Client.Close]. Errors are *[KeyError], except those
// that a page function returned and the error of a context that ended.
//
// Package kvtest tests every statement below.
type Client interface {
	// Get reads one key with a linearizable read. It returns nil without an error when the key is
	// absent. In both cases the position is that of the read. With [Holding], Get reads the key only
	// while the lock is held, in one transaction; otherwise the error is [ErrLockLeaseExpired].
	Get(ctx context.Context, key string, opts ...ReadOption) (*KeyValue, Position, error)

	// List reads every key that the prefix selects, in pages, all at one revision: that of the
	// first page, which is a linearizable read. The prefix ends in "/" and selects every key that
	// begins with it. Anything else is an error, as for [Writer.DeletePrefix], except with
	// [OneKey], which selects that key alone. List calls page with one page after another, in the
	// order of the keys, and requests the next page only after page has returned, so a list needs
	// the memory of one page. No page is empty: a prefix without keys has no pages, only the
	// position. An error of page ends the list and is returned unchanged. [ErrCompacted] means that
	// the revision was compacted meanwhile: the caller must list again, and must not conclude from
	// the pages so far that a key is absent. With [Holding], each page is read only while the lock
	// is held, as for Get.
	List(ctx context.Context, prefix string, page func(Page) error, opts ...ReadOption) (Position, error)

	// Recall reads the state at an earlier position: of the keys that the prefix selects, as
	// for List, those that are not before the key from (empty: all). It returns the first of
	// them, at most limit and as many as fit into one answer, and the number of all. It is one
	// linearizable read, so a member of etcd that is behind cannot answer that the position is
	// too new. The error is [ErrServerChanged] when at.ClusterID is not that of this session, or
	// when the server's history does not reach at.Revision, and [ErrCompacted] when that
	// revision was compacted. None of these errors ends the session.
	Recall(ctx context.Context, prefix, from string, at Position, limit int, opts ...SelectOption) (Past, error)

	// Watch opens a stream of the events of the keys that the prefix selects, as for List, with
	// revisions above after.Revision: after a list at that position it has neither a gap nor a
	// duplicate. The error is [ErrServerChanged] when after.ClusterID is not that of this
	// session, or when the server's history does not reach after.Revision (an etcd that was wiped
	// and started again with its old token keeps its cluster ID). It is [ErrCompacted], here or
	// from the first Recv, when the events after the position are no longer available. The stream
	// ends with ctx.
	Watch(ctx context.Context, prefix string, after Position, opts ...SelectOption) (Stream, error)

	// Head returns the current position, with a linearizable read: every write that was
	// acknowledged before the call is at or before this position.
	Head(ctx context.Context) (Position, error)

	// Status returns the known state of the session, without a request.
	Status() Status

	// Close ends all calls and streams with [ErrClosed] and returns in bounded time. It may be
	// called more than once.
	Close()
}

// Stream is an open watch on one prefix. While Recv is not called, the server collects the
// events, at no cost for the client and its other streams, and later sends many at a time.
type Stream interface {
	// Recv blocks until there is a batch. Only one goroutine calls it. After an error it
	// returns errors forever. The error is [ErrCompacted] when the server has dropped
	// events that were not yet delivered, [ErrServerChanged] when another server answers,
	// [ErrClosed] after Close of the stream or its client, and the context's error when the
	// context has ended. Any other error means that the connection was lost: then the caller
	// may open a new stream after the last position.
	Recv() (Batch, error)

	// RequestProgress asks for a batch with the current position, even without events. It does
	// not wait for the answer, which may never come; then ask again. It may be called while Recv
	// waits. The error is [ErrProgressUnreliable] when the answer could not be trusted.
	RequestProgress() error

	// Close ends the stream and wakes up Recv. It may be called more than once, and from any goroutine.
	Close()
}

// The prefix of [Client.List], [Client.Recall] and [Client.Watch] selects keys: it ends in "/" and selects
// every key below it; with [OneKey] it is one whole key and selects that key alone. So a prefix cannot
// match a sibling by accident ("c1" and "c10") or silently match no key, and a user who may read only a
// single key can list and watch it (spec wire.md §0: the cluster configuration).

// CheckSelection returns an error unless the prefix ends in "/", or is one whole key with [OneKey]. An
// engine calls it before any request.
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

// SelectionEnd returns the end of the range in requests to etcd; empty for a single key.
func SelectionEnd(selection string) string {
	if below, ok := strings.CutSuffix(selection, "/"); ok {
		return below + "0" // the character after the slash
	}
	return ""
}
