package allocator

import (
	"container/list"
	"context"
	"sync"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// EventType is what has happened to a mapping.
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

// AllocatorEvent tells what has happened to a mapping. For a deletion the key is what it was last.
type AllocatorEvent struct {
	Type EventType
	ID   uint64
	Key  Key
	// Cluster is the name of the remote cache ([RemoteEvents]); empty for the own cluster.
	Cluster string
}

// eventOf is what the events of one mapping have in common.
type eventOf struct {
	cluster string
	id      uint64
}

func (ev AllocatorEvent) of() eventOf { return eventOf{ev.Cluster, ev.ID} }

// events hands events to somebody who may be slow, or not there at all. What waits is at most one
// event of each ID of a cluster: a later one takes the place of an earlier one, at the end of the queue, so that
// the order is that of the store, and of an ID that came and went nothing is left. So the watch
// never blocks, and memory is bounded by the number of IDs.
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

// push never blocks. A nil receiver has nobody to tell.
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
	e.more.Give()
}

// merge makes one event of two of one ID; left is false when they cancel each other out.
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

// run sends until ctx ends, and closes the channel. A nil receiver returns.
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
