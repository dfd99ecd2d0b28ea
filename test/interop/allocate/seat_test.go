package allocate

import (
	"fmt"
	"sync"
)

// seat is a node's place: when its node is gone, another one takes the place under the same name.
type seat struct {
	side, name string

	mu   sync.Mutex
	node node // nil when it is gone
	life int  // grows when a node goes
}

func (s *seat) now() (node, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node, s.life
}

// leave removes the node, and all of its uses.
func (s *seat) leave(u *uses) {
	s.mu.Lock()
	n := s.node
	s.node = nil
	s.life++
	s.mu.Unlock()
	u.forget(s)
	if n != nil {
		n.gone()
	}
}

func (s *seat) sit(n node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node = n
}

// uses has the keys that all nodes use at a time, as recorded by their users.
type uses struct {
	mu    sync.Mutex
	of    map[string]map[*seat]*use // by key
	wrong map[string][]string       // by key
}

// use is a key that a node uses, possibly several times.
type use struct {
	id    uint64
	times int
}

// begin records a use of an allocated ID, and any contradiction to other uses.
func (u *uses) begin(s *seat, life int, key string, id uint64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, now := s.now(); now != life {
		return
	}
	for other, use := range u.of[key] {
		if use.id != id {
			u.wrong[key] = append(u.wrong[key], fmt.Sprintf("%s is %d for %s and %d for %s", key, id, s.name, use.id, other.name))
		}
	}
	if u.of[key] == nil {
		u.of[key] = map[*seat]*use{}
	}
	if u.of[key][s] == nil {
		u.of[key][s] = &use{id: id}
	}
	u.of[key][s].times++
}

// end is the reverse of begin; without a begin it does nothing.
func (u *uses) end(s *seat, life int, key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, now := s.now(); now != life || u.of[key][s] == nil {
		return
	}
	if u.of[key][s].times--; u.of[key][s].times == 0 {
		delete(u.of[key], s)
	}
}

// forget ends all that a node uses.
func (u *uses) forget(s *seat) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, nodes := range u.of {
		delete(nodes, s)
	}
}
