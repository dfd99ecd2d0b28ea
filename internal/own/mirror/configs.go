package mirror

import (
	"context"
	"fmt"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// configs are the configurations of the remotes in our own etcd. At each revision their IDs are
// different, because readers take an ID for that of one cluster. A cluster can receive an ID while
// the previous owner's configuration is still in our etcd: because that cluster changes its ID, has
// lost the right to it, or was copied in an earlier term. The old configuration is deleted first.
type configs struct {
	sync   *syncstore.Sync
	writer kvstore.Writer
	lock   *kvstore.Lock
	own    string // our own cluster, whose configuration is not ours to write

	turn chan struct{}     // has one while a goroutine changes ids
	ids  map[string]uint32 // guarded by turn; by name, what our own etcd has or is about to have; nil before it was asked
}

func (c *configs) put(ctx context.Context, name string, cfg wire.ClusterConfig) error {
	if err := c.change(ctx, func() error {
		for other, id := range c.ids {
			if (other == name) == (id == cfg.ID) {
				continue // its own one with this ID, or another's with another one
			}
			if err := c.remove(ctx, other); err != nil {
				return err
			}
		}
		c.ids[name] = cfg.ID
		c.sync.Put(name, cfg.Encode())
		return nil
	}); err != nil {
		return err
	}
	return c.sync.WaitName(ctx, name)
}

// withdraw deletes a cluster's configuration, be it of an earlier term, and waits until it is gone.
func (c *configs) withdraw(ctx context.Context, name string) error {
	return c.change(ctx, func() error { return c.remove(ctx, name) })
}

// disown is withdraw for a cluster that has had an ID, perhaps.
func (c *configs) disown(ctx context.Context, name string) error {
	return c.change(ctx, func() error {
		if _, there := c.ids[name]; !there {
			return nil
		}
		return c.remove(ctx, name)
	})
}

// change runs do while no other goroutine changes the configurations, after their first read from our own kvstore.
func (c *configs) change(ctx context.Context, do func() error) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	if err := c.ask(ctx); err != nil {
		return fmt.Errorf("reading the configurations in our own kvstore: %w", err)
	}
	return do()
}

// ask reads once what an earlier term has left.
func (c *configs) ask(ctx context.Context) error {
	if c.ids != nil {
		return nil
	}
	ids, prefix := make(map[string]uint32), wire.ClusterConfigPrefix+"/"
	_, err := c.writer.List(ctx, prefix, func(p kvstore.Page) error {
		for _, kv := range p.Items {
			name := strings.TrimPrefix(string(kv.Key), prefix)
			if cfg, err := wire.DecodeClusterConfig(kv.Value); err == nil && name != c.own {
				ids[name] = cfg.ID
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.ids = ids
	return nil
}

// remove deletes a configuration: as one of this term, and directly, as one that it has
// never written.
func (c *configs) remove(ctx context.Context, name string) error {
	c.sync.Delete(name)
	if err := c.sync.WaitName(ctx, name); err != nil {
		return err
	}
	if _, err := c.writer.Delete(ctx, wire.ClusterConfigKey(name), kvstore.Holding(c.lock)); err != nil {
		return err
	}
	delete(c.ids, name)
	return nil
}
