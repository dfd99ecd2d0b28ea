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

// facts are the reports of the parts of a cluster at one moment. They change with every
// batch. So they are not stored, but read when the cluster is judged.
type facts struct {
	// The facts of the session: zero while none is open.
	heartbeat     kvstore.HeartbeatStatus
	probeInterval time.Duration
	noSpace       bool
	version       string // of the server; empty while unknown
	faults        string // known faults of that version
	handshake     time.Time
	serverEnds    time.Time
	authorityEnds time.Time    // when the first certificate above the server's expires
	config        *configFacts // nil for the own cluster as well
	canaries      *canaryFacts // nil before there is a configuration

	families []familyFacts
	memory   int64 // memory of the cluster's entries, in bytes
}

// familyFacts are the facts of one family.
type familyFacts struct {
	resource wire.Resource
	store.Status
}

// canaryFacts are the canaries that were seen: those of a copy if cached is set, else those of the cluster itself.
type canaryFacts struct {
	cached bool
	seen   map[wire.Resource]bool
}

// configFacts are the facts of the watch of the cluster configuration.
type configFacts struct {
	store.Status
	key      string
	vanished bool // the key was deleted after it had been read
	cached   bool // the configuration in force is that of a copy
}

// problem describes the problem of the configuration that is in force; empty for
// none, and for a nil c.
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

// unreadable describes why a value cannot be read as a configuration.
func (c *configFacts) unreadable() string {
	return fmt.Sprintf("the value of %s cannot be read as a cluster configuration (%s): %s", c.key, c.Example.Why, CheckWriter)
}

// pending describes why the configuration could not be read; empty when the key just does not exist.
func (c *configFacts) pending() string {
	switch {
	case c.Rejected > 0:
		return c.unreadable()
	case c.Err != nil:
		return fmt.Sprintf("reading the cluster configuration %s: %v", c.key, c.Err)
	}
	return ""
}
