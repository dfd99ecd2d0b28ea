package agent

import (
	"context"
	"log/slog"

	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/serve/dnsserver"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// dnsCell answers DNS queries, when a flag gives an address.
func dnsCell() cell.Cell {
	return cell.Module(
		"dns", "Answers DNS questions about the services of all clusters",
		cell.Invoke(serveDNS),
	)
}

// newTLS reads the certificate files of all listeners that use TLS; nil without any.
func newTLS(c config.Config, log *slog.Logger) *transport.TLS {
	files, secure := c.Listening.TLS()
	if !secure {
		return nil
	}
	return transport.NewTLS(files, log)
}

// followCertificates reports in the health, in the log and in metrics when the certificate files cannot be used.
func followCertificates(t *transport.TLS, h cell.Health, jobs job.Group, reg prometheus.Registerer) error {
	if t == nil {
		return nil
	}
	report := reporting(h.NewScope("certificates"), "the previous certificate files stay in use", "the certificate files can be used")
	runs(jobs, "certificates", func(ctx context.Context) error { return t.Follow(ctx, report) })
	return reg.Register(t.Collector())
}

// servers are the servers of protocols other than the API, for the API's status. They are added before the agent
// starts, and do not change afterwards.
type servers struct {
	all []func() api.Serving
	xds func() *api.XDSClients // nil: xDS is off
}

func (s *servers) add(one func() api.Serving) { s.all = append(s.all, one) }

func (s *servers) serving() []api.Serving {
	var all []api.Serving
	for _, one := range s.all {
		all = append(all, one())
	}
	return all
}

// xdsClients returns the clients of the xDS server; nil when it is off.
func (s *servers) xdsClients() *api.XDSClients {
	if s.xds == nil {
		return nil
	}
	return s.xds()
}

func serveDNS(c config.Config, v *view.View, all *servers, lc cell.Lifecycle, jobs job.Group, reg prometheus.Registerer, bounds *boundary.Boundaries, log *slog.Logger) error {
	d := c.Serving.DNS
	if d.Address == "" {
		return nil
	}
	clients, err := d.ClientNetworks()
	if err != nil {
		return err
	}
	metrics := dnsserver.NewMetrics()
	s, err := dnsserver.New(dnsserver.Params{
		View: v, Cluster: c.ClusterName, Asker: c.Asker(), Zones: d.ZoneNames(), MeshZone: d.MeshZone, TTL: &d.TTL, Answers: int(d.Answers),
		Clients: clients, Queries: int(d.Queries), Metrics: metrics, Boundary: bounds.Part("dns"), Log: log,
	})
	if err != nil {
		return err
	}
	lc.Append(cell.Hook{OnStart: func(cell.HookContext) error { return s.Listen(d.Address) }})
	saying(jobs, "serve", "answering on "+d.Address, s.Run)
	all.add(func() api.Serving {
		answered, refused := metrics.Totals()
		return api.Serving{Protocol: "DNS", Address: s.Address(), Requests: answered, Refused: refused}
	})
	return reg.Register(metrics)
}
