package hostile

import (
	"context"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// judge checks every write into the own etcd.
func (m *copies) judge(ctx context.Context) error {
	for resp := range m.kv.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		if err := resp.Err(); err != nil && ctx.Err() == nil {
			return fmt.Errorf("watching the own etcd: %w", err)
		}
		m.mu.Lock()
		for _, ev := range resp.Events {
			if text := m.look(ev); text != "" && len(m.wrong) < 10 {
				m.wrong = append(m.wrong, fmt.Sprintf("%s of %q in the own etcd: %s", ev.Type, ev.Kv.Key, text))
			}
		}
		m.mu.Unlock()
	}
	return ctx.Err()
}

// look returns the problem of a write into the own etcd; empty without one. The caller holds the lock.
func (m *copies) look(ev *clientv3.Event) string {
	key := string(ev.Kv.Key)
	if key == ownKey || strings.HasPrefix(key, wire.KVStoreMeshLockPath+"/") {
		return ""
	}
	for _, name := range m.owners {
		if key == wire.ClusterConfigKey(name) {
			return m.configured(name, ev)
		}
		for _, r := range wire.Resources() {
			if key == wire.SyncedKey(name, r, true) {
				return ""
			}
			if strings.HasPrefix(key, r.Prefix(name, true)) {
				return m.counted(part{name, r}, ev)
			}
		}
	}
	return "it belongs to none of the remotes"
}

// configured returns the problem of a configuration's copy; empty without one.
func (m *copies) configured(name string, ev *clientv3.Event) string {
	if ev.Type == mvccpb.DELETE {
		delete(m.configs, name)
		return ""
	}
	c, err := wire.DecodeClusterConfig(ev.Kv.Value)
	if err != nil {
		return fmt.Sprintf("%q cannot be read: %v", ev.Kv.Value, err)
	}
	m.configs[name] = c.ID
	if c.ID == own().ID || c.ID == 0 || c.ID > own().MaxConnectedClusters {
		return fmt.Sprintf("its ID is %d", c.ID)
	}
	for other, id := range m.configs {
		if other != name && id == c.ID {
			return fmt.Sprintf("it takes the ID %d of %s", id, other)
		}
	}
	return ""
}

// counted counts a write, and returns the problem if the resource exceeds its maximum; empty otherwise.
func (m *copies) counted(p part, ev *clientv3.Event) string {
	key := string(ev.Kv.Key)
	is := m.shares[p]
	if before, there := m.sizes[key]; there {
		is.Keys--
		is.Bytes -= before
		delete(m.sizes, key)
	}
	if ev.Type == mvccpb.PUT {
		size := int64(len(strings.TrimPrefix(key, p.resource.Prefix(p.cluster, true))) + len(ev.Kv.Value))
		is.Keys++
		is.Bytes += size
		m.sizes[key] = size
	}
	m.shares[p] = is
	if m.most.Keys > 0 && is.Keys > m.most.Keys || m.most.Bytes > 0 && is.Bytes > m.most.Bytes {
		return fmt.Sprintf("there are %d keys with %d bytes of it, at most %d and %d are allowed", is.Keys, is.Bytes, m.most.Keys, m.most.Bytes)
	}
	return ""
}
