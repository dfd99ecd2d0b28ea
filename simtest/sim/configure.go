package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// ConfigChange is a change of a cluster's configuration (spec wire.md §2.1). The
// zero value changes nothing, and is refused.
type ConfigChange struct {
	// ID, when not 0, is the new cluster ID. Everything else is written again too, as by a real cluster; this repairs
	// broken keys.
	ID uint32
	// Capabilities replaces capabilities, by their names, with values in JSON or plain text:
	// "syncedCanaries": "false". Only the configuration changes, not the other keys and their prefixes.
	Capabilities map[string]string
	// Delete deletes the configuration. It excludes the others.
	Delete bool
}

// Configure changes the configuration.
func (r *Running) Configure(ctx context.Context, c ConfigChange) error {
	r.etcd.mu.Lock()
	defer r.etcd.mu.Unlock()
	if err := c.validate(r.c.MaxConnectedClusters); err != nil {
		return err
	}
	if err := r.up(); err != nil {
		return err
	}
	key := wire.ClusterConfigKey(r.c.Name)
	if c.Delete {
		return r.override(ctx, contents.Op{Key: key})
	}
	cfg, err := withCapabilities(r.presentConfig(), c.Capabilities)
	if err != nil {
		return err
	}
	if c.ID != 0 {
		cfg.ID = c.ID
		return r.renumber(ctx, cfg)
	}
	return r.override(ctx, contents.Op{Key: key, Value: cfg.Encode()})
}

func (c ConfigChange) validate(maximum uint32) error {
	changes := c.ID != 0 || len(c.Capabilities) > 0
	switch {
	case changes == c.Delete:
		return misuse("say what to change in the configuration: --id, --capability, or --delete alone")
	case c.ID > maximum:
		return misuse("cluster ID %d is not in 1..%d", c.ID, maximum)
	}
	return nil
}

// presentConfig is the configuration that readers see, or the right one if they see none.
func (r *Running) presentConfig() wire.ClusterConfig {
	right := r.c.Config()
	value := right.Value
	if v, ok := r.overrides[right.Key]; ok && v.value != nil {
		value = v.value
	}
	cfg, err := wire.DecodeClusterConfig(value)
	if err != nil { // malformed
		cfg, _ = wire.DecodeClusterConfig(right.Value) // our own encoding
	}
	return cfg
}

// withCapabilities replaces capabilities.
func withCapabilities(c wire.ClusterConfig, capabilities map[string]string) (wire.ClusterConfig, error) {
	for name, text := range capabilities {
		value := json.RawMessage(text)
		if !json.Valid(value) {
			value, _ = json.Marshal(text) // a string can always be encoded
		}
		one, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err != nil {
			return c, misuse("capability %q: %v", name, err)
		}
		d := json.NewDecoder(strings.NewReader(string(one)))
		d.DisallowUnknownFields()
		if err := d.Decode(&c.Capabilities); err != nil {
			return c, misuse("capability %s=%s: %v; there are %s", name, text, err, knownCapabilities())
		}
	}
	return c, nil
}

// knownCapabilities lists the capabilities of a configuration, with the type of each.
func knownCapabilities() string {
	var all []string
	for f := range reflect.TypeFor[wire.Capabilities]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, fmt.Sprintf("%s (%s)", name, strings.TrimPrefix(f.Type.String(), "*")))
	}
	return strings.Join(all, ", ")
}

// renumber sets the ID of the configuration in the cluster and writes everything that contains it.
func (r *Running) renumber(ctx context.Context, cfg wire.ClusterConfig) error {
	stale := r.forgetAll()
	identities := wire.Identities.Prefix(r.c.Name, r.c.Mode == contents.Cached)
	for o := range r.state() {
		if strings.HasPrefix(o.Key, identities) {
			stale[o.Key] = true
		}
	}
	r.c.ID = cfg.ID
	r.model.Renumber(cfg.ID)
	right := r.c.Config()
	r.fixed[0].Value = right.Value
	if value := cfg.Encode(); !bytes.Equal(value, right.Value) {
		r.overrides[right.Key] = override{value: value, slot: r.model.Slots.Take()}
	}
	_, err := r.mend(ctx, stale)
	return err
}
