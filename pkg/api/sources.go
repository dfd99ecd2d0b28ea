package api

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Keys knows single keys of clusters.
type Keys interface {
	// Find tells what is known of one key of a cluster, by its name below the
	// resource's prefix; false for nothing. It may wait while a batch is read.
	Find(cluster string, r wire.Resource, name string) (store.Found, bool)
}

// Writer is what writes to the own cluster's kvstore.
type Writer interface {
	// Status returns what is known about the session, without asking anybody.
	Status() kvstore.Status
}

// Level is how much a log tells.
type Level interface {
	Get() string
	Set(level string) error
}

// Sources is what a server reads. Agent, View, Gatherer, LogLevel and Settings are
// required; the others are what a mode has, and their methods may be called by any
// goroutine.
type Sources struct {
	Agent    AgentInfo
	View     *view.View
	Gatherer prometheus.Gatherer
	LogLevel Level    // that of the agent's log
	Settings Settings // those in force, without secrets

	Directory   clustermesh.MeshDirectory            // nil: no mesh directory is read
	Keys        Keys                                 // nil: nothing is known of single keys
	Leads       func() bool                          // nil: there is nothing to lead
	Writer      Writer                               // nil: nothing is written
	Written     func() []syncstore.Written           // nil: as without a Writer
	Stopped     func() (why codes.Code, text string) // why nothing is written for want of space, empty when it is; nil: it always is
	Missing     func() map[string]string             // by cluster, what is not synced of those without which it became ready; nil: nothing
	Described   Described                            // nil: nobody describes the own cluster
	DescribedBy string                               // who does, in a person's words
}

func (s *Sources) validate() error {
	if s.View == nil || s.Gatherer == nil || s.LogLevel == nil || s.Settings == nil {
		return errors.New("api: a source is missing")
	}
	return nil
}

// find is Keys, or knows nothing.
func (s *Sources) find(cluster string, r wire.Resource, name string) (store.Found, bool) {
	if s.Keys == nil {
		return store.Found{}, false
	}
	return s.Keys.Find(cluster, r, name)
}
