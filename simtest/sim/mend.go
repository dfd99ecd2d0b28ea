package sim

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// mendPage is the number of keys in a page that is read for mending.
const mendPage = 5000

// Mend makes etcd equal the description with the changes since then. Each put,
// delete, malformed value, claim, wipe and change of the configuration is undone, except for the
// cluster ID. Nothing else is written. It returns the number of keys that were written or deleted.
func (r *Running) Mend(ctx context.Context) (int, error) {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	if err := r.up(); err != nil {
		return 0, err
	}
	return r.mend(ctx, r.forgetAll())
}

// mend writes the differences, and always the given keys. The caller holds mu.
func (r *Running) mend(ctx context.Context, keys map[string]bool) (int, error) {
	e := r.etcd
	heartbeat := e.heartbeats && (r.empty || keys[wire.HeartbeatKey])
	r.empty = false
	has, err := r.readBack(ctx)
	if err != nil {
		return 0, fmt.Errorf("read cluster %s back: %w", r.c.Name, err)
	}
	for i := range r.fixed[1:] {
		if _, ok := has.values[r.fixed[1+i].Key]; !ok {
			r.fixed[1+i].Value = wire.EncodeTimestamp(time.Now())
		}
	}
	n, err := r.writeMended(ctx, has, keys)
	if err == nil && heartbeat {
		err = e.writeHeartbeat(ctx, e.client)
	}
	return n, err
}

// writeMended commits the differences: the configuration first, the canaries last.
func (r *Running) writeMended(ctx context.Context, has readBack, keys map[string]bool) (int, error) {
	var first, ops, last []contents.Op
	for o := range r.all() {
		hash, ok := has.values[o.Key]
		wanted := keys[o.Key] || !ok || hash != maphash.Bytes(has.seed, o.Value)
		delete(has.values, o.Key)
		delete(keys, o.Key)
		switch {
		case !wanted:
		case strings.HasPrefix(o.Key, wire.ClusterConfigPrefix):
			first = append(first, o)
		case strings.HasPrefix(o.Key, wire.SyncedPrefix):
			last = append(last, o)
		default:
			ops = append(ops, o)
		}
	}
	if r.c.Mode != contents.Local { // the agent writes there too
		for key := range has.values {
			keys[key] = true
		}
	}
	delete(keys, wire.HeartbeatKey)
	for key := range keys {
		ops = append(ops, contents.Op{Key: key})
	}
	n := 0
	for _, part := range [][]contents.Op{first, ops, last} {
		written, err := r.apply(ctx, part)
		n += written
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// readBack has the contents of etcd, as hashes.
type readBack struct {
	seed   maphash.Seed
	values map[string]uint64
}

// readBack reads all keys of the cluster.
func (r *Running) readBack(ctx context.Context) (readBack, error) {
	out := readBack{seed: maphash.MakeSeed(), values: map[string]uint64{}}
	if r.c.Mode != contents.Cached {
		return out, r.readRange(ctx, "\x00", "\x00", out)
	}
	config := wire.ClusterConfigKey(r.c.Name)
	if err := r.readRange(ctx, config, config+"\x00", out); err != nil {
		return out, err
	}
	for _, p := range r.prefixes() {
		if err := r.readRange(ctx, p, clientv3.GetPrefixRangeEnd(p), out); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (r *Running) readRange(ctx context.Context, from, end string, into readBack) error {
	for {
		resp, err := r.etcd.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(mendPage))
		if err != nil {
			return err
		}
		for _, kv := range resp.Kvs {
			if string(kv.Key) != wire.HeartbeatKey {
				into.values[string(kv.Key)] = maphash.Bytes(into.seed, kv.Value)
			}
		}
		if !resp.More {
			return nil
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
}
