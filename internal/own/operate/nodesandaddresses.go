package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/own/publish"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// errEnough ends a list.
var errEnough = errors.New("enough was listed")

// membership publishes the nodes and the addresses of the description: of a cluster
// whose agents do not write to its kvstore (CRD mode). It does not begin while agents
// do: each would take the other's keys away.
func (p *publisher) membership(ctx context.Context) error {
	err := waiting.UntilDone(ctx, againAfter, againAfter, func() error { return p.alone(ctx) }, func(err error, _ time.Duration) {
		p.Report("nodes and addresses", err)
		p.Log.Warn("Nodes and addresses are not published yet, trying again", "error", err)
	})
	if err != nil {
		return err
	}
	p.Report("nodes and addresses", nil)
	nodes := publish.NewNodes(p.Source, p.Own, publish.NodesParams{
		CiliumOnly: true, To: p.nodes, Report: p.finds("nodes", codes.NodeRefused), Log: p.Log,
	})
	endpoints := publish.NewEndpoints(p.Source, p.Own, publish.EndpointsParams{
		Layout: p.Identities.Layout, DefaultGlobalNamespace: p.GlobalNamespaces, To: p.addresses,
		Report: p.finds("addresses", codes.AddressesRefused), Log: p.Log,
	})
	return waiting.Together(ctx, p.nodes.Run, p.addresses.Run, nodes.Run, endpoints.Run)
}

// alone is an error as long as agents refer to identities in the kvstore, which those
// do that write their nodes and addresses themselves.
func (p *publisher) alone(ctx context.Context) error {
	reference := ""
	_, err := p.Writer.List(ctx, wire.IdentityAllocation.References(), func(page kvstore.Page) error {
		if len(page.Items) == 0 {
			return nil
		}
		reference = string(page.Items[0].Key)
		return errEnough
	})
	if reference != "" {
		return coded(codes.AgentsWriteToo, fmt.Errorf("agents write their own nodes and addresses to this kvstore, such as the one with the reference %s: "+
			"leave out --publish-nodes-and-addresses, or end these agents and wait for their leases", reference))
	}
	return err
}

// finds reports a task whose errors are findings.
func (o *Operator) finds(task string, code codes.Code) func(error) {
	return func(err error) { o.Report(task, coded(code, err)) }
}

// coded says which finding an error is; nil stays nil.
func coded(code codes.Code, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w [%s]", err, code)
}
