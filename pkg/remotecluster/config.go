package remotecluster

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// configWatch follows the cluster configuration. It watches this one key, so that a
// change is applied at once, not at the next connection.
type configWatch struct {
	key   string
	watch *store.Watch[wire.ClusterConfig]

	mu       sync.Mutex
	cfg      *wire.ClusterConfig // the last configuration that was read in this session; kept when the key is deleted during the session
	vanished bool                // the key was deleted after it had been read
	changed  chan struct{}       // closed and replaced when cfg changes
}

func newConfigWatch(cluster string, log *slog.Logger) *configWatch {
	c := &configWatch{key: wire.ClusterConfigKey(cluster), changed: make(chan struct{})}
	c.watch = store.NewWatch(store.Kind[wire.ClusterConfig]{
		Resource: "cluster-config",
		Decode: func(wire.Expect) store.Decode[wire.ClusterConfig] {
			return func(_ string, value []byte) (*wire.ClusterConfig, error) {
				cfg, err := wire.DecodeClusterConfig(value)
				return &cfg, err
			}
		},
		Apply: c.apply,
	}, log)
	return c
}

func (c *configWatch) apply(changes []store.Change[wire.ClusterConfig]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range changes {
		if c.vanished = ch.New == nil; c.vanished {
			continue
		}
		if c.cfg == nil || !bytes.Equal(c.cfg.Encode(), ch.New.Encode()) {
			c.cfg = ch.New
			close(c.changed)
			c.changed = make(chan struct{})
		}
	}
}

// current returns the configuration, nil when it was not read yet, and a
// channel that is closed when the configuration changes.
func (c *configWatch) current() (*wire.ClusterConfig, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg, c.changed
}

// isMissing reports whether no configuration is known, or its key was deleted.
func (c *configWatch) isMissing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cfg == nil || c.vanished
}

// facts describes the watch at this moment. It returns nil for a nil c: the own cluster has no watch.
func (c *configWatch) facts() *configFacts {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &configFacts{
		Status: c.watch.Status(), key: c.key, vanished: c.vanished,
		cached: c.cfg != nil && c.cfg.Capabilities.Cached,
	}
}

// missing returns the error for a configuration that was not read within the given time.
func (c *configWatch) missing(waited time.Duration) error {
	if problem := c.facts().pending(); problem != "" {
		return errors.New(problem)
	}
	return fmt.Errorf("no cluster configuration at %s after %s: %s", c.key, waited, WhoseEtcd)
}
