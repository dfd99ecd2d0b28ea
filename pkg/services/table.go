package services

import (
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"

	"github.com/mesh-agent/mesh-agent/internal/tables"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// The names of the tables.
const (
	TableName       = "services"
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

// GlobalByName finds the global service.
func GlobalByName(namespace, name string) statedb.Query[*Global] {
	return globalIndex.Query(fullName(namespace, name))
}

// Services is the one writer of the two tables.
type Services struct {
	db       *statedb.DB
	exported statedb.RWTable[*Service]
	global   statedb.RWTable[*Global]
}

// New registers the tables. It fails when the database has one of the names.
func New(db *statedb.DB) (*Services, error) {
	exported, err := statedb.NewTable(db, TableName, primaryIndex, nameIndex)
	if err != nil {
		return nil, fmt.Errorf("creating the table of services: %w", err)
	}
	global, err := statedb.NewTable(db, GlobalTableName, globalIndex)
	if err != nil {
		return nil, fmt.Errorf("creating the table of global services: %w", err)
	}
	return &Services{db: db, exported: exported, global: global}, nil
}

// Exported is the table of services as each cluster exports them, those that
// are not shared included.
func (s *Services) Exported() statedb.Table[*Service] { return s.exported }

// Global is the table of global services.
func (s *Services) Global() statedb.Table[*Global] { return s.global }

// Apply makes the changes visible in both tables, all at once. What the tables
// already have is not written again.
func (s *Services) Apply(changes []store.Change[Service]) {
	if len(changes) == 0 {
		return
	}
	txn := s.db.WriteTxn(s.exported, s.global)
	defer txn.Abort()
	// First all services, then all merges: reading an index in between would
	// cost the transaction its right to change nodes in place.
	for _, touched := range s.export(txn, changes) {
		s.merge(txn, touched)
	}
	txn.Commit()
}

// export updates the services and returns one of each name that changed.
func (s *Services) export(txn statedb.WriteTxn, changes []store.Change[Service]) []*Service {
	touched := make([]*Service, 0, len(changes))
	seen := make(map[string]struct{}, len(changes))
	for _, ch := range changes {
		svc, changed := s.change(txn, ch)
		if !changed {
			continue
		}
		name := svc.FullName()
		if _, ok := seen[name]; !ok {
			seen[name] = struct{}{}
			touched = append(touched, svc)
		}
	}
	return touched
}

func (s *Services) change(txn statedb.WriteTxn, ch store.Change[Service]) (svc *Service, changed bool) {
	switch {
	case ch.New != nil:
		old, _, found := s.exported.Get(txn, primaryIndex.QueryFromObject(ch.New))
		if found && old.Equal(ch.New) {
			return nil, false
		}
		_, _, err := s.exported.Insert(txn, ch.New)
		tables.Must(err)
		return ch.New, true
	case ch.Old != nil:
		_, changed, err := s.exported.Delete(txn, ch.Old)
		tables.Must(err)
		return ch.Old, changed
	}
	return nil, false
}

// merge brings the global service of that name up to date.
func (s *Services) merge(txn statedb.WriteTxn, of *Service) {
	old, _, found := s.global.Get(txn, GlobalByName(of.Namespace, of.Name))
	merged := Merge(statedb.Collect(s.exported.List(txn, ByName(of.Namespace, of.Name))))
	switch {
	case merged == nil && found:
		_, _, err := s.global.Delete(txn, old)
		tables.Must(err)
	case merged != nil && !(found && slices.Equal(old.Parts, merged.Parts)):
		_, _, err := s.global.Insert(txn, merged)
		tables.Must(err)
	}
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
