package clustermesh

import (
	"errors"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Tables are the tables of one database that clusters are read into, with what writes them.
type Tables struct {
	DB         *statedb.DB
	Nodes      *nodes.Nodes
	Services   *services.Services
	Identities *allocator.Identities
	IPs        *ipcache.Cache
}

// NewTables returns empty tables in the database, beside this cache of addresses.
func NewTables(db *statedb.DB, ips *ipcache.Cache) (*Tables, error) {
	t := &Tables{DB: db, IPs: ips}
	var errs [3]error
	t.Nodes, errs[0] = nodes.New(db)
	t.Services, errs[1] = services.New(db)
	t.Identities, errs[2] = allocator.New(db)
	return t, errors.Join(errs[:]...)
}
