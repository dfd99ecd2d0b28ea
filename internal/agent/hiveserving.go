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

// server serves clients over a network, with data of the view.
type server interface {
	Listen(address string) error
	Run(ctx context.Context) error
	Address() string
	// Totals returns how many requests were answered and refused.
	Totals() (answered, refused uint64)
}

// offer is a server that a flag turns on, with what the agent shows of it.
type offer struct {
	server
	protocol, address, message string
	metrics                    prometheus.Collector
	xdsClients                 func() *api.XDSClients // of the xDS server
}

// serverParams are the dependencies of servers.
type serverParams struct {
	cell.In

	Config  config.Config
	View    *view.View
	TLS     *transport.TLS
	Bounds  *boundary.Boundaries
	Servers *servers
	Cycle   cell.Lifecycle
	Jobs    job.Group
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// serverCells are the modules of the servers: each makes its offer, nil when no flag gives an address.
func serverCells() cell.Cell {
	return cell.Group(
		serverCell("dns", "Answers DNS questions about the services of all clusters", offerDNS),
		serverCell("xds", "Tells gRPC programs and Envoys where the services of all clusters are", offerXDS),
	)
}

func serverCell(name, title string, of func(serverParams) (*offer, error)) cell.Cell {
	return cell.Module(name, title, cell.Invoke(func(p serverParams) error {
		o, err := of(p)
		if o == nil || err != nil {
			return err
		}
		p.Cycle.Append(cell.Hook{OnStart: func(cell.HookContext) error { return o.Listen(o.address) }})
		startJob(p.Jobs, "serve", o.message+" on "+o.address, o.Run)
		p.Servers.all = append(p.Servers.all, o)
		return p.Metrics.Register(o.metrics)
	}))
}

// newTLS reads the certificate files of all listeners that use TLS; nil without any.
func newTLS(c config.Config, log *slog.Logger) *transport.TLS {
	l := c.Listening
	if l.TLSCert == "" {
		return nil
	}
	return transport.NewTLS(transport.TLSFiles{Cert: l.TLSCert, Key: l.TLSKey, ClientCA: l.TLSClientCA}, log)
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
type servers struct{ all []*offer }

func (s *servers) serving() (all []api.Serving) {
	for _, o := range s.all {
		answered, refused := o.Totals()
		all = append(all, api.Serving{Protocol: o.protocol, Address: o.Address(), Requests: answered, Refused: refused})
	}
	return all
}

// xdsClients returns the clients of the xDS server; nil when it is off.
func (s *servers) xdsClients() *api.XDSClients {
	for _, o := range s.all {
		if o.xdsClients != nil {
			return o.xdsClients()
		}
	}
	return nil
}

func offerDNS(p serverParams) (*offer, error) {
	d := p.Config.Serving.DNS
	if d.Address == "" {
		return nil, nil
	}
	metrics := dnsserver.NewMetrics()
	s, err := dnsserver.New(dnsserver.Params{
		View: p.View, Cluster: p.Config.ClusterName, Asker: p.Config.Asker(), Zones: p.Config.DNSZones, MeshZone: d.MeshZone, TTL: &d.TTL, Answers: int(d.Answers),
		Clients: p.Config.DNSClients, Queries: int(d.Queries), Metrics: metrics, Boundary: p.Bounds.Part("dns"), Log: p.Log,
	})
	if err != nil {
		return nil, err
	}
	return &offer{server: s, protocol: "DNS", address: d.Address, message: "answering", metrics: metrics}, nil
}
