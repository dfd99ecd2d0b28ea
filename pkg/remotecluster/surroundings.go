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

// surroundings is what an etcd has in which the cluster's configuration is missing.
type surroundings struct {
	empty  bool     // it has nothing of any cluster
	others []string // some of those that have a configuration there
}

// How many others are named, and how many keys are looked at for them.
const (
	namedOthers = 3
	othersMost  = 256
)

// lookAround finds out, again and again while the configuration is missing, what is there instead.
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

// surroundingsOf reads little of an etcd. Whoever may not read what others have there learns nothing.
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
				s.others = nil // it has ours, or is one with copies, in which ours may come
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

// lookedAround: this is what an etcd has in which the configuration is missing.
func lookedAround(found surroundings) event {
	return func(s *state, _ time.Time) { s.around = found }
}

// instead says what the etcd has instead of the configuration of the cluster; without words when that is not known.
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

// capital makes a sentence of the end of one.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
