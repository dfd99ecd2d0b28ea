package kvbackend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/internal/mistakes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Backend is an [allocator.Backend] in a kvstore.
type Backend struct {
	Config
	client  kvstore.Writer
	bad     *malformed
	again   *rate.Limiter // of log lines about entries that were written again
	watcher *Watcher
}

var _ allocator.Backend = (*Backend)(nil)

// Config describes where a Backend keeps its entries.
type Config struct {
	// Paths is the location of the entries: [wire.IdentityAllocation].
	Paths wire.AllocationPaths
	// Node distinguishes this node's references from those of others: its address, without a slash.
	Node string
	// Keys is any key of the type that is stored here.
	Keys allocator.Key
	// Collecting is a lock that each deletion of garbage collection needs in addition to its own locks: the lock of
	// the only process that may collect. When it is not held, the error is [kvstore.ErrLockLeaseExpired]. Nil is
	// none.
	Collecting *kvstore.Lock
	// Elsewhere is called for a mapping that is about to be collected, and reports whether the mapping has to stay
	// nevertheless. An error keeps it in this round. The key is nil when it cannot be read. A nil Elsewhere means
	// that no mapping has to stay.
	Elsewhere func(ctx context.Context, id uint64, key allocator.Key) (bool, error)
	// Log receives the entries that cannot be read, each value once, and Metrics count them. Both may be nil.
	Log     *slog.Logger
	Metrics *allocator.Metrics
}

// New returns a backend in the kvstore. The error names the missing settings.
func New(client kvstore.Writer, c Config) (*Backend, error) {
	err := errors.Join(
		mistakes.If(client == nil, "there is no kvstore"),
		mistakes.If(c.Paths == "" || strings.HasSuffix(string(c.Paths), "/"), "the path %q is no base: it is empty or ends in a slash", c.Paths),
		mistakes.If(c.Node == "" || strings.Contains(c.Node, "/"), "the node %q cannot end a path: the node's address is needed", c.Node),
		mistakes.If(c.Keys == nil, "the type of the keys is not given"),
	)
	if err != nil {
		return nil, fmt.Errorf("allocator in the kvstore at %q: %w", c.Paths, err)
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	bad := newMalformed(c.Log, c.Metrics)
	again := rate.NewLimiter(rate.Every(time.Second), 10)
	return &Backend{c, client, bad, again, &Watcher{Client: client, Paths: c.Paths, Keys: c.Keys, Log: c.Log, bad: bad}}, nil
}

// Status implements [allocator.Backend].
func (b *Backend) Status() string { return b.client.Status().String() }

// Lock implements [allocator.Backend].
func (b *Backend) Lock(ctx context.Context, key allocator.Key) (allocator.Lock, error) {
	l, err := b.client.Lock(ctx, b.Paths.Lock(key.GetKey()))
	if err != nil {
		return nil, err // not a nil *kvstore.Lock in the interface
	}
	return l, nil
}

// lockOf returns the kvstore's lock, nil for none. The lock has no other type, because this backend created it.
func lockOf(lock allocator.Lock) *kvstore.Lock {
	if lock == nil {
		return nil
	}
	return lock.(*kvstore.Lock)
}

// DeleteAllKeys implements [allocator.Backend].
func (b *Backend) DeleteAllKeys(ctx context.Context) error {
	for _, prefix := range []string{b.Paths.References(), b.Paths.Locks(), b.Paths.Mappings()} {
		if _, err := b.client.DeletePrefix(ctx, prefix); err != nil {
			return fmt.Errorf("deleting everything at %s: %w", b.Paths, err)
		}
	}
	return nil
}
