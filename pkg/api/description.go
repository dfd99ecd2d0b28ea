package api

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
)

// Described is the description of the own cluster.
type Described interface {
	// State says how well it is known, Counts how many objects it has of each kind.
	State() local.State
	Counts() map[string]int
}

// Description is what a source says of the own cluster.
type Description struct {
	Source  string         `json:"source" doc:"The directory of manifests, or the Kubernetes API."`
	Listed  bool           `json:"listed" doc:"All that was there at the start is known."`
	AsOf    *time.Time     `json:"asOf" doc:"Until when it is known to be what the source says; null when it never was."`
	Error   string         `json:"error" doc:"Why it may have moved on since; empty while the source is followed."`
	Objects map[string]int `json:"objects" doc:"How many there are of each kind."`
	Refused []string       `json:"refused" doc:"What the source says that cannot be used, and why."`
}

// Written is what the process keeps in the own kvstore below one prefix.
type Written struct {
	Prefix    string `json:"prefix"`
	Cluster   string `json:"cluster" doc:"Whose entries they are."`
	Entries   int    `json:"entries" doc:"How many there should be."`
	Pending   int    `json:"pending" doc:"How many keys are not as they should be yet, or are not known to be."`
	Refused   int    `json:"refused" doc:"How many of them the kvstore has refused; each is tried again."`
	LastError string `json:"lastError" doc:"Why, of the latest; empty when all is well."`
}

// description is that of the own cluster; nil without a source.
func (s *Server) description() *Description {
	if s.Described == nil {
		return nil
	}
	st := s.Described.State()
	d := &Description{
		Source: s.DescribedBy, Listed: st.Listed, AsOf: timeOrNull(st.AsOf), Objects: s.Described.Counts(), Refused: orEmpty(st.Refused),
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
