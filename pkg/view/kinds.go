package view

import (
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Kind is one kind of object of a view.
type Kind string

// The kinds, with the type of their objects.
const (
	Clusters       Kind = "clusters"       // remotecluster.Status
	Nodes          Kind = "nodes"          // *nodes.Node
	Services       Kind = "services"       // *services.Global
	ServiceExports Kind = "serviceexports" // *services.Export
	Identities     Kind = "identities"     // *identities.Identity
	IPs            Kind = "ips"            // *ipcache.Entry, the winning claim of a prefix
	Conflicts      Kind = "conflicts"      // *findings.Conflict
	Events         Kind = "events"         // *findings.Event
	Health         Kind = "health"         // HealthItem
)

// Kinds returns all kinds, in the order in which a stream sends their states.
func Kinds() []Kind {
	return []Kind{Clusters, Nodes, Services, ServiceExports, Identities, IPs, Conflicts, Events, Health}
}

func indexOf(k Kind) int { return slices.Index(Kinds(), k) }

// Families returns the key families that a kind comes from. An absent object may exist in a cluster whose copy of them
// is not up to date. Empty: the kind comes from no family. The families are the one of the same name, those that add
// details to it, and for addresses also the nodes.
func Families(k Kind) (families []wire.Resource) {
	named := wire.Resource(k)
	for _, r := range wire.Resources() {
		if of := r.Describe().DetailOf; r == named || of != "" && of == named {
			families = append(families, r)
		}
	}
	if k == IPs {
		families = append(families, wire.Nodes)
	}
	return families
}

// kind has the functions of a view for one kind.
type kind struct {
	name   Kind
	follow func(v *View) (follower, error) // returns the follower of its changes
	key    func(object any) string         // identifies an object among those of its kind
	all    func(v *View, s *Snapshot) iter.Seq[any]
}

// allKinds is in the order of [Kinds].
func allKinds() []kind {
	return []kind{
		polledKind(Clusters, clusterKey, func(v *View) *polled[remotecluster.Status] {
			return &polled[remotecluster.Status]{all: v.Clusters, name: clusterKey, steady: steadyCluster, cost: clusterCost, revision: v.Reader.Revision}
		}),
		tableKind(Nodes, (*nodes.Node).Key, whole((*nodes.Node).Cost), func(v *View) statedb.Table[*nodes.Node] { return v.Nodes.Table() }),
		tableKind(Services, (*services.Global).FullName, (*services.Global).CostBeside, func(v *View) statedb.Table[*services.Global] { return v.Services.Global() }),
		tableKind(ServiceExports, (*services.Export).Key, whole((*services.Export).Cost), func(v *View) statedb.Table[*services.Export] { return v.Services.ServiceExports() }),
		tableKind(Identities, identityKey, whole((*identities.Identity).Cost), func(v *View) statedb.Table[*identities.Identity] { return v.Identities.Table() }),
		{
			name: IPs,
			follow: func(v *View) (follower, error) {
				return &ipFollower{ips: v.IPs, page: make([]ipcache.Change, 0, 1024), revision: v.IPs.Revision()}, nil
			},
			key: func(object any) string { return object.(*ipcache.Entry).Prefix().String() },
			all: func(_ *View, s *Snapshot) iter.Seq[any] { return Untyped(s.IPs.From(netip.Prefix{})) },
		},
		tableKind(Conflicts, (*findings.Conflict).Key, whole((*findings.Conflict).Cost), func(v *View) statedb.Table[*findings.Conflict] { return v.Findings.Conflicts() }),
		tableKind(Events, eventKey, whole((*findings.Event).Cost), func(v *View) statedb.Table[*findings.Event] { return v.Findings.Events() }),
		polledKind(Health, healthKey, func(v *View) *polled[HealthItem] {
			return &polled[HealthItem]{all: v.HealthItems, name: healthKey, cost: healthCost, steady: func(h HealthItem) any {
				h.LastSuccess = time.Time{} // it changes all the time
				return h
			}}
		}),
	}
}

// tableKind returns a kind whose objects are in a table, in the order of their keys.
func tableKind[T any](name Kind, key func(T) string, beside func(object, other T) int, table func(v *View) statedb.Table[T]) kind {
	return kind{
		name: name,
		// One follower for each table and process: one for each client would keep deleted objects alive.
		follow: func(v *View) (follower, error) {
			changes, err := tables.Follow(v.DB, table(v))
			return &tableFollower[T]{table: table(v), changes: changes, beside: beside}, err
		},
		key: func(object any) string { return key(object.(T)) },
		all: func(v *View, s *Snapshot) iter.Seq[any] { return Untyped(statedb.ToSeq(table(v).All(s.Txn))) },
	}
}

// whole returns the cost function for objects whose versions share no memory.
func whole[O any](cost func(*O) int) func(object, other *O) int {
	return func(object, _ *O) int {
		if object == nil {
			return 0
		}
		return cost(object)
	}
}

// polledKind returns a kind that is in no table.
func polledKind[T any](name Kind, key func(T) string, follow func(v *View) *polled[T]) kind {
	return kind{
		name:   name,
		follow: func(v *View) (follower, error) { return follow(v), nil },
		key:    func(object any) string { return key(object.(T)) },
		all:    func(_ *View, s *Snapshot) iter.Seq[any] { return Untyped(slices.Values(shown[T](s, name))) },
	}
}

// Untyped iterates over objects as type any, for a [Filter].
func Untyped[T any](from iter.Seq[T]) iter.Seq[any] {
	return func(yield func(any) bool) {
		for object := range from {
			if !yield(object) {
				return
			}
		}
	}
}

func clusterKey(c remotecluster.Status) string { return c.Name }

func identityKey(i *identities.Identity) string {
	return strconv.FormatUint(uint64(i.ID), 10) + "/" + i.Cluster
}

func eventKey(e *findings.Event) string { return strconv.FormatUint(e.ID, 10) }

func healthKey(h HealthItem) string { return h.Name }

// steadyCluster returns the part of a cluster's status that is compared to detect a change: without the fields that
// change all the time, such as the time until which a copy is confirmed.
func steadyCluster(c remotecluster.Status) any {
	steady := remotecluster.Status{
		Name: c.Name, ID: c.ID, State: c.State, Ready: c.Ready, Connected: c.Connected, Cached: c.Cached, Message: c.Message, Code: c.Code,
		EtcdClusterID: c.EtcdClusterID, ConfigFile: c.ConfigFile, ConfigHash: c.ConfigHash, Capabilities: c.Capabilities,
		Failures: c.Failures, LastFailure: c.LastFailure, LastError: c.LastError, ConnectedSince: c.ConnectedSince, Certificate: c.Certificate, Notices: c.Notices, ServerVersion: c.ServerVersion,
		Sources: make(map[wire.Resource]remotecluster.SourceStatus, len(c.Sources)),
	}
	steady.Endpoints = append(steady.Endpoints, c.Endpoints...) // an empty list equals none
	if c.Outlook != nil {
		o := *c.Outlook
		o.Evidence = disconnect.Evidence{Connected: o.Evidence.Connected, Error: o.Evidence.Error}
		steady.Outlook = &o
	}
	for r, src := range c.Sources {
		kept := remotecluster.SourceStatus{Synced: src.Synced, Count: src.Count, Rejected: src.Rejected, Freshness: src.Freshness, Why: src.Why}
		switch kept.Freshness.State {
		case remotecluster.FreshnessSynced:
			kept.Freshness.AsOf = time.Time{}
		case remotecluster.FreshnessUnknown:
			kept.Freshness.State = ""
		}
		if src.Rejected > 0 {
			kept.Rejections, kept.Example = src.Rejections, src.Example
		}
		steady.Sources[r] = kept
	}
	return steady
}

// Key returns the identifier of an object among those of its kind.
func (v *View) Key(k Kind, object any) string { return v.kinds[indexOf(k)].key(object) }
