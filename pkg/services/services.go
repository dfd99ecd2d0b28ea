package services

import (
	"errors"
	"slices"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/store/objects"
)

// Services is the only writer of the tables.
type Services struct {
	db       *statedb.DB
	exported statedb.RWTable[*Service]
	slices   statedb.RWTable[*Slice]
	exports  *objects.Table[Export]
	global   statedb.RWTable[*Global]
	filters  map[string]filter // by cluster, without those in full use; the write transaction guards it
	judge    Judge             // of the backends of remote clusters; nil for none
}

// New registers the tables. It fails when the database already has a table of one of the names.
func New(db *statedb.DB) (*Services, error) {
	s := &Services{db: db, filters: make(map[string]filter)}
	var errs [4]error
	s.exported, errs[0] = tables.New(db, TableName, (*Service).Key, primaryIndex, nameIndex)
	s.slices, errs[1] = tables.New(db, SliceTableName, (*Slice).Key, sliceIndex, sliceServiceIndex)
	s.exports, errs[2] = objects.New(db, ExportTableName, (*Export).Key, (*Export).Equal, exportNameIndex, exportDerivedIndex)
	s.global, errs[3] = tables.New(db, GlobalTableName, (*Global).FullName, globalIndex)
	return s, errors.Join(errs[:]...)
}

// Exported returns the table of services as each cluster exports them in the older form, including those that are not
// shared.
func (s *Services) Exported() statedb.Table[*Service] { return s.exported }

// Slices returns the table of endpoint slices as each cluster exports them.
func (s *Services) Slices() statedb.Table[*Slice] { return s.slices }

// ServiceExports returns the table of services as each cluster exports them through the MCS API.
func (s *Services) ServiceExports() statedb.Table[*Export] { return s.exports.Rows() }

// Global returns the table of global services.
func (s *Services) Global() statedb.Table[*Global] { return s.global }

// Apply makes the changes of services visible in the tables in one transaction. Objects that equal those in the tables
// are not written again.
func (s *Services) Apply(changes []store.Change[Service]) {
	if len(changes) == 0 {
		return
	}
	s.write(func(txn statedb.WriteTxn, t *touched) {
		for _, ch := range changes {
			if one, _, changed := objects.Replace(txn, s.exported, (*Service).Equal, ch); changed {
				t.add(one.Cluster, one.Namespace, one.Name)
			}
		}
	})
}

// ApplySlices is Apply for endpoint slices. A slice may move from one service to another.
func (s *Services) ApplySlices(changes []store.Change[Slice]) {
	if len(changes) == 0 {
		return
	}
	s.write(func(txn statedb.WriteTxn, t *touched) {
		for _, ch := range changes {
			one, before, changed := objects.Replace(txn, s.slices, (*Slice).Equal, ch)
			if !changed {
				continue
			}
			t.addSlice(one)
			if before != nil && before.Service != one.Service {
				t.addSlice(before)
			}
		}
	})
}

// ApplyExports makes the changes of exports visible in one transaction. Objects that equal those in the table are not
// written again.
func (s *Services) ApplyExports(changes []store.Change[Export]) { s.exports.Apply(changes) }

// Withhold excludes the backends of a cluster from use, or includes them again. It is a filter on merging: the tables
// of services and of slices do not change, and the cluster's parts stay listed with the reason. It stays in effect
// until it is reversed, even when the cluster has no services for a while.
func (s *Services) Withhold(cluster string, yes bool) {
	s.change(cluster, func(f *filter) { f.withheld = yes })
}

// SetUse sets how the backends of a cluster are used: [Full], [Demoted] or [Withdrawn]. It is a filter like
// [Services.Withhold], which has priority.
func (s *Services) SetUse(cluster string, to BackendUse) {
	s.change(cluster, func(f *filter) { f.policy = to })
}

// filter has the decisions about the backends of a cluster: that of the policy, and whether there is no contact.
type filter struct {
	policy   BackendUse
	withheld bool
}

// change changes the filter of a cluster, and merges every service of the cluster again.
func (s *Services) change(cluster string, change func(*filter)) {
	s.write(func(txn statedb.WriteTxn, t *touched) {
		f := s.filters[cluster]
		if change(&f); f == s.filters[cluster] {
			return
		}
		if s.filters[cluster] = f; f == (filter{}) {
			delete(s.filters, cluster)
		}
		for one := range ByCluster(txn, s.exported, cluster) {
			t.add(cluster, one.Namespace, one.Name)
		}
		for one := range SlicesByCluster(txn, s.slices, cluster) {
			t.addSlice(one)
		}
	})
}

// write runs one transaction on all tables except that of exports. It applies all changes first and then merges the
// services that they touched: after reading an index, the transaction can no longer change nodes in place.
func (s *Services) write(change func(statedb.WriteTxn, *touched)) {
	txn := s.db.WriteTxn(s.exported, s.slices, s.global)
	defer txn.Abort()
	var t touched
	change(txn, &t)
	for _, of := range t.services {
		s.merge(txn, of)
	}
	txn.Commit()
}

// touched collects the services that have to be merged again.
type touched struct {
	services []service
	position map[string]int // in services, by full name
}

// service is the name of a service, with the clusters in which it changed.
type service struct {
	namespace, name string
	clusters        []string
}

func (t *touched) add(cluster, namespace, name string) {
	full := fullName(namespace, name)
	i, known := t.position[full]
	if !known {
		if t.position == nil {
			t.position = make(map[string]int)
		}
		t.position[full] = len(t.services)
		t.services = append(t.services, service{namespace, name, []string{cluster}})
		return
	}
	if of := &t.services[i]; !slices.Contains(of.clusters, cluster) {
		of.clusters = append(of.clusters, cluster)
	}
}

// addSlice adds the service of a slice, if it belongs to one.
func (t *touched) addSlice(s *Slice) {
	if s.Service != "" {
		t.add(s.Cluster, s.Namespace, s.Service)
	}
}

// merge updates a global service.
func (s *Services) merge(txn statedb.WriteTxn, of service) {
	old, _, found := s.global.Get(txn, GlobalByName(of.namespace, of.name))
	merged := Merge(s.parts(txn, of, old))
	switch {
	case merged == nil && found:
		_, _, err := s.global.Delete(txn, old)
		tables.Must(err)
	case merged != nil && !(found && slices.Equal(old.Parts, merged.Parts)):
		_, _, err := s.global.Insert(txn, merged)
		tables.Must(err)
	}
}

// parts makes the parts of the clusters in which the service changed, and reuses the others from the old global
// service. Without an old one, no other cluster offers the service: they have at most entries that are not shared.
func (s *Services) parts(txn statedb.WriteTxn, of service, old *Global) []*Service {
	var parts []*Service
	if old != nil {
		parts = slices.DeleteFunc(slices.Clone(old.Parts), func(p *Service) bool { return slices.Contains(of.clusters, p.Cluster) })
	} else {
		for e := range s.exported.List(txn, ByName(of.namespace, of.name)) {
			if !slices.Contains(of.clusters, e.Cluster) {
				parts = append(parts, s.part(txn, e.Cluster, of))
			}
		}
	}
	for _, cluster := range of.clusters {
		p := s.part(txn, cluster, of)
		if p == nil {
			continue
		}
		if was := old.Part(cluster); was != nil && was.Equal(p) {
			p = was
		}
		parts = append(parts, p)
	}
	return parts
}

func (s *Services) part(txn statedb.WriteTxn, cluster string, of service) *Service {
	entry, _, _ := s.exported.Get(txn, ByKey(cluster, of.namespace, of.name))
	use := s.filters[cluster].policy
	if s.filters[cluster].withheld {
		use = Withheld
	}
	return s.judged(part(entry, statedb.Collect(s.slices.List(txn, SlicesByService(cluster, of.namespace, of.name))), use))
}
