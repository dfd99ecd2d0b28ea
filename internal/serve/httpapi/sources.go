package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/diagnose/history"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
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

// Sources is what a server reads. Agent, View, Gatherer, LogLevel and Settings are required; the
// others are what a mode has, and their methods may be called by any goroutine.
type Sources struct {
	Agent    api.AgentInfo
	View     *view.View
	Gatherer prometheus.Gatherer
	LogLevel Level        // that of the agent's log
	Settings api.Settings // those in force, without secrets

	Asker       backends.Asker                       // for whom backends are chosen when a request does not say it
	Zone        string                               // of DNS, in which services have names
	Directory   clustermesh.MeshDirectory            // nil: no mesh directory is read
	Keys        Keys                                 // nil: nothing is known of single keys
	Leads       func() bool                          // nil: there is nothing to lead
	Writer      Writer                               // nil: nothing is written
	Written     func() []syncstore.Written           // nil: as without a Writer
	Stopped     func() (why codes.Code, text string) // why nothing is written for want of space, empty when it is; nil: it always is
	Missing     func() map[string]string             // by cluster, what is not synced of those without which it became ready; nil: nothing
	Serving     func() []api.Serving                 // servers of other protocols that read the view; nil: there are none
	XDSClients  func() *api.XDSClients               // who follows xDS; nil, or its answer is: nobody can
	History     *history.History                     // nil: nothing is remembered
	Described   Described                            // nil: nobody describes the own cluster
	DescribedBy string                               // who does, in a person's words
}

func (s *Sources) find(cluster string, r wire.Resource, name string) (store.Found, bool) {
	if s.Keys == nil {
		return store.Found{}, false
	}
	return s.Keys.Find(cluster, r, name)
}

// Described is the description of the own cluster.
type Described interface {
	// State says how well it is known, Counts how many objects it has of each kind.
	State() local.State
	Counts() map[string]int
}

// description is that of the own cluster; nil without a source.
func (s *Server) description() *api.Description {
	if s.Described == nil {
		return nil
	}
	st := s.Described.State()
	d := &api.Description{
		Source: s.DescribedBy, Listed: st.Listed, AsOf: timeOrNull(st.AsOf), Objects: s.Described.Counts(), Refused: append([]string{}, st.Refused...),
	}
	if st.Err != nil {
		d.Error = st.Err.Error()
	}
	return d
}

func toWritten(from []syncstore.Written) []api.Written {
	return converted(from, func(w syncstore.Written) api.Written {
		return api.Written{Prefix: w.Prefix, Cluster: w.Cluster, Entries: w.Wanted, Pending: w.Pending, Refused: w.Failed, LastError: w.Err}
	})
}
