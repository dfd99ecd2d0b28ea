package remotecluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// surroundings describes the contents of an etcd without the cluster's configuration.
type surroundings struct {
	empty  bool     // the etcd has no keys of any cluster
	others []string // names of some clusters that have a configuration there
}

// The maximum number of other clusters that are named, and of keys that are read to find them.
const (
	namedOthers = 3
	othersMost  = 256
)

// lookAround reads the other contents of the etcd periodically while the configuration is missing.
func (c *Cluster) lookAround(ctx context.Context, client Client, config *configWatch) error {
	for {
		if err := waiting.Sleep(ctx, c.Timings.LookAround); err != nil {
			return err
		}
		var found surroundings
		if config.isMissing() {
			var err error
			if found, err = surroundingsOf(ctx, client, c.Name); err != nil {
				c.Log.Debug("Cannot read the contents of an etcd without the configuration of the cluster", "cluster", c.Name, "error", err)
			}
		}
		if known := c.current().around; found.empty != known.empty || !slices.Equal(found.others, known.others) {
			c.note(lookedAround(found))
		}
	}
}

// surroundingsOf reads a small part of an etcd. It returns an error if the user of the client file may not read
// the keys of other clusters.
func surroundingsOf(ctx context.Context, client kvstore.Client, own string) (s surroundings, err error) {
	enough := errors.New("enough was read")
	read := func(prefix string, each func(kvstore.Page) error) error {
		if _, err := client.List(ctx, prefix, each); err != nil && !errors.Is(err, enough) {
			return err
		}
		return nil
	}
	seen, prefix := 0, wire.ClusterConfigPrefix+"/"
	err = read(prefix, func(p kvstore.Page) error {
		for _, kv := range p.Items {
			name := strings.TrimPrefix(string(kv.Key), prefix)
			config, err := wire.DecodeClusterConfig(kv.Value)
			if seen++; seen > othersMost || name == own || err == nil && config.Capabilities.Cached {
				s.others = nil // too many keys, our own configuration, or copies: then ours may still be written
				return enough
			}
			if len(s.others) < namedOthers && err == nil && wire.ValidateClusterName(name) == nil {
				s.others = append(s.others, name)
			}
		}
		return nil
	})
	if err != nil || seen > 0 {
		return s, err
	}
	s.empty = true
	err = read("cilium/", func(kvstore.Page) error { s.empty = false; return enough })
	return s, err
}

// lookedAround: the other contents of the etcd were read while the configuration is missing.
func lookedAround(found surroundings) event {
	return func(s *state, _ time.Time) { s.around = found }
}

// instead describes what the etcd contains instead of the cluster's configuration. The text is empty when that is
// unknown.
func (s surroundings) instead(name string) reason {
	switch {
	case s.empty:
		return because(codes.EtcdEmpty, "the etcd answers, but has nothing of any cluster: was it restored from nothing, or replaced? %s", capital(WriterRuns))
	case len(s.others) > 0:
		return because(codes.EtcdOfAnother, "the etcd has no configuration of %s, but that of %s: it looks like the etcd of another cluster; correct the endpoints in the client file, or its name",
			name, strings.Join(slices.Sorted(slices.Values(s.others)), ", "))
	}
	return reason{}
}

// capital returns s with an upper-case first letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
