package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/diagnose/history"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// Writer is the writer to the own cluster's kvstore.
type Writer interface {
	// Status returns the known status of the session, without a request to etcd.
	Status() kvstore.Status
}

// Level is the level of a log.
type Level interface {
	Get() string
	Set(level string) error
}

// Params are what a server reads. Agent, View, Gatherer, LogLevel and Settings are required; a mode may have the
// others. Their methods may be called by any goroutine.
type Params struct {
	Agent    api.AgentInfo
	View     *view.View
	Gatherer prometheus.Gatherer
	LogLevel Level        // the level of the agent's log
	Settings api.Settings // the settings in force, without secrets

	Asker       backends.Asker                       // the client for whom backends are chosen, unless the request names another
	Zone        string                               // DNS zone of the names of services
	Leads       func() bool                          // nil: the mode has no leader
	Writer      Writer                               // nil: nothing is written
	Written     func() []syncstore.Written           // nil without a Writer
	Stopped     func() (why codes.Code, text string) // why nothing is written because there is no space; empty while entries are written; nil: they always are
	Missing     func() map[string]string             // clusters without which the agent became ready, with the resources that are still not synced; nil: none
	Serving     func() []api.Serving                 // servers of other protocols that read the view; nil: none
	XDSClients  func() *api.XDSClients               // the xDS clients; nil, also its result: there is no xDS server
	History     *history.History                     // nil: no history
	Described   Described                            // nil: there is no description of the own cluster
	DescribedBy string                               // the source of the description, for users
}

// Described is the description of the own cluster.
type Described interface {
	// State returns the sync status, Counts the number of objects of each kind.
	State() local.State
	Counts() map[string]int
}

// description returns the description of the own cluster; nil without a source.
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
