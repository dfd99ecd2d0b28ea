package allocator

import (
	"container/list"
	"context"
	"sync"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// EventType is the type of a change of a mapping.
type EventType int

// The types of events.
const (
	EventCreate EventType = iota
	EventModify
	EventDelete
	EventListDone // the first list is complete; there is no ID and no key
)

func (t EventType) String() string {
	return [...]string{"create", "modify", "delete", "list done"}[t]
}

// AllocatorEvent is a change of a mapping. For a deletion, Key is the last key of the mapping.
type AllocatorEvent struct {
	Type EventType
	ID   uint64
	Key  Key
	// Cluster is the name of the remote cache ([RemoteEvents]); empty for the own cluster.
	Cluster string
}

// eventOf identifies the mapping that an event is about.
type eventOf struct {
	cluster string
	id      uint64
}

func (ev AllocatorEvent) of() eventOf { return eventOf{ev.Cluster, ev.ID} }

// events is a queue of events for a reader that may be slow or missing. At most one event of each ID of a cluster
// waits. A later one replaces an earlier one, at the end of the queue, so that the order is that of the store. Of an
// ID that was created and deleted, no event is left. So the watch never blocks, and the number of IDs bounds the
// memory.
type events struct {
	out chan AllocatorEvent // closed by run

	mu      sync.Mutex
	queue   list.List // of AllocatorEvent
	waiting map[eventOf]*list.Element
	more    waiting.Signal // something is in the queue
}

func newEvents() *events {
	return &events{
		out: make(chan AllocatorEvent), waiting: make(map[eventOf]*list.Element), more: waiting.NewSignal(),
	}
}

// push adds an event and never blocks. With a nil receiver it does nothing.
func (e *events) push(ev AllocatorEvent) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if before := e.waiting[ev.of()]; before != nil && ev.Type != EventListDone {
		e.queue.Remove(before)
		delete(e.waiting, ev.of())
		var left bool
		if ev.Type, left = merge(before.Value.(AllocatorEvent).Type, ev.Type); !left {
			return
		}
	}
	added := e.queue.PushBack(ev)
	if ev.Type != EventListDone {
		e.waiting[ev.of()] = added
	}
	e.more.Notify()
}

// merge makes one event of two successive events of one ID; left is false when they cancel each other out.
func merge(before, now EventType) (merged EventType, left bool) {
	switch {
	case before == EventCreate && now == EventDelete:
		return now, false
	case before == EventCreate:
		return EventCreate, true
	case before == EventDelete:
		return EventModify, true
	default:
		return now, true
	}
}

// run sends events until ctx ends, and closes the channel. With a nil receiver it returns at once.
func (e *events) run(ctx context.Context) error {
	if e == nil {
		return nil
	}
	defer close(e.out)
	for {
		ev, ok := e.pop()
		if !ok {
			select {
			case <-e.more:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case e.out <- ev:
		case <-ctx.Done():
			return nil
		}
	}
}

func (e *events) pop() (AllocatorEvent, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := e.queue.Front()
	if first == nil {
		return AllocatorEvent{}, false
	}
	ev := e.queue.Remove(first).(AllocatorEvent)
	if ev.Type != EventListDone {
		delete(e.waiting, ev.of())
	}
	return ev, true
}
