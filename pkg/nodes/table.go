package nodes

import (
	"iter"
	"net/netip"
	"sync"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// TableName is the name of the table.
const TableName = "nodes"

var (
	// A cluster's name has no slash, so all its nodes have a common prefix in this index.
	primaryIndex = tables.TextIndex("name", true, (*Node).Key)
	addressIndex = statedb.Index[*Node, netip.Addr]{
		Name: "address",
		FromObject: func(n *Node) index.KeySet {
			keys := make([]index.Key, len(n.Addresses))
			for i := range n.Addresses {
				keys[i] = index.NetIPAddr(n.Addresses[i].IP)
			}
			return index.NewKeySet(keys...)
		},
		FromKey:    index.NetIPAddr,
		FromString: index.NetIPAddrString,
	}
)

// ByName finds the node of a cluster.
func ByName(cluster, name string) statedb.Query[*Node] { return ByKey(key(cluster, name)) }

// ByKey finds a node by "cluster/name".
func ByKey(key string) statedb.Query[*Node] { return primaryIndex.Query(key) }

// ByAddress finds the nodes that have the address. Pod networks of nodes are not searched; they are in the IP cache.
func ByAddress(ip netip.Addr) statedb.Query[*Node] { return addressIndex.Query(ip.Unmap()) }

// ByCluster iterates over the nodes of a cluster, in the order of their names.
func ByCluster(txn statedb.ReadTxn, t statedb.Table[*Node], cluster string) iter.Seq2[*Node, statedb.Revision] {
	return t.Prefix(txn, primaryIndex.Query(cluster+"/"))
}

// Nodes is the only writer of the nodes table.
type Nodes struct {
	db    *statedb.DB
	table statedb.RWTable[*Node]

	mu     sync.Mutex
	counts map[string]int // guarded by mu; number of nodes of each cluster with nodes
}

// New registers the table. It fails when the database already has a table of that name.
func New(db *statedb.DB) (*Nodes, error) {
	t, err := tables.New(db, TableName, (*Node).Key, primaryIndex, addressIndex)
	return &Nodes{db: db, table: t, counts: make(map[string]int)}, err
}

// Table returns the table for readers.
func (s *Nodes) Table() statedb.Table[*Node] { return s.table }

// Apply makes the changes visible in one transaction. If two sources have the same node, the stronger one keeps it: an
// update from a weaker one, or a deletion by another source, is ignored (wire.md §4.1, §4.3). A node that equals its
// table entry is not written again.
func (s *Nodes) Apply(changes []store.Change[Node]) {
	if len(changes) == 0 {
		return
	}
	txn := s.db.WriteTxn(s.table)
	defer txn.Abort()
	more := make(map[string]int)
	for _, ch := range changes {
		switch {
		case ch.New != nil:
			old, _, found := s.table.Get(txn, ByKey(ch.New.Key()))
			if found && (old.Equal(ch.New) || !ch.New.Source.MayReplace(old.Source)) {
				continue
			}
			_, _, err := s.table.Insert(txn, ch.New)
			tables.Must(err)
			if !found {
				more[ch.New.Cluster]++
			}
		case ch.Old != nil:
			if old, _, found := s.table.Get(txn, ByKey(ch.Old.Key())); found && old.Source == ch.Old.Source {
				_, _, err := s.table.Delete(txn, old)
				tables.Must(err)
				more[old.Cluster]--
			}
		}
	}
	txn.Commit()
	s.mu.Lock()
	defer s.mu.Unlock()
	for cluster, n := range more {
		if s.counts[cluster] += n; s.counts[cluster] == 0 {
			delete(s.counts, cluster)
		}
	}
}

// Count returns how many nodes of the cluster are in the table. It is cheap, since every session calls it often. It may
// be called by any goroutine.
func (s *Nodes) Count(cluster string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[cluster]
}
