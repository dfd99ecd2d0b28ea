package sim

import (
	"context"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// override is a key that is otherwise than the model says, because somebody
// wanted it so. It has room on a lease of its own.
type override struct {
	value []byte // nil: the key is not there
	slot  int32
}

// each calls f with every key that the cluster has in etcd, heartbeat excepted,
// until f fails.
func (r *Running) each(f func(op) error) error {
	for _, o := range r.overridden() {
		if err := f(o); err != nil {
			return err
		}
	}
	if r.empty {
		return nil
	}
	for _, o := range r.unbroken(r.fixed) {
		if err := f(o); err != nil {
			return err
		}
	}
	return r.eachOfState(f)
}

// eachOfState calls f with the keys of the model, where readers look for them and
// as far as they are not overridden.
func (r *Running) eachOfState(f func(op) error) error {
	if r.empty {
		return nil
	}
	return r.model.each(func(o op) error {
		o = r.place(o)
		if _, ok := r.overrides[o.key]; ok {
			return nil
		}
		return f(o)
	})
}

// place puts a key where readers look for it, and decides whether it has a lease.
func (r *Running) place(o op) op {
	switch r.c.Mode {
	case Cached:
		for _, move := range r.moves {
			if name, ok := strings.CutPrefix(o.key, move[0]); ok {
				o.key = move[1] + name
				break
			}
		}
	case Local:
		if strings.HasPrefix(o.key, wire.Identities.StorePrefix(false)) {
			o.slot = noLease // spec wire.md §1.1
		}
	}
	return o
}

// unbroken leaves out the keys that are overridden.
func (r *Running) unbroken(ops []op) []op {
	return slices.DeleteFunc(slices.Clone(ops), func(o op) bool {
		_, ok := r.overrides[o.key]
		return ok
	})
}

// overridden returns the keys that have another value than the model's.
func (r *Running) overridden() []op {
	var ops []op
	for key, v := range r.overrides {
		if v.value != nil {
			ops = append(ops, op{key: key, value: v.value, slot: v.slot})
		}
	}
	return ops
}

// override commits operations that the model knows nothing of, at once, and
// remembers them. After an error nothing has changed.
func (r *Running) override(ctx context.Context, ops ...op) error {
	for i, o := range ops {
		ops[i].slot = noLease
		if !o.deletes() {
			ops[i] = r.withSlot(o)
		}
	}
	if _, err := r.apply(ctx, ops); err != nil {
		for _, o := range ops {
			r.release(o.slot)
		}
		return err
	}
	for _, o := range ops {
		r.forget(o.key)
		r.overrides[o.key] = override{value: o.value, slot: o.slot}
	}
	return nil
}

// forget ends an override, as another value is written.
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
	if slot != noLease {
		r.model.slots.give(slot)
	}
}

// prefixes are where a cluster's keys are in an etcd that it shares; the
// configuration is one key.
func (r *Running) prefixes() []string {
	out := []string{wire.SyncedDir(r.c.Name)}
	for _, move := range r.moves {
		out = append(out, move[1])
	}
	return out
}

// owns tells whether a key in a shared etcd is of this cluster.
func (r *Running) owns(key string) bool {
	return key == wire.ClusterConfigKey(r.c.Name) ||
		slices.ContainsFunc(r.prefixes(), func(p string) bool { return strings.HasPrefix(key, p) })
}
