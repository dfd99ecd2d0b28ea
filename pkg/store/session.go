package store

import (
	"bytes"
	"context"
	"log/slog"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/internal/follow"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ErrListTooLong ends a list that takes longer than [Limits].List.
var ErrListTooLong = follow.ErrListTooLong

// Turns shares a bounded number of places among clusters: for the lists that may run at once, or for the
// batches of events that are applied at once. A cluster has one place at a time, and clusters are served in
// rotation. A nil one sets no bound. Any goroutine may use it.
type Turns = follow.Turns

// NewTurns returns n places.
func NewTurns(n int) *Turns { return follow.NewTurns(n) }

// Session has the data that a Watch needs for one connection to one cluster.
type Session struct {
	Client kvstore.Client
	// Prefix is where the keys are; it ends in "/". With OneKey it is one whole key.
	Prefix string
	OneKey bool
	// Expect is what the entries must agree with.
	Expect wire.Expect
	// Limits bound the cost of the keys.
	Limits Limits
	// Lists bounds how many lists run at once in this process, Batches how many batches of events are applied
	// at once; clusters, identified by Expect.Cluster, are served in rotation. nil is no bound.
	Lists, Batches *Turns
	// Room is called before a page or a batch is processed, and waits until there is room for its contents; nil
	// does not wait. While it waits, the session holds no turn that others wait for, and the time limit of a
	// list does not run.
	Room func(context.Context) error
}

// List passes the pages of all keys to page, outside of a Watch, within Limits.List. It takes no turn.
func (s Session) List(ctx context.Context, page func(kvstore.Page) error) error {
	return s.bounded().List(ctx, page)
}

// bounded returns the session in the form that a follower takes.
func (s Session) bounded() follow.Session {
	return follow.Session{
		Client: s.Client, Prefix: s.Prefix, OneKey: s.OneKey, ListTime: s.Limits.List, Events: s.Limits.Events, Room: s.Room,
		Lists: s.Lists, Batches: s.Batches, Cluster: s.Expect.Cluster,
	}
}

// Raw is an undecoded value.
type Raw []byte

// NewRawWatch returns a watch of any keys, whose values are not decoded: list and watch for tools and tests
// (kvstore.md §2.1). It keeps every value. As in any Watch, a write of an equal value is no change.
func NewRawWatch(apply func([]Change[Raw]), log *slog.Logger) *Watch[Raw] {
	return NewWatch(Kind[Raw]{Resource: "raw", Decode: decodeRaw, Apply: apply}, log)
}

func decodeRaw(wire.Expect) Decode[Raw] {
	return func(_ string, value []byte) (*Raw, error) {
		v := Raw(bytes.Clone(value))
		return &v, nil
	}
}
