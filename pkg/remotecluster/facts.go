package remotecluster

import (
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// rules are the settings of a cluster that its judgment depends on.
type rules struct {
	name         string
	own          bool          // [OriginLocal]
	skipOptional bool          // optional resources are not waited for
	staleAfter   time.Duration // [Timings].StaleAfter
	cacheTTL     time.Duration
	budget       budget.Budget
}

// facts are what the parts of a cluster say of themselves at one moment. They move with every
// batch, so they are asked for when the cluster is judged, instead of being kept.
type facts struct {
	// Of the session: zero while none is open.
	heartbeat     kvstore.HeartbeatStatus
	probeInterval time.Duration
	noSpace       bool
	version       string // of the server; empty while unknown
	faults        string // of that version
	handshake     time.Time
	serverEnds    time.Time
	authorityEnds time.Time    // the first of those above the server's certificate
	config        *configFacts // nil for the own cluster, too
	canaries      *canaryFacts // nil before there is a configuration

	sources []sourceFacts
	memory  int64 // what the entries of the cluster take, in bytes
}

// sourceFacts are those of one source.
type sourceFacts struct {
	resource wire.Resource
	store.Status
}

// canaryFacts tell which canaries were seen, of copies or not.
type canaryFacts struct {
	cached bool
	seen   map[wire.Resource]bool
}

// configFacts are those of the watch of the cluster configuration.
type configFacts struct {
	store.Status
	key      string
	vanished bool // it was deleted after it had been read
	cached   bool // the one in force is that of a copy
}

// problem says what is wrong with the configuration that is in force; empty
// when nothing is, and for nil.
func (c *configFacts) problem() string {
	switch {
	case c == nil:
		return ""
	case c.Rejected > 0:
		return fmt.Sprintf("%s; the previous one stays in use", c.unreadable())
	case c.vanished && c.cached:
		return fmt.Sprintf("the cluster configuration %s was deleted while connected; the mirror withdraws its copy, as when its client file there is gone", c.key)
	case c.vanished:
		return fmt.Sprintf("the cluster configuration %s was deleted while connected; the cluster's writer may be gone", c.key)
	}
	return ""
}

// unreadable says what is wrong with a value that is no configuration.
func (c *configFacts) unreadable() string {
	return fmt.Sprintf("the value of %s cannot be read as a cluster configuration (%s): %s", c.key, c.Example.Why, CheckWriter)
}

// pending says what keeps the configuration from being known; empty when it is merely not there.
func (c *configFacts) pending() string {
	switch {
	case c.Rejected > 0:
		return c.unreadable()
	case c.Err != nil:
		return fmt.Sprintf("reading the cluster configuration %s: %v", c.key, c.Err)
	}
	return ""
}
