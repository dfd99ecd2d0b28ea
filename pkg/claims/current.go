package claims

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"github.com/mesh-agent/mesh-agent/internal/base/dirwatch"
)

// Current is the policy in force. Its zero value restricts nothing, and neither does nil.
type Current struct {
	mu      sync.Mutex
	policy  *Policy       // guarded by mu; nil restricts nothing
	changed chan struct{} // guarded by mu; closed when policy changes; nil until the next Get
}

// Get returns the policy, and a channel that is closed when it changes.
func (c *Current) Get() (*Policy, <-chan struct{}) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return c.policy, c.changed
}

// Policy returns the policy.
func (c *Current) Policy() *Policy {
	p, _ := c.Get()
	return p
}

// Set puts a policy in force.
func (c *Current) Set(p *Policy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.policy = p
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// Follow puts the policy of the file in force, again after each change of the file's contents, until ctx ends. If the
// file cannot be used, the policy in force stays, and report gets the error; it gets nil when the file can be used
// again.
func (c *Current) Follow(ctx context.Context, file string, report func(error), log *slog.Logger) error {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	known, begun := "", false
	var unusable, last error // the error of the contents, and the last report
	return dirwatch.FollowFile(ctx, func() (string, error) {
		content, err := read(file)
		return string(content), err
	}, func(content string, unread error) {
		changed := unread == nil && (!begun || content != known)
		if changed {
			known, begun = content, true
			var p *Policy
			if p, unusable = Parse([]byte(content)); unusable == nil {
				c.Set(p)
				log.Info("The claim policy is in force", "file", file)
			} else {
				log.Warn("Cannot use the claim policy file; the previous rules stay in use", "file", file, "error", unusable)
			}
		}
		if now := cmp.Or(unread, unusable); changed || unread != nil || now != last {
			report(now)
			last = now
		}
	})
}
