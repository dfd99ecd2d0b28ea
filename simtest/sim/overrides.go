package sim

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// override is a key that differs from the model on request. It has a slot of its own on a lease.
type override struct {
	value []byte // nil when the key does not exist
	slot  int32
}

// all are the keys of the cluster in etcd, except the heartbeat.
func (r *Running) all() iter.Seq[contents.Op] {
	return func(yield func(contents.Op) bool) {
		for _, o := range slices.Concat(r.overridden(), r.unbroken(r.fixed)) {
			if !yield(o) {
				return
			}
		}
		for o := range r.state() {
			if !yield(o) {
				return
			}
		}
	}
}

// state are the keys of the model that are not overridden, at the places where readers look for them.
func (r *Running) state() iter.Seq[contents.Op] {
	return func(yield func(contents.Op) bool) {
		if r.empty {
			return
		}
		for o := range r.model.All() {
			o = r.place(o)
			if _, ok := r.overrides[o.Key]; !ok && !yield(o) {
				return
			}
		}
	}
}

// place moves a key to the place where readers look for it, and decides whether it has a lease.
func (r *Running) place(o contents.Op) contents.Op {
	switch r.c.Mode {
	case contents.Cached:
		for _, move := range r.moves {
			if name, ok := strings.CutPrefix(o.Key, move[0]); ok {
				o.Key = move[1] + name
				break
			}
		}
	case contents.Local:
		if strings.HasPrefix(o.Key, wire.Identities.StorePrefix(false)) {
			o.Slot = contents.NoLease // spec wire.md §1.1
		}
	}
	return o
}

// unbroken leaves out the keys that are overridden, and all keys while the server has lost everything.
func (r *Running) unbroken(ops []contents.Op) []contents.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(o contents.Op) bool {
		_, ok := r.overrides[o.Key]
		return ok || r.empty
	})
}

// overridden returns the keys whose values differ from the model's.
func (r *Running) overridden() []contents.Op {
	var ops []contents.Op
	for key, v := range r.overrides {
		if v.value != nil {
			ops = append(ops, contents.Op{Key: key, Value: v.value, Slot: v.slot})
		}
	}
	return ops
}

// override commits operations that are not in the model, at once, and records them. After an error nothing has changed.
func (r *Running) override(ctx context.Context, ops ...contents.Op) error {
	for i, o := range ops {
		ops[i].Slot = contents.NoLease
		if !o.Deletes() {
			ops[i] = r.withSlot(o)
		}
	}
	if _, err := r.apply(ctx, ops); err != nil {
		for _, o := range ops {
			r.release(o.Slot)
		}
		return err
	}
	for _, o := range ops {
		r.forget(o.Key)
		r.overrides[o.Key] = override{value: o.Value, slot: o.Slot}
	}
	return nil
}

// forget ends an override when another value is written.
func (r *Running) forget(key string) {
	if v, ok := r.overrides[key]; ok {
		r.release(v.slot)
		delete(r.overrides, key)
	}
}

// forgetAll ends all overrides and returns their keys.
func (r *Running) forgetAll() map[string]bool {
	keys := map[string]bool{}
	for key := range r.overrides {
		keys[key] = true
		r.forget(key)
	}
	return keys
}

func (r *Running) release(slot int32) {
	if slot != contents.NoLease {
		r.model.Slots.Give(slot)
	}
}

// prefixes are the prefixes of a cluster's keys in an etcd that it shares; the configuration is one key.
func (r *Running) prefixes() []string {
	out := []string{wire.SyncedDir(r.c.Name)}
	for _, move := range r.moves {
		out = append(out, move[1])
	}
	return out
}

// owns reports whether a key in a shared etcd belongs to this cluster.
func (r *Running) owns(key string) bool {
	return key == wire.ClusterConfigKey(r.c.Name) ||
		slices.ContainsFunc(r.prefixes(), func(p string) bool { return strings.HasPrefix(key, p) })
}
