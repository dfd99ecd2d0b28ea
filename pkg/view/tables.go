package view

import (
	"errors"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/findings"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
)

// Tables are the tables of one database that a view reads, with what writes them.
type Tables struct {
	*clustermesh.Tables
	Findings *findings.Findings
}

// NewTables returns empty tables in the database, beside this cache of addresses.
func NewTables(db *statedb.DB, ips *ipcache.Cache) (*Tables, error) {
	t, err := clustermesh.NewTables(db, ips)
	f, none := findings.New(db)
	return &Tables{t, f}, errors.Join(err, none)
}
