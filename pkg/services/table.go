package services

import (
	"iter"
	"strconv"
	"time"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"

	"github.com/mesh-agent/mesh-agent/internal/tables"
)

// The names of the tables.
const (
	TableName       = "services"
	SliceTableName  = "endpointslices"
	ExportTableName = "serviceexports"
	GlobalTableName = "global-services"
)

var (
	// A cluster's name has no slash, so its services are a range of this index.
	primaryIndex = statedb.Index[*Service, string]{
		Name:       "key",
		FromObject: func(s *Service) index.KeySet { return index.NewKeySet(tables.TextKey(s.Key())) },
		FromKey:    tables.TextKey,
		FromString: tables.TextKeyFromString,
		Unique:     true,
	}
	nameIndex = statedb.Index[*Service, string]{
		Name:       "name",
		FromObject: func(s *Service) index.KeySet { return index.NewKeySet(tables.TextKey(s.FullName())) },
		FromKey:    tables.TextKey,
		FromString: tables.TextKeyFromString,
	}
	sliceIndex = statedb.Index[*Slice, string]{
		Name:       "key",
		FromObject: func(s *Slice) index.KeySet { return index.NewKeySet(tables.TextKey(s.Key())) },
		FromKey:    tables.TextKey,
		FromString: tables.TextKeyFromString,
		Unique:     true,
	}
	sliceServiceIndex = statedb.Index[*Slice, string]{
		Name: "service",
		FromObject: func(s *Slice) index.KeySet {
			if s.Service == "" {
				return index.NewKeySet()
			}
			return index.NewKeySet(tables.TextKey(key(s.Cluster, s.Namespace, s.Service)))
		},
		FromKey:    tables.TextKey,
		FromString: tables.TextKeyFromString,
	}
	exportIndex = statedb.Index[*Export, string]{
		Name:       "key",
		FromObject: func(e *Export) index.KeySet { return index.NewKeySet(tables.TextKey(e.Key())) },
		FromKey:    tables.TextKey,
		FromString: tables.TextKeyFromString,
		Unique:     true,
	}
	exportNameIndex = statedb.Index[*Export, string]{
		Name:       "name",
		FromObject: func(e *Export) index.KeySet { return index.NewKeySet(tables.TextKey(e.FullName())) },
		FromKey:    tables.TextKey,
		FromString: tables.TextKeyFromString,
	}
	globalIndex = statedb.Index[*Global, string]{
		Name:       "name",
		FromObject: func(g *Global) index.KeySet { return index.NewKeySet(tables.TextKey(g.FullName())) },
		FromKey:    tables.TextKey,
		FromString: tables.TextKeyFromString,
		Unique:     true,
	}
)

// ByKey finds what a cluster says of a service.
func ByKey(cluster, namespace, name string) statedb.Query[*Service] {
	return primaryIndex.Query(key(cluster, namespace, name))
}

// ByName finds what all clusters say of a service.
func ByName(namespace, name string) statedb.Query[*Service] {
	return nameIndex.Query(fullName(namespace, name))
}

// ByCluster iterates over the services of a cluster, in the order of their
// namespaces and names.
func ByCluster(txn statedb.ReadTxn, t statedb.Table[*Service], cluster string) iter.Seq2[*Service, statedb.Revision] {
	return t.Prefix(txn, primaryIndex.Query(cluster+"/"))
}

// SliceByKey finds an endpoint slice by its own name.
func SliceByKey(cluster, namespace, name string) statedb.Query[*Slice] {
	return sliceIndex.Query(key(cluster, namespace, name))
}

// SlicesByService finds the endpoint slices that a cluster has of a service.
func SlicesByService(cluster, namespace, service string) statedb.Query[*Slice] {
	return sliceServiceIndex.Query(key(cluster, namespace, service))
}

// SlicesByCluster iterates over the endpoint slices of a cluster, in the order
// of their namespaces and names.
func SlicesByCluster(txn statedb.ReadTxn, t statedb.Table[*Slice], cluster string) iter.Seq2[*Slice, statedb.Revision] {
	return t.Prefix(txn, sliceIndex.Query(cluster+"/"))
}

// ExportByKey finds the export of a service by a cluster.
func ExportByKey(cluster, namespace, name string) statedb.Query[*Export] {
	return exportIndex.Query(key(cluster, namespace, name))
}

// ExportsByName finds the exports of a service by all clusters.
func ExportsByName(namespace, name string) statedb.Query[*Export] {
	return exportNameIndex.Query(fullName(namespace, name))
}

// GlobalByName finds the global service.
func GlobalByName(namespace, name string) statedb.Query[*Global] {
	return globalIndex.Query(fullName(namespace, name))
}

// TableHeader implements [statedb.TableWritable].
func (*Service) TableHeader() []string {
	return []string{"Cluster", "Namespace", "Name", "Shared", "Backends", "Source"}
}

// TableRow implements [statedb.TableWritable].
func (s *Service) TableRow() []string {
	return []string{
		s.Cluster, s.Namespace, s.Name, strconv.FormatBool(s.Shared),
		strconv.Itoa(len(s.Backends)), s.Source.String(),
	}
}

// TableHeader implements [statedb.TableWritable].
func (*Slice) TableHeader() []string {
	return []string{"Cluster", "Namespace", "Name", "Service", "Endpoints", "Source"}
}

// TableRow implements [statedb.TableWritable].
func (s *Slice) TableRow() []string {
	return []string{
		s.Cluster, s.Namespace, s.Name, s.Service,
		strconv.Itoa(s.NumEndpoints()), s.Source.String(),
	}
}

// TableHeader implements [statedb.TableWritable].
func (*Export) TableHeader() []string {
	return []string{"Cluster", "Namespace", "Name", "Type", "Affinity", "Created"}
}

// TableRow implements [statedb.TableWritable].
func (e *Export) TableRow() []string {
	return []string{e.Cluster, e.Namespace, e.Name, e.Type, e.SessionAffinity(), e.Created.Format(time.RFC3339)}
}

// TableHeader implements [statedb.TableWritable].
func (*Global) TableHeader() []string {
	return []string{"Namespace", "Name", "Shared", "Clusters", "Backends", "Affinity"}
}

// TableRow implements [statedb.TableWritable].
func (g *Global) TableRow() []string {
	return []string{
		g.Namespace, g.Name, strconv.FormatBool(g.Shared()),
		strconv.Itoa(len(g.Parts)), strconv.Itoa(g.NumBackends()), g.Affinity(),
	}
}
