package view

import (
	"errors"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// Tables are the tables of one database that a view reads, with what writes them.
type Tables struct {
	DB         *statedb.DB
	Nodes      *nodes.Nodes
	Services   *services.Services
	Identities *allocator.Identities
	Findings   *findings.Findings
	IPs        *ipcache.Cache
}

// NewTables returns empty tables in the database, beside this cache of addresses.
func NewTables(db *statedb.DB, ips *ipcache.Cache) (*Tables, error) {
	t := &Tables{DB: db, IPs: ips}
	var errs [4]error
	t.Nodes, errs[0] = nodes.New(db)
	t.Services, errs[1] = services.New(db)
	t.Identities, errs[2] = allocator.New(db)
	t.Findings, errs[3] = findings.New(db)
	return t, errors.Join(errs[:]...)
}

// Sources has the tables as a view reads them; what is known of the clusters is to be
// added.
func (t *Tables) Sources() Sources {
	return Sources{
		DB: t.DB, Nodes: t.Nodes.Table(), Exported: t.Services.Exported(), Slices: t.Services.Slices(), ServiceExports: t.Services.ServiceExports(),
		Services: t.Services.Global(), Identities: t.Identities.Table(), Conflicts: t.Findings.Conflicts(), Events: t.Findings.Events(), IPs: t.IPs,
	}
}

// Derived has the tables as the detectors of conflicts and events read them; what is
// known of the clusters is to be added.
func (t *Tables) Derived() findings.Sources {
	return findings.Sources{
		DB: t.DB, IPs: t.IPs, Nodes: t.Nodes.Table(), Services: t.Services.Global(), Exports: t.Services.ServiceExports(), Identities: t.Identities.Table(),
	}
}
