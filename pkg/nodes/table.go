package nodes

import (
	"fmt"
	"iter"
	"net/netip"
	"strconv"
	"strings"

	"github.com/cilium/statedb"
	"github.com/cilium/statedb/index"

	"github.com/mesh-agent/mesh-agent/internal/tables"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// TableName is the name of the table.
const TableName = "nodes"

var (
	// A cluster's name has no slash, so its nodes are a range of this index.
	primaryIndex = statedb.Index[*Node, string]{
		Name:       "name",
		FromObject: func(n *Node) index.KeySet { return index.NewKeySet(tables.TextKey(n.Key())) },
		FromKey:    tables.TextKey,
		FromString: tables.TextKeyFromString,
		Unique:     true,
	}
	addressIndex = statedb.Index[*Node, netip.Addr]{
		Name:       "address",
		FromObject: addressKeys,
		FromKey:    index.NetIPAddr,
		FromString: index.NetIPAddrString,
	}
)

func addressKeys(n *Node) index.KeySet {
	keys := make([]index.Key, len(n.Addresses))
	for i := range n.Addresses {
		keys[i] = index.NetIPAddr(n.Addresses[i].IP)
	}
	return index.NewKeySet(keys...)
}

// ByName finds the node of a cluster.
func ByName(cluster, name string) statedb.Query[*Node] { return ByKey(key(cluster, name)) }

// ByKey finds a node by "cluster/name".
func ByKey(key string) statedb.Query[*Node] { return primaryIndex.Query(key) }

// ByAddress finds the nodes that have the address. The network that a node's
// pods live in is not among them; the IP cache knows that.
func ByAddress(ip netip.Addr) statedb.Query[*Node] { return addressIndex.Query(ip.Unmap()) }

// ByCluster iterates over the nodes of a cluster, in the order of their names.
func ByCluster(txn statedb.ReadTxn, t statedb.Table[*Node], cluster string) iter.Seq2[*Node, statedb.Revision] {
	return t.Prefix(txn, primaryIndex.Query(cluster+"/"))
}

// Nodes is the one writer of the nodes table.
type Nodes struct {
	db     *statedb.DB
	table  statedb.RWTable[*Node]
	counts counts
}

// New registers the table. It fails when the database has one of that name.
func New(db *statedb.DB) (*Nodes, error) {
	t, err := statedb.NewTable(db, TableName, primaryIndex, addressIndex)
	if err != nil {
		return nil, fmt.Errorf("creating the table of nodes: %w", err)
	}
	return &Nodes{db: db, table: t}, nil
}

// Table is the readers' side.
func (s *Nodes) Table() statedb.Table[*Node] { return s.table }

// Apply makes the changes visible, all at once. Of two sources that know the
// same node the stronger one keeps it: a weaker one's update, or a deletion by
// another source, is ignored (wire.md §4.1, §4.3). What the table already has
// is not written again.
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
			more[ch.New.Cluster] += s.put(txn, ch.New)
		case ch.Old != nil:
			more[ch.Old.Cluster] -= s.remove(txn, ch.Old)
		}
	}
	txn.Commit()
	s.counts.add(more)
}

// put returns how many nodes it has added.
func (s *Nodes) put(txn statedb.WriteTxn, n *Node) int {
	old, _, found := s.table.Get(txn, ByKey(n.Key()))
	if found && (old.Equal(n) || !n.Source.MayReplace(old.Source)) {
		return 0
	}
	_, _, err := s.table.Insert(txn, n)
	tables.Must(err)
	if found {
		return 0
	}
	return 1
}

// remove returns how many nodes it has removed.
func (s *Nodes) remove(txn statedb.WriteTxn, n *Node) int {
	old, _, found := s.table.Get(txn, ByKey(n.Key()))
	if !found || old.Source != n.Source {
		return 0
	}
	_, _, err := s.table.Delete(txn, n)
	tables.Must(err)
	return 1
}

// TableHeader implements [statedb.TableWritable].
func (*Node) TableHeader() []string {
	return []string{"Cluster", "Name", "Addresses", "PodCIDRs", "EncryptionKey", "Source"}
}

// TableRow implements [statedb.TableWritable].
func (n *Node) TableRow() []string {
	addresses := make([]string, len(n.Addresses))
	for i, a := range n.Addresses {
		addresses[i] = a.Type + ":" + a.IP.String()
	}
	cidrs := make([]string, len(n.PodCIDRs))
	for i, p := range n.PodCIDRs {
		cidrs[i] = p.String()
	}
	return []string{
		n.Cluster, n.Name, strings.Join(addresses, ", "), strings.Join(cidrs, ", "),
		strconv.Itoa(int(n.EncryptionKey)), n.Source.String(),
	}
}
