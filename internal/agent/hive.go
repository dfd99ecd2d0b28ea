// Package agent assembles the program from cells, one set for each mode (run, operate, mirror).
// The hive of a mode creates all parts and starts them; it stops with the first part that fails.
package agent

import (
	"log/slog"
	"time"

	"github.com/cilium/hive"
	"github.com/cilium/hive/cell"
	"github.com/cilium/hive/job"
	"github.com/cilium/statedb"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/base/health"
	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/base/version"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/history"
	"github.com/mesh-agent/mesh-agent/internal/serve/httpapi"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/internal/serve/ui"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/mesh"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

const stopTimeout = 9 * time.Second // for a clean stop

// cells returns the cells that only this mode has.
func cells(m config.Mode) cell.Cell {
	switch m {
	case config.ModeOperate:
		return cell.Group(localCell(config.ModeOperate), operateCell())
	case config.ModeMirror:
		return mirrorCell()
	default:
		return cell.Group(localCell(config.ModeRun), meshCell(), memberCell(), serverCells())
	}
}

// meshDirectory returns the directory in which a mode looks for client files; empty for a mode that has none.
func meshDirectory(m config.Mode, c config.Config) string {
	if m == config.ModeOperate && !c.Operate.ReadsRemotes() {
		return ""
	}
	return c.ClustermeshConfig
}

// NewHive returns the hive of a mode: its parts and their dependencies. level is the level of its log.
func NewHive(v version.Info, m config.Mode, c config.Config, level *logging.Level) *hive.Hive {
	opts := hive.DefaultOptions()
	opts.StopTimeout = stopTimeout
	opts.LogThreshold = time.Second
	opts.ModulePrivateProviders = cell.ModulePrivateProviders{
		func(reg *health.Registry, id cell.FullModuleID) cell.Health { return reg.NewScope(id.String()) },
		func(jobs job.Registry, h cell.Health, log *slog.Logger, lc cell.Lifecycle) job.Group {
			return jobs.NewGroup(h, job.WithLogger(log))
		},
	}
	return hive.NewWithOptions(
		opts,
		cell.Provide(func() (version.Info, config.Mode, config.Config, *logging.Level) { return v, m, c, level }),
		cell.Provide(health.New, newRegistry, newMetrics, func() *servers { return new(servers) }),
		job.Cell,
		statedb.Cell,
		viewCell(),
		apiCell(), // listens before the other parts run: when an address is in use, the program ends
		writerCell(),
		cell.Invoke(showLeader, showIdentityRange),
		cells(m),
	)
}

// viewCell makes the mesh of the process, in every mode, and runs its view.
func viewCell() cell.Cell {
	return cell.Group(
		cell.Provide(
			func(db *statedb.DB, c config.Config) (*view.Tables, error) { return mesh.NewTables(db, c.ClaimRules) },
			newMesh,
			func(m *mesh.Mesh) (*view.View, *clustermesh.Ingest) { return m.View, m.Ingest },
			newClusterSize,
			func() *claims.Current { return new(claims.Current) },
		),
		cell.Module(
			"view", "The merged view of all clusters",
			cell.Invoke(showClusterSize),
			cell.Invoke(func(jobs job.Group, t *view.Tables) { runs(jobs, "addresses", t.IPs.Run) }),
			cell.Invoke(func(lc cell.Lifecycle, jobs job.Group, v *view.View) {
				runs(jobs, "changes", v.Run)
				lc.Append(cell.Hook{OnStop: func(cell.HookContext) error { v.Close(); return nil }})
			}),
		),
		cell.Module(
			findingsModule, "Conflicts and recent events",
			cell.Invoke(func(jobs job.Group, m *mesh.Mesh) { startJob(jobs, "watch", "watching", m.Findings.Run) }),
		),
	)
}

func apiCell() cell.Cell {
	return cell.Module(
		"api", "HTTP over a unix socket and TCP",
		cell.Provide(newAPI, newTLS, func(v *view.View) *history.History { return history.New(v.Clusters) }),
		cell.Invoke(serveAPI, followCertificates),
		cell.Invoke(func(jobs job.Group, h *history.History) { startJob(jobs, "history", "remembering", h.Run) }),
	)
}

type apiParams struct {
	cell.In

	Config   config.Config
	Version  version.Info
	Mode     config.Mode
	Mesh     *mesh.Mesh
	Role     role
	Writer   *kvstore.Durable
	Writing  *syncstore.Metrics
	Own      *local.Cluster `optional:"true"`
	Servers  *servers
	TLS      *transport.TLS
	History  *history.History
	Bounds   *boundary.Boundaries
	Gatherer prometheus.Gatherer
	Level    *logging.Level
	Log      *slog.Logger
}

func newAPI(p apiParams) (*httpapi.Server, error) {
	options := []httpapi.Option{httpapi.WithLimits(p.Config.Listening.Limits.OfServer()), httpapi.WithBoundary(p.Bounds.Part("http"))}
	if p.Config.DebugPprof {
		options = append(options, httpapi.WithProfiles())
	}
	if p.Config.Listening.UI {
		page, err := ui.New()
		if err != nil {
			return nil, err
		}
		options = append(options, httpapi.WithPage(page))
	}
	options = append(options, httpapi.WithNames(p.Config.HostNames), httpapi.WithTLS(p.TLS))
	params := httpapi.Params{
		Agent: api.AgentInfo{
			Version: p.Version.Version, Cluster: p.Config.ClusterName, ClusterID: p.Config.ClusterID,
			Node: p.Config.NodeName, Started: time.Now(), Mode: string(p.Mode),
			MeshDirectory: meshDirectory(p.Mode, p.Config),
		},
		View:       p.Mesh.View,
		Asker:      p.Config.Asker(),
		Zone:       p.Config.DNSZones[0],
		Missing:    p.Mesh.Missing,
		Serving:    p.Servers.serving,
		XDSClients: p.Servers.xdsClients,
		Gatherer:   p.Gatherer,
		LogLevel:   p.Level,
		Settings:   p.Config.InForce(),
		History:    p.History,
	}
	if p.Role.leader != nil {
		params.Leads = p.Role.leader.Leads
	}
	if p.Writer != nil {
		params.Writer, params.Written = p.Writer, p.Writing.Written
	}
	if s, stops := p.Role.leader.(stopping); stops {
		params.Stopped = s.Stopped
	}
	if described := p.Config.Local.DescribedBy(); described != "" && p.Mode != config.ModeMirror {
		params.Described, params.DescribedBy = p.Own, described
	}
	return httpapi.NewServer(params, p.Log, options...)
}

// serveAPI opens the sockets when the program starts, so that the program ends when an address is in use. It serves
// until the program stops.
func serveAPI(c config.Config, s *httpapi.Server, lc cell.Lifecycle, jobs job.Group, reg prometheus.Registerer, log *slog.Logger) error {
	lc.Append(cell.Hook{OnStart: func(cell.HookContext) error {
		return s.Listen(c.Listen, c.Socket, c.Socket == api.DefaultSocket)
	}})
	startJob(jobs, "serve", "serving", s.Serve)
	if at := c.Listening.Probes; at != "" {
		probes := &transport.Probes{IsReady: func() bool { ready, _ := s.View.Ready(); return ready }, Log: log}
		lc.Append(cell.Hook{OnStart: func(cell.HookContext) error { return probes.Listen(at) }})
		startJob(jobs, "probes", "answering health checks on "+at, probes.Serve)
	}
	return reg.Register(s.Collector())
}
