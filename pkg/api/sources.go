package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cilium/statedb"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/health"
	"github.com/mesh-agent/mesh-agent/internal/logging"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Mesh is what the server asks about the remote clusters. Its methods answer at
// once and may be called by any goroutine.
type Mesh interface {
	// Clusters describes every cluster at this moment, sorted by name.
	Clusters() []remotecluster.Status
	// Local describes the own cluster as it is read from its kvstore; false when
	// there is none.
	Local() (remotecluster.Status, bool)
	// Ready tells whether every configured cluster was synced once, or the sync
	// timeout has passed. Once true it stays true. The reasons say by cluster
	// what is waited for.
	Ready() (bool, map[string]string)
	// Announced describes the clusters that the mesh directory has at this moment and
	// Clusters has not, or has with another client file.
	Announced() []remotecluster.Status
	// Find tells what is known of one key of a cluster, by its name below the
	// resource's prefix; false for nothing. It may wait while a batch is read.
	Find(cluster string, r wire.Resource, name string) (store.Found, bool)
	// Ignored lists files of the mesh directory that cannot be a cluster's.
	Ignored() []clustermesh.Ignored
	// Revision grows with every change of a cluster's state; counts and
	// freshness move without it.
	Revision() uint64
}

// Writer is what writes to the own cluster's kvstore.
type Writer interface {
	// Status returns what is known about the session, without asking anybody.
	Status() kvstore.Status
}

// Sources is what a server reads. The first ones may be missing.
type Sources struct {
	Leads       func() bool                          // nil: there is nothing to lead
	Writer      Writer                               // nil: nothing is written
	Written     func() []syncstore.Written           // nil: as without a Writer
	Stopped     func() (why codes.Code, text string) // why nothing is written for want of space, empty when it is; nil: it always is
	Described   Described                            // nil: nobody describes the own cluster
	DescribedBy string                               // who does, in a person's words

	Agent          AgentInfo
	DB             *statedb.DB
	Mesh           Mesh
	Nodes          statedb.Table[*nodes.Node]
	Exported       statedb.Table[*services.Service]
	Slices         statedb.Table[*services.Slice]
	ServiceExports statedb.Table[*services.Export]
	Services       statedb.Table[*services.Global]
	Identities     statedb.Table[*allocator.Identity]
	Conflicts      statedb.Table[*findings.Conflict]
	Events         statedb.Table[*findings.Event]
	IPs            *ipcache.Cache
	Health         *health.Registry
	Gatherer       prometheus.Gatherer
	LogLevel       *logging.Level // that of the agent's log
	Settings       Settings       // those in force, without secrets
}

func (s *Sources) validate() error {
	if s.DB == nil || s.Mesh == nil || s.Nodes == nil || s.Exported == nil || s.Slices == nil || s.ServiceExports == nil ||
		s.Services == nil || s.Identities == nil || s.Conflicts == nil || s.Events == nil || s.IPs == nil || s.Health == nil || s.Gatherer == nil ||
		s.LogLevel == nil || s.Settings == nil {
		return errors.New("api: a source is missing")
	}
	return nil
}

// view is one consistent state of everything that is listed, at one position of the
// feed.
type view struct {
	moment
	// clusters is what the mesh said of them, by name, the own one included,
	// before the snapshot; nil unless the view is dated.
	clusters map[string]remotecluster.Status
}

// view takes a snapshot, of what no table holds only of those resources that it is to
// show. The cache's readers share a snapshot that may be some milliseconds old; here,
// one is waited for that has everything that was visible before, so that who was told
// of an address finds it. When ctx ends, nobody waits any more and any view will do.
func (s *Server) view(ctx context.Context, shows ...string) *view {
	var polled []int
	for i, f := range s.feed.followers {
		if f.polls() && slices.Contains(shows, s.watchables[i].title()) {
			polled = append(polled, i)
		}
	}
	for revision := s.IPs.Revision(); ; {
		m, ok := s.feed.at(s.now(), revision, polled)
		if ok || ctx.Err() != nil {
			return &view{moment: m}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}

// datedView is a view that knows how fresh it is. What the mesh says of its
// clusters is read first: what is known as of a moment is then in the snapshot.
func (s *Server) datedView(ctx context.Context, shows ...string) *view {
	clusters := s.clustersNow()
	v := s.view(ctx, shows...)
	v.clusters = clusters
	return v
}
