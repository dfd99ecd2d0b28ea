package agents

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/own/register"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Member is a node of a cluster without Cilium. It writes itself and its pods to the kvstore of its cluster, and allocates
// the identities of its pods.
type Member struct {
	Name    string
	Address netip.Addr
	// Route is the part of the network between the node and the kvstore.
	Route *memory.Store

	own    wire.ClusterInfo
	source *local.Cluster
	log    *slog.Logger
}

// newMembers returns this number of nodes of a cluster, n0 and so on.
func (w *World) newMembers(c *Cluster, number int) (all []*Member) {
	for i := range number {
		name := fmt.Sprint("n", i)
		all = append(all, &Member{
			Name: name, Address: netip.AddrFrom4([4]byte{172, 16, byte(c.Own.ID), byte(i)}), Route: c.Store.Route(), //nolint:gosec // few
			own: c.Own, source: c.Source, log: w.Log.With(LogKey, c.Own.Name, "node", name),
		})
	}
	return all
}

// Run runs a new process of the node until ctx ends.
func (m *Member) Run(ctx context.Context) error {
	leases := kvstore.NewLeases()
	writer := kvstore.NewDurable(func(context.Context, int) (kvstore.Session, error) { return m.Route.ConnectWith(leases), nil },
		kvstore.DurableOptions{Leases: leases, Log: m.log})
	node, err := register.New(register.Params{
		Own: m.own, Name: m.Name, Address: m.Address, Source: m.source, GlobalNamespaces: true, Writer: writer,
		PeriodicSync: periodicSync, Log: m.log,
	})
	if err != nil {
		return err
	}
	return waiting.Together(ctx, writer.Run, node.Run)
}
