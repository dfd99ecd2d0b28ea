package allocator

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/bits"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/allocator/internal/mistakes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Option changes how an [Allocator] works.
type Option func(*options)

type options struct {
	min, max, mask uint64
	clusterMin     uint64 // IDs must be from clusterMin to clusterMax, if that is set
	clusterMax     uint64
	cluster        uint32
	accept         func(id uint64, key Key) error
	events         bool
	protect        bool
	withoutGC      bool
	maxAttempts    int
	syncInterval   time.Duration
	listTimeout    time.Duration
	log            *slog.Logger
	metrics        *Metrics
	moved          func(key Key, from, to uint64)
}

func defaults() options {
	return options{
		min: 1, max: math.MaxUint64,
		accept:      func(uint64, Key) error { return nil },
		maxAttempts: 16, syncInterval: 5 * time.Minute, listTimeout: 3 * time.Minute,
		log: slog.New(slog.DiscardHandler), metrics: NewMetrics(nil),
	}
}

// WithMin sets the least ID, without the prefix mask. It is 1 unless set.
func WithMin(id uint64) Option { return func(o *options) { o.min = id } }

// WithMax sets the greatest ID, without the prefix mask. It is the largest number unless set.
func WithMax(id uint64) Option { return func(o *options) { o.max = id } }

// WithPrefixMask sets bits that are OR-ed into every ID.
func WithPrefixMask(mask uint64) Option { return func(o *options) { o.mask = mask } }

// WithCluster sets the range to that of a cluster. It makes it an error when other options lead out of this range
// (wire.md §2.3).
func WithCluster(l wire.Layout, cluster uint32) Option {
	return func(o *options) {
		from, to := l.Range(cluster)
		o.min, o.max = uint64(from), uint64(to)
		o.clusterMin, o.clusterMax, o.cluster = o.min, o.max, cluster
	}
}

// WithValidator makes the allocator call accept for every mapping of the own cluster that it sees, since any client
// that may write there may have written it. A mapping that accept refuses with an error is logged and counted, and is
// not in lookups and events. The previous mapping stays in force, and the ID is taken while the refused mapping
// exists. accept has to allow each key that is allocated here. A remote cache has a validator of its own
// ([Allocator.WatchRemoteKVStore]).
func WithValidator(accept func(id uint64, key Key) error) Option {
	return func(o *options) {
		if accept != nil {
			o.accept = accept
		}
	}
}

// WithEvents makes the allocator send the changes of mappings on [Allocator.GetEvents].
func WithEvents() Option { return func(o *options) { o.events = true } }

// WithMasterKeyProtection makes the allocator write a mapping that is in use here again at once when others delete or
// alter it. Without it, only the refresh writes a deleted one again.
func WithMasterKeyProtection() Option { return func(o *options) { o.protect = true } }

// WithoutGC makes an allocator that refuses garbage collection, also that of locks. It still refreshes the keys in
// use here.
func WithoutGC() Option { return func(o *options) { o.withoutGC = true } }

// WithMoved sets a function that is called when a key in use here gets another ID ([References]). Its arguments are
// the key, the earlier ID and the new ID. The count of uses stays the same. f must not block. It may be called before
// the caller of Allocate has handled the earlier ID.
func WithMoved(f func(key Key, from, to uint64)) Option { return func(o *options) { o.moved = f } }

// WithMaxAttempts sets how often an allocation is tried. It is 16 unless set.
func WithMaxAttempts(n int) Option { return func(o *options) { o.maxAttempts = n } }

// WithSyncInterval sets how often the keys in use on this node are refreshed. It is 5 minutes unless set.
func WithSyncInterval(d time.Duration) Option { return func(o *options) { o.syncInterval = d } }

// WithListTimeout sets how long to wait for the first list. It is 3 minutes unless set.
func WithListTimeout(d time.Duration) Option { return func(o *options) { o.listTimeout = d } }

// WithLogger sets the logger. Without it, nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithMetrics sets the metrics. Without them, nothing is counted.
func WithMetrics(m *Metrics) Option { return func(o *options) { o.metrics = cmp.Or(m, o.metrics) } }

func (o *options) idRange() (from, to uint64) { return o.min | o.mask, o.max | o.mask }

func (o *options) validate() error {
	from, to := o.idRange()
	// In a range of successive numbers, all bits vary up to the highest bit in which the ends differ. The mask may
	// only have bits above that one. Then no two IDs become the same, and they stay successive.
	wrongBits := o.mask & (uint64(1)<<bits.Len64(o.min^o.max) - 1)
	err := errors.Join(
		mistakes.If(o.min == NoID, "the least ID is 0, which is no ID; the least possible is 1"),
		mistakes.If(o.min > o.max, "the least ID %d is greater than the greatest, %d", o.min, o.max),
		mistakes.If(wrongBits != 0, "the prefix mask %#x would make one ID of several between %d and %d: it may not have the bits %#x",
			o.mask, o.min, o.max, wrongBits),
		mistakes.If(o.clusterMax != 0 && (from < o.clusterMin || to > o.clusterMax),
			"IDs from %d to %d are not all of cluster %d, which has those from %d to %d", from, to, o.cluster, o.clusterMin, o.clusterMax),
		mistakes.If(o.maxAttempts < 1, "%d attempts of an allocation: there must be at least 1", o.maxAttempts),
		mistakes.If(o.syncInterval <= 0 || o.listTimeout <= 0,
			"the sync interval %s and the list timeout %s must be positive", o.syncInterval, o.listTimeout),
	)
	if err != nil {
		return fmt.Errorf("options of the allocator: %w", err)
	}
	return nil
}
