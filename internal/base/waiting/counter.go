package waiting

import "sync"

// Counter counts changes, and wakes up all goroutines that wait for the next one. The zero value is ready, and its
// methods may be called concurrently.
type Counter struct {
	mu      sync.Mutex
	count   uint64
	awaited chan struct{} // closed at the next change; nil if no goroutine waits
}

// Add counts a change.
func (c *Counter) Add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	if c.awaited != nil {
		close(c.awaited)
		c.awaited = nil
	}
}

// Count returns the number of changes.
func (c *Counter) Count() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Changed returns a channel that is closed once there are more changes than known.
func (c *Counter) Changed(known uint64) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count > known {
		now := make(chan struct{})
		close(now)
		return now
	}
	if c.awaited == nil {
		c.awaited = make(chan struct{})
	}
	return c.awaited
}
