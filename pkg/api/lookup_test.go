package api

import (
	"iter"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// walked counts who looks at every service.
type walked struct {
	statedb.Table[*services.Global]
	times atomic.Int32
}

func (w *walked) All(txn statedb.ReadTxn) iter.Seq2[*services.Global, statedb.Revision] {
	w.times.Add(1)
	return w.Table.All(txn)
}

// TestALookupDoesNotLookAtEveryService: only the first one does, and each finds
// what has changed since the one before.
func TestALookupDoesNotLookAtEveryService(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	table := &walked{Table: f.View.Services}
	tables := f.View.Sources
	tables.Services = table
	v, err := view.New(tables)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Close)
	sources := f.Sources
	sources.View = v
	server, err := NewServer(sources, f.log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	f.Server = server
	expect := func(want ...ServiceName) {
		t.Helper()
		if found := object[Lookup](t, f, "/v1/lookup/10.2.0.1").Services; !slices.Equal(found, want) {
			t.Errorf("the services are %v, want %v", found, want)
		}
	}
	expect()
	before := table.times.Load()
	with := func(name string, addrs ...string) *services.Service {
		s := &services.Service{Cluster: "c2", ClusterID: 2, Namespace: "ns", Name: name, Source: wire.SourceClusterMesh, Shared: true}
		for _, a := range addrs {
			s.Backends = append(s.Backends, services.Backend{IP: ip(a)})
		}
		return s
	}
	f.services.Apply(created(with("web", "10.2.0.1"), with("other", "10.2.0.2")))
	expect(ServiceName{"ns", "web"})
	f.services.Apply(created(with("db", "10.2.0.1", "10.2.0.3")))
	expect(ServiceName{"ns", "db"}, ServiceName{"ns", "web"})
	f.services.Apply(created(with("web", "10.2.0.4")))
	expect(ServiceName{"ns", "db"})
	if walks := table.times.Load() - before; walks != 0 {
		t.Errorf("lookups have looked at every service %d times", walks)
	}
}
