package agent

import (
	"log/slog"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// xdsCell serves the endpoints of services to gRPC programs and Envoys, when a flag gives an address.
func xdsCell() cell.Cell {
	return cell.Module(
		"xds", "Tells gRPC programs and Envoys where the services of all clusters are",
		cell.Invoke(serveXDS),
	)
}

func serveXDS(c config.Config, v *view.View, secure *transport.TLS, all *servers, lc cell.Lifecycle, jobs job.Group, reg prometheus.Registerer, bounds *boundary.Boundaries, log *slog.Logger) error {
	x := c.Serving.XDS
	if x.Address == "" {
		return nil
	}
	p := xdsserver.Params{
		View: v, Asker: c.Asker(), Zones: c.Serving.DNS.ZoneNames(), Names: int(x.Names), Memory: x.MemoryLimit(), Outliers: x.Outliers, Metrics: xdsserver.NewMetrics(), Boundary: bounds.Part("xds"), Log: log, TLS: secure,
		Streams: transport.Limit{All: int(x.Streams), Peer: int(x.StreamsPerPeer)},
	}
	s, err := xdsserver.New(p)
	if err != nil {
		return err
	}
	lc.Append(cell.Hook{OnStart: func(cell.HookContext) error { return s.Listen(x.Address) }})
	saying(jobs, "serve", "serving on "+x.Address, s.Run)
	all.add(func() api.Serving {
		sent, refused := s.Totals()
		return api.Serving{Protocol: "xDS", Address: s.Address(), Requests: sent, Refused: refused}
	})
	all.xds = func() *api.XDSClients {
		return &api.XDSClients{Items: xdsClients(s.Clients()), Gone: xdsClients(s.Departed())}
	}
	return reg.Register(p.Metrics)
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
