package view

import (
	"net/netip"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/backends"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Found is the result of the lookup of an address.
type Found struct {
	// Found has the claims, the winning one first; without any, no cluster claims the address.
	ipcache.Found
	// Identity and Node are those of the winning claim; nil when they are not known, or
	// the identity is a reserved one.
	Identity *identities.Identity
	Node     *nodes.Node
	// Services have the address as a backend in use.
	Services []*services.Global
	// Freshness is that of the key family of the winning claim; its zero value when it is unknown.
	Freshness remotecluster.Freshness
	// Snapshot has the tables that were read, and the status of the clusters; it has no position and no addresses.
	Snapshot *Snapshot
}

// Winner returns the claim that counts; nil when no cluster claims the address.
func (f *Found) Winner() *ipcache.Entry {
	if len(f.Claims) == 0 {
		return nil
	}
	return f.Claims[0]
}

// Lookup finds the cluster and the objects to which an address belongs.
func (v *View) Lookup(addr netip.Addr) Found {
	addr = addr.Unmap()
	known := v.ClustersByName() // before the claims: so these are at least as fresh as the status reports
	f := Found{Found: v.IPs.Lookup(addr)}
	// The index is not older than the claims: it has the objects that they refer to, once these were published.
	txn, with := v.byAddress.Find(addr)
	f.Services, f.Snapshot = with, &Snapshot{Txn: txn, Known: known}
	winner := f.Winner()
	if winner == nil {
		return f
	}
	f.Identity, f.Node = v.IdentityOf(txn, winner), v.nodeOf(txn, winner)
	if c, is := known[winner.Cluster().Name]; is {
		f.Freshness = c.Families[FamilyOf(winner)].Freshness
	}
	return f
}

// IdentityOf finds the identity of an entry: in its own cluster, or else any identity that has this number. Reserved
// identities are in no table.
func (v *View) IdentityOf(txn statedb.ReadTxn, e *ipcache.Entry) *identities.Identity {
	if _, reserved := wire.ReservedIdentityName(e.Identity()); reserved {
		return nil
	}
	var found *identities.Identity
	for i := range identities.ByID(txn, v.Identities.Table(), e.Identity()) {
		if found == nil || i.Cluster == e.Cluster().Name {
			found = i
		}
	}
	return found
}

// nodeOf finds the node that hosts an entry.
func (v *View) nodeOf(txn statedb.ReadTxn, e *ipcache.Entry) *nodes.Node {
	cluster := e.Cluster().Name
	if name := e.NodeName(); name != "" {
		if n, _, found := v.Nodes.Table().Get(txn, nodes.ByName(cluster, name)); found {
			return n
		}
	}
	if !e.HostIP().IsValid() {
		return nil
	}
	for n := range v.Nodes.Table().List(txn, nodes.ByAddress(e.HostIP())) {
		if n.Cluster == cluster {
			return n
		}
	}
	return nil
}

// WithIdentities returns the addresses of a snapshot that have one of these identities,
// in their order; false when there are more than limit.
func (v *View) WithIdentities(s *Snapshot, identities []uint32, limit int) ([]*ipcache.Entry, bool) {
	return v.byIdentity.Find(s.IPs, identities, limit)
}

// Pod returns the pod of an address according to the claim of its cluster, if that claim counts: a [backends.Pods].
func (v *View) Pod(cluster string, addr netip.Addr) backends.Pod {
	e := v.IPs.LookupWinner(addr)
	if e == nil || !e.Prefix().IsSingleIP() || e.Cluster().Name != cluster || e.Pod() == "" {
		return backends.Pod{}
	}
	return backends.Pod{Namespace: e.Namespace(), Name: e.Pod(), Identity: e.Identity(), Host: e.HostIP()}
}
