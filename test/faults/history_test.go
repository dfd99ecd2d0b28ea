package faults

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// numberKey is written in every transaction, with the number of the write: it
// identifies the write that made a revision.
const numberKey = "history/write"

// history has the contents of one cluster, revision by revision, and the times at which each write began and was
// acknowledged. Its positions count the revisions of all etcds that the cluster has had, in sequence; the position
// between two etcds is the loss of all contents.
type history struct {
	mu       sync.Mutex // guards everything below
	began    []time.Time
	acks     []acked              // ordered by time and position
	made     []making             // ordered by position
	versions map[string][]version // by key, ordered by position
	base     int64                // the position of revision 0 of the present etcd
	last     int64                // everything up to here is recorded
	broken   error                // the reason why the record is not valid; nil when it is
}

// acked is a position, and a time at which it was known to be reached.
type acked struct {
	at       time.Time
	position int64
}

// making is the write that led to a position.
type making struct {
	position int64
	write    int
}

// version is the value of a key from a position on: the number of the write, 0 for a deletion.
type version struct {
	from   int64
	number int
}

func newHistory() *history {
	return &history{versions: map[string][]version{}, began: make([]time.Time, 1), last: 1}
}

// begin numbers a write that is about to begin; numbers count from 1.
func (h *history) begin() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.began = append(h.began, time.Now())
	return len(h.began) - 1
}

// acknowledge notes that a revision of the present etcd was answered, and returns its position. Answers to concurrent
// writes may arrive in another order than their positions.
func (h *history) acknowledge(revision int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	reached := h.base + revision
	if n := len(h.acks); n > 0 {
		reached = max(reached, h.acks[n-1].position)
	}
	h.acks = append(h.acks, acked{time.Now(), reached})
	return h.base + revision
}

// lost notes that all contents are lost by a write that began before, and that there is another etcd without contents.
func (h *history) lost(write int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.base = h.last + 1
	h.last = h.base + 1
	for key, all := range h.versions {
		h.versions[key] = append(all, version{h.base, 0})
	}
	h.made = append(h.made, making{h.base, write})
	h.acks = append(h.acks, acked{time.Now(), h.base})
}

// next returns the first revision of the etcd at base that is not recorded yet.
func (h *history) next() (base, revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.base, h.last + 1 - h.base
}

// recorded reports whether everything up to the position is recorded.
func (h *history) recorded(position int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last >= position || h.broken != nil
}

func (h *history) spoil(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.broken == nil {
		h.broken = err
	}
}

// record takes events of the etcd at base, and reports whether that is the present etcd.
func (h *history) record(base int64, events []*clientv3.Event) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if base != h.base {
		return false
	}
	for len(events) > 0 {
		revision := events[0].Kv.ModRevision
		n := slices.IndexFunc(events, func(e *clientv3.Event) bool { return e.Kv.ModRevision != revision })
		if n < 0 {
			n = len(events)
		}
		if err := h.recordOne(base+revision, events[:n]); err != nil && h.broken == nil {
			h.broken = err
		}
		events = events[n:]
	}
	return true
}

// recordOne takes all events of one revision; mu is held.
func (h *history) recordOne(position int64, events []*clientv3.Event) error {
	if position != h.last+1 {
		return fmt.Errorf("after position %d position %d is recorded", h.last, position)
	}
	h.last = position
	i := slices.IndexFunc(events, func(e *clientv3.Event) bool { return string(e.Kv.Key) == numberKey })
	if i < 0 {
		return fmt.Errorf("nobody knows who made position %d", position)
	}
	write, err := strconv.Atoi(string(events[i].Kv.Value))
	if err != nil || write < 1 || write >= len(h.began) {
		return fmt.Errorf("position %d is of a write %q", position, events[i].Kv.Value)
	}
	h.made = append(h.made, making{position, write})
	for _, e := range events {
		v := version{position, write}
		if e.Type == clientv3.EventTypeDelete {
			v.number = 0
		}
		h.versions[string(e.Kv.Key)] = append(h.versions[string(e.Kv.Key)], v)
	}
	return nil
}

// span is from one position to another, both included.
type span struct{ low, high int64 }

// spans returns, for a complete history, the positions that a view may show. A view that was read at the time taken,
// and is known as of asOf, shows at least the position that etcd had acknowledged by asOf, and at most the position of
// the last write that began before taken.
func (h *history) spans() func(asOf, taken time.Time) span {
	reached := make([]int64, len(h.began)) // by that write or one before it
	for _, m := range h.made {
		reached[m.write] = max(reached[m.write], m.position)
	}
	for i := 1; i < len(reached); i++ {
		reached[i] = max(reached[i], reached[i-1])
	}
	return func(asOf, taken time.Time) (s span) {
		if i := sort.Search(len(h.acks), func(i int) bool { return !h.acks[i].at.Before(asOf) }); i > 0 {
			s.low = h.acks[i-1].position
		}
		n := sort.Search(len(h.began)-1, func(i int) bool { return h.began[i+1].After(taken) })
		s.high = reached[n]
		return s
	}
}

// between returns the versions of a key within a span, in order.
func (h *history) between(key string, s span) []version {
	all := h.versions[key]
	from := sort.Search(len(all), func(i int) bool { return all[i].from > s.low })
	to := sort.Search(len(all), func(i int) bool { return all[i].from > s.high })
	if from == 0 {
		return append([]version{{}}, all[:max(to, 0)]...)
	}
	return all[from-1 : max(from, to)]
}

// complete returns an error if the record is not complete.
func (h *history) complete() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.acks); h.broken == nil && n > 0 && h.acks[n-1].position > h.last {
		return fmt.Errorf("position %d was acknowledged and is not recorded, only %d is", h.acks[n-1].position, h.last)
	}
	return h.broken
}
