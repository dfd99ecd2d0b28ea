package view

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Kind is one kind of object of a view.
type Kind string

// The kinds, with the type of their objects.
const (
	Clusters       Kind = "clusters"                // remotecluster.Status
	Nodes               = Kind(wire.Nodes)          // *nodes.Node
	Services            = Kind(wire.Services)       // *services.Global
	ServiceExports      = Kind(wire.ServiceExports) // *services.Export
	Identities          = Kind(wire.Identities)     // *identities.Identity
	IPs                 = Kind(wire.IPs)            // *ipcache.Entry, the winning claim of a prefix
	Conflicts      Kind = "conflicts"               // *findings.Conflict
	Events         Kind = "events"                  // *findings.Event
	Health         Kind = "health"                  // HealthItem
)

// Kinds returns all kinds, in the order in which a stream sends their states: the clusters, the key families that are
// not details of others, in their order, and the findings.
func Kinds() []Kind {
	families := wire.Resources()
	kinds := append(make([]Kind, 0, len(families)+4), Clusters)
	for _, r := range families {
		if r.Describe().DetailOf == "" {
			kinds = append(kinds, Kind(r))
		}
	}
	return append(kinds, Conflicts, Events, Health)
}

// indexOf returns the place of a kind in the order.
func (v *View) indexOf(k Kind) int {
	for i := range v.kinds {
		if v.kinds[i].name == k {
			return i
		}
	}
	return -1
}

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

// kindsOf returns the kinds of a view, in the order of [Kinds].
func kindsOf(v *View) ([]kind, error) {
	shown := v.Tables.Shown()
	var all []kind
	for _, name := range Kinds() {
		switch name {
		case Clusters:
			all = append(all, polledKind(name, clusterKey, func(v *View) *polled[remotecluster.Status] {
				return &polled[remotecluster.Status]{kind: name, all: v.Clusters, name: clusterKey, steady: steadyCluster, cost: clusterCost, revision: v.Reader.Revision}
			}))
		case IPs:
			all = append(all, kind{
				name: name,
				follow: func(v *View) (follower, error) {
					return &ipFollower{ips: v.IPs, page: make([]ipcache.Change, 0, 1024), revision: v.IPs.Revision()}, nil
				},
				key: func(object any) string { return object.(*ipcache.Entry).Prefix().String() },
				all: func(_ *View, s *Snapshot) iter.Seq[any] { return Untyped(s.IPs.From(netip.Prefix{})) },
			})
		case Health:
			all = append(all, polledKind(name, healthKey, func(v *View) *polled[HealthItem] {
				return &polled[HealthItem]{kind: name, all: v.HealthItems, name: healthKey, cost: healthCost, steady: func(h HealthItem) any {
					h.LastSuccess = time.Time{} // it changes all the time
					return h
				}}
			}))
		default:
			table := shown[string(name)]
			if table == nil {
				return nil, fmt.Errorf("view: no table has the %s", name)
			}
			all = append(all, tableKind(name, table))
		}
	}
	return all, nil
}

// tableKind returns a kind whose objects are in a table.
func tableKind(name Kind, table tables.Shown) kind {
	return kind{
		name: name,
		// One follower for each table and process: one for each client would keep deleted objects alive.
		follow: func(v *View) (follower, error) {
			changes, err := table.Follow(v.DB)
			return &tableFollower{table: table, changes: changes}, err
		},
		key: table.Key,
		all: func(_ *View, s *Snapshot) iter.Seq[any] { return table.All(s.Txn) },
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

func healthKey(h HealthItem) string { return h.Name }

// steadyCluster returns the part of a cluster's status that is compared to detect a change: without the fields that
// change all the time, such as the time until which a copy is confirmed.
func steadyCluster(c remotecluster.Status) any {
	steady := remotecluster.Status{
		Name: c.Name, ID: c.ID, State: c.State, Ready: c.Ready, Connected: c.Connected, Cached: c.Cached, Message: c.Message, Code: c.Code,
		EtcdClusterID: c.EtcdClusterID, ConfigFile: c.ConfigFile, ConfigHash: c.ConfigHash, Capabilities: c.Capabilities,
		Failures: c.Failures, LastFailure: c.LastFailure, LastError: c.LastError, ConnectedSince: c.ConnectedSince, Certificate: c.Certificate, Notices: c.Notices, ServerVersion: c.ServerVersion,
		Families: make(map[wire.Resource]remotecluster.FamilyStatus, len(c.Families)),
	}
	steady.Endpoints = append(steady.Endpoints, c.Endpoints...) // an empty list equals none
	if c.Forecast != nil {
		o := *c.Forecast
		o.Evidence = disconnect.Evidence{Connected: o.Evidence.Connected, Error: o.Evidence.Error}
		steady.Forecast = &o
	}
	for r, src := range c.Families {
		kept := remotecluster.FamilyStatus{Synced: src.Synced, Count: src.Count, Rejected: src.Rejected, Freshness: src.Freshness, Why: src.Why}
		switch kept.Freshness.State {
		case remotecluster.FreshnessSynced:
			kept.Freshness.AsOf = time.Time{}
		case remotecluster.FreshnessUnknown:
			kept.Freshness.State = ""
		}
		if src.Rejected > 0 {
			kept.Rejections, kept.Example = src.Rejections, src.Example
		}
		steady.Families[r] = kept
	}
	return steady
}

// Key returns the identifier of an object among those of its kind.
func (v *View) Key(k Kind, object any) string { return v.kinds[v.indexOf(k)].key(object) }
