package services

import (
	"cmp"
	"strings"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// A service that is exported through the MCS API is in each cluster that imports it under a derived name, and may not be
// there under its own. Clients know nothing of that: whatever protocol they speak, they mean it by its own name (mcs.md A).

// Find returns the service that clients mean by a name, of those that count (nil: all do); nil for none. Where the own cluster
// imports a service through the MCS API the name is that of the import, whatever else there is under it.
func (s *Services) Find(txn statedb.ReadTxn, namespace, name string, counts func(*Global) bool) (found *Global) {
	get := func(name string) *Global {
		if g, _, is := s.global.Get(txn, GlobalByName(namespace, name)); is && (counts == nil || counts(g)) {
			return g
		}
		return nil
	}
	if _, _, exported := s.exports.Get(txn, ExportsByName(namespace, name)); exported {
		if found = get(wire.DerivedServiceName(namespace, name)); found != nil && found.Local() != nil {
			return found
		}
	}
	return cmp.Or(get(name), found)
}

// derivedPrefix begins each [wire.DerivedServiceName].
const derivedPrefix = "derived-"

// ClientName is the name, without the namespace, by which clients know a service: for a derived one that under which
// it is exported. It is empty when they mean another service by it.
func (s *Services) ClientName(txn statedb.ReadTxn, g *Global) string {
	name := g.Name
	if strings.HasPrefix(name, derivedPrefix) {
		if e, _, is := s.exports.Get(txn, exportDerivedIndex.Query(g.FullName())); is {
			name = e.Name
		}
	}
	if meant := s.Find(txn, g.Namespace, name, nil); meant == nil || meant.Name != g.Name {
		return ""
	}
	return name
}
