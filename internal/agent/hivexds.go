package agent

import (
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

func offerXDS(p serverParams) (*offer, error) {
	x := p.Config.Serving.XDS
	if x.Address == "" {
		return nil, nil
	}
	metrics := xdsserver.NewMetrics()
	s, err := xdsserver.New(xdsserver.Params{
		View: p.View, Asker: p.Config.Asker(), Zones: p.Config.DNSZones, Names: int(x.Names), Memory: min(p.Config.XDSMemory, budget.XDSClients.Bytes()), Outliers: x.Outliers,
		Metrics: metrics, Boundary: p.Bounds.Part("xds"), Log: p.Log, TLS: p.TLS, Streams: transport.Limit{All: int(x.Streams), Peer: int(x.StreamsPerPeer)},
	})
	if err != nil {
		return nil, err
	}
	return &offer{
		server: s, protocol: "xDS", address: x.Address, message: "serving", metrics: metrics,
		xdsClients: func() *api.XDSClients {
			return &api.XDSClients{Items: xdsClients(s.Clients()), Gone: xdsClients(s.Departed())}
		},
	}, nil
}

func xdsClients(all []xdsserver.Client) []api.XDSClient {
	shown := make([]api.XDSClient, 0, len(all))
	for _, c := range all {
		one := api.XDSClient{
			Number: c.Number, Peer: c.Peer, Node: c.Node, Program: c.Program, Variant: c.Variant.String(), Since: c.Since, Follows: []api.XDSFollowing{},
		}
		if !c.Gone.IsZero() {
			one.Gone = &c.Gone
		}
		for _, f := range c.Follows {
			of := api.XDSFollowing{
				Type: f.Type, All: f.All, Names: append([]string{}, f.Names...), WithoutBackends: append([]string{}, f.Without...),
				Sent: f.Sent, Confirmed: f.Confirmed, Rejected: f.Rejected, Reason: f.Reason,
			}
			if f.Rejected > 0 {
				of.RejectedAt = &f.RejectedAt
			}
			one.Follows = append(one.Follows, of)
		}
		shown = append(shown, one)
	}
	return shown
}
