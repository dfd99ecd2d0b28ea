package services

import (
	"iter"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/store/objects"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Names of the tables.
const (
	TableName       = "services"
	SliceTableName  = "endpointslices"
	ExportTableName = "serviceexports"
	GlobalTableName = "global-services"
)

var (
	// A cluster's name has no slash, so all its services have a common prefix in this index.
	primaryIndex       = tables.TextIndex("key", true, (*Service).Key)
	nameIndex          = tables.TextIndex("name", false, (*Service).FullName)
	sliceIndex         = tables.TextIndex("key", true, (*Slice).Key)
	sliceServiceIndex  = tables.TextIndex("service", false, (*Slice).serviceKey)
	exportNameIndex    = tables.TextIndex("name", false, (*Export).FullName)
	exportDerivedIndex = tables.TextIndex("derived", false, func(e *Export) string { return fullName(e.Namespace, wire.DerivedServiceName(e.Namespace, e.Name)) })
	globalIndex        = tables.TextIndex("name", true, (*Global).FullName)
)

// ByKey finds a cluster's service.
func ByKey(cluster, namespace, name string) statedb.Query[*Service] {
	return primaryIndex.Query(key(cluster, namespace, name))
}

// ByName finds the services of this name in all clusters.
func ByName(namespace, name string) statedb.Query[*Service] {
	return nameIndex.Query(fullName(namespace, name))
}

// ByCluster iterates over the services of a cluster, by namespace and name.
func ByCluster(txn statedb.ReadTxn, t statedb.Table[*Service], cluster string) iter.Seq2[*Service, statedb.Revision] {
	return t.Prefix(txn, primaryIndex.Query(cluster+"/"))
}

// SliceByKey finds an endpoint slice by its own name.
func SliceByKey(cluster, namespace, name string) statedb.Query[*Slice] {
	return sliceIndex.Query(key(cluster, namespace, name))
}

// SlicesByService finds the endpoint slices of a service in a cluster.
func SlicesByService(cluster, namespace, service string) statedb.Query[*Slice] {
	return sliceServiceIndex.Query(key(cluster, namespace, service))
}

// SlicesByCluster iterates over the endpoint slices of a cluster, by namespace and name.
func SlicesByCluster(txn statedb.ReadTxn, t statedb.Table[*Slice], cluster string) iter.Seq2[*Slice, statedb.Revision] {
	return t.Prefix(txn, sliceIndex.Query(cluster+"/"))
}

// ExportByKey finds the export of a service by a cluster.
func ExportByKey(cluster, namespace, name string) statedb.Query[*Export] {
	return objects.ByKey[Export](key(cluster, namespace, name))
}

// ExportsByName finds the exports of a service by all clusters.
func ExportsByName(namespace, name string) statedb.Query[*Export] {
	return exportNameIndex.Query(fullName(namespace, name))
}

// GlobalByName finds the global service.
func GlobalByName(namespace, name string) statedb.Query[*Global] {
	return globalIndex.Query(fullName(namespace, name))
}

// GlobalByNamespace iterates over the global services of a namespace, by name.
func GlobalByNamespace(txn statedb.ReadTxn, t statedb.Table[*Global], namespace string) iter.Seq[*Global] {
	return statedb.ToSeq(t.Prefix(txn, globalIndex.Query(namespace+"/")))
}
