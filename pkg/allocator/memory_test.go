package allocator

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// textKey is a key that consists of a text only.
type textKey string

func (k textKey) GetKey() string                               { return string(k) }
func (k textKey) PutKey(text string) (Key, error)              { return textKey(text), nil }
func (k textKey) GetAsMap() map[string]string                  { return map[string]string{string(k): ""} }
func (k textKey) PutKeyFromMap(map[string]string) (Key, error) { return k, nil }
func (k textKey) String() string                               { return string(k) }

// memoryStore is a shared store in memory. It records violations of the guarantees.
type memoryStore struct {
	mu       sync.Mutex
	mappings map[uint64]string
	refs     map[string]map[string]uint64 // by key and node
	locks    map[string]*memoryQueue      // by key
	log      []memoryEvent
	changed  chan struct{} // closed and replaced when the log grows
	wrong    []string
}

type memoryEvent struct {
	id  uint64
	key string // "": deleted
}

// memoryQueue is a lock: a successful send acquires it, a receive releases it.
type memoryQueue struct {
	held   chan struct{}
	holder *memoryLock
}

type memoryLock struct {
	store *memoryStore
	text  string
	at    int // the length of the log when it was acquired
}

func newMemoryStore() *memoryStore {
	return &memoryStore{
		mappings: make(map[uint64]string), refs: make(map[string]map[string]uint64),
		locks: make(map[string]*memoryQueue), changed: make(chan struct{}),
	}
}

// set sets the mapping to text; an empty text deletes it. The caller holds s.mu.
func (s *memoryStore) set(id uint64, text string) {
	if s.mappings[id] = text; text == "" {
		delete(s.mappings, id)
	}
	s.log = append(s.log, memoryEvent{id, text})
	close(s.changed)
	s.changed = make(chan struct{})
}

// refer writes a reference and checks that a key has one ID, and an ID one key. The caller holds s.mu.
func (s *memoryStore) refer(text, node string, id uint64) {
	if s.refs[text] == nil {
		s.refs[text] = make(map[string]uint64)
	}
	s.refs[text][node] = id
	for other, nodes := range s.refs {
		for by, has := range nodes {
			if (other == text) != (has == id) {
				s.wrong = append(s.wrong, fmt.Sprintf("%s uses %s as %d, and %s uses %s as %d", node, text, id, by, other, has))
			}
		}
	}
	if s.mappings[id] != text {
		s.wrong = append(s.wrong, fmt.Sprintf("%s uses %s as %d, which says %q", node, text, id, s.mappings[id]))
	}
}

// behind changes the store directly, without following the rules of the allocator.
func (s *memoryStore) behind(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// contents returns all mappings and references, in order.
func (s *memoryStore) contents() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for id, text := range s.mappings {
		out = append(out, fmt.Sprintf("%d=%s", id, text))
	}
	for text, nodes := range s.refs {
		for node, id := range nodes {
			out = append(out, fmt.Sprintf("%s/%s=%d", text, node, id))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func (s *memoryStore) queue(text string) *memoryQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[text] == nil {
		s.locks[text] = &memoryQueue{held: make(chan struct{}, 1)}
	}
	return s.locks[text]
}

// Unlock implements [Lock]; tests also use it to take a lock away.
func (l *memoryLock) Unlock() {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if q := l.store.locks[l.text]; q.holder == l {
		q.holder = nil
		<-q.held
	}
}

// holds checks that the lock is still held, as the condition of an operation. The caller holds s.mu.
func (s *memoryStore) holds(lock Lock) error {
	if lock == nil {
		return nil
	}
	if l := lock.(*memoryLock); s.locks[l.text].holder != l {
		return kvstore.ErrLockLeaseExpired
	}
	return nil
}

// rightly fails the test if the store recorded a violation.
func (s *memoryStore) rightly(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wrong := range s.wrong {
		t.Error(wrong)
	}
}
