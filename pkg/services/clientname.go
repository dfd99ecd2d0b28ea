package services

import (
	"cmp"
	"strings"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// In each cluster that imports a service through the MCS API, the service has a derived name, and may not exist there
// under its own name. Clients do not use the derived name: in every protocol they ask for the service by its own name
// (mcs.md A).

// Find returns the service for a name that a client uses, of those that count (nil: all do); nil for none. Where the
// own cluster imports a service of this name through the MCS API, the name is that of the import, even if there is
// another service of this name.
func (s *Services) Find(txn statedb.ReadTxn, namespace, name string, counts func(*Global) bool) (found *Global) {
	get := func(name string) *Global {
		if g, _, is := s.global.Get(txn, GlobalByName(namespace, name)); is && (counts == nil || counts(g)) {
			return g
		}
		return nil
	}
	if _, _, exported := s.exports.Rows().Get(txn, ExportsByName(namespace, name)); exported {
		if found = get(wire.DerivedServiceName(namespace, name)); found != nil && found.Local() != nil {
			return found
		}
	}
	return cmp.Or(get(name), found)
}

// derivedPrefix is the prefix of each [wire.DerivedServiceName].
const derivedPrefix = "derived-"

// ClientName returns the name, without the namespace, that clients use for a service: for a derived one, the name under
// which it is exported. It is empty when this name leads clients to another service.
func (s *Services) ClientName(txn statedb.ReadTxn, g *Global) string {
	name := g.Name
	if strings.HasPrefix(name, derivedPrefix) {
		if e, _, is := s.exports.Rows().Get(txn, exportDerivedIndex.Query(g.FullName())); is {
			name = e.Name
		}
	}
	if meant := s.Find(txn, g.Namespace, name, nil); meant == nil || meant.Name != g.Name {
		return ""
	}
	return name
}
