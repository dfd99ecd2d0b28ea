package api

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/history"
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
	Agent    AgentInfo
	View     *view.View
	Gatherer prometheus.Gatherer
	LogLevel Level    // that of the agent's log
	Settings Settings // those in force, without secrets

	Asker       backends.Asker                       // for whom backends are chosen when a request does not say it
	Zone        string                               // of DNS, in which services have names
	Directory   clustermesh.MeshDirectory            // nil: no mesh directory is read
	Keys        Keys                                 // nil: nothing is known of single keys
	Leads       func() bool                          // nil: there is nothing to lead
	Writer      Writer                               // nil: nothing is written
	Written     func() []syncstore.Written           // nil: as without a Writer
	Stopped     func() (why codes.Code, text string) // why nothing is written for want of space, empty when it is; nil: it always is
	Missing     func() map[string]string             // by cluster, what is not synced of those without which it became ready; nil: nothing
	Serving     func() []Serving                     // servers of other protocols that read the view; nil: there are none
	XDSClients  func() *XDSClients                   // who follows xDS; nil, or its answer is: nobody can
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

// Serving is a server of another protocol that answers from the view.
type Serving struct {
	Protocol string `json:"protocol" doc:"The protocol, such as DNS."`
	Address  string `json:"address" doc:"The address of the listener."`
	Requests uint64 `json:"requests" doc:"The number of answered requests since the start."`
	Refused  uint64 `json:"refused" doc:"The number of requests and connections refused because of a limit or, by xDS, because not every cluster was known yet."`
}

// Description is what a source says of the own cluster.
type Description struct {
	Source  string         `json:"source" doc:"The directory of manifests, or the Kubernetes API."`
	Listed  bool           `json:"listed" doc:"Whether all objects that existed at the start are known."`
	AsOf    *time.Time     `json:"asOf" doc:"The time until which the description is known to equal the source; null when it was never read."`
	Error   string         `json:"error" doc:"Why the agent cannot read the source now; empty while it can."`
	Objects map[string]int `json:"objects" doc:"The number of objects of each kind."`
	Refused []string       `json:"refused" doc:"The objects of the source that the agent cannot use, and why."`
}

// Written is what the process keeps in the own kvstore below one prefix.
type Written struct {
	Prefix    string `json:"prefix"`
	Cluster   string `json:"cluster" doc:"The cluster whose entries they are."`
	Entries   int    `json:"entries" doc:"The number of wanted entries."`
	Pending   int    `json:"pending" doc:"The number of keys whose value in the kvstore is not yet the wanted one, or is not known."`
	Refused   int    `json:"refused" doc:"The number of pending keys that the kvstore has refused; each is retried."`
	LastError string `json:"lastError" doc:"The error of the latest refusal; empty when there is none."`
}

// description is that of the own cluster; nil without a source.
func (s *Server) description() *Description {
	if s.Described == nil {
		return nil
	}
	st := s.Described.State()
	d := &Description{
		Source: s.DescribedBy, Listed: st.Listed, AsOf: timeOrNull(st.AsOf), Objects: s.Described.Counts(), Refused: append([]string{}, st.Refused...),
	}
	if st.Err != nil {
		d.Error = st.Err.Error()
	}
	return d
}

func toWritten(from []syncstore.Written) []Written {
	return converted(from, func(w syncstore.Written) Written {
		return Written{Prefix: w.Prefix, Cluster: w.Cluster, Entries: w.Wanted, Pending: w.Pending, Refused: w.Failed, LastError: w.Err}
	})
}
