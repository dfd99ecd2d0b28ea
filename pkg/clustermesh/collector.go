package clustermesh

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// collector exports the clusters as metrics. It reads their status in each
// collection, so the series of a removed cluster disappear with it. The label names
// are those of the cilium_clustermesh_* series (wire.md §6.2).
type collector struct {
	mesh Observed
	all  []*prometheus.Desc

	clusters, sessions, users, opened, without, ignored, unreadable, held          *prometheus.Desc
	state                                                                          *prometheus.Desc // of a cluster
	ready, failures, lastFailure, heartbeat, interval, revocations, policy, panics *prometheus.Desc // of a cluster
	certificates, notices                                                          *prometheus.Desc // of a cluster
	entries, rejected, age, lag, syncTime                                          *prometheus.Desc // of a resource
}

// incomplete is a set of clusters that may be ready without some of them, such as [Remotes].
type incomplete interface{ Missing() map[string]string }

// fromDirectory is a set of clusters that comes from a mesh directory, such as [Remotes].
type fromDirectory interface{ Ignored() []Ignored }

// Observed is a set of clusters with their connections, such as [Remotes]. Its
// methods do not block.
type Observed interface {
	// Clusters describes every cluster.
	Clusters() []remotecluster.Status
	// Sessions returns the numbers of connections, of clusters that use them, and of all
	// connections that were ever opened.
	Sessions() (open, users, opened int)
}

// NewCollector returns the metrics of the mesh, to be registered once.
func NewCollector(m Observed) prometheus.Collector {
	var all []*prometheus.Desc
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		all = append(all, prometheus.NewDesc("mesh_agent_clustermesh_"+name, help, labels, nil))
		return all[len(all)-1]
	}
	const cluster, resource, reason = "target_cluster", "resource", "reason"
	c := &collector{
		mesh:         m,
		clusters:     desc("remote_clusters", "Remote clusters with a client file."),
		ready:        desc("remote_cluster_readiness_status", "1 when the cluster is connected and every resource is synced.", cluster),
		state:        desc("remote_cluster_state", "1, with the state of the cluster and the code (docs/codes.md) of the finding.", cluster, "state", "code"),
		failures:     desc("remote_cluster_failures", "Failed attempts and lost sessions since the cluster was added.", cluster),
		lastFailure:  desc("remote_cluster_last_failure_ts", "When the last of them was, in seconds since 1970; 0 for never.", cluster),
		entries:      desc("remote_cluster_entries", "Entries in force.", cluster, resource),
		rejected:     desc("remote_cluster_rejected_entries", "Keys whose present value is refused.", cluster, resource, reason),
		age:          desc("remote_cluster_age_seconds", "Seconds since the entries were last known to equal the remote's.", cluster, resource),
		lag:          desc("remote_cluster_lag_seconds", "How long the latest batches of events took from their receipt until they were visible.", cluster, resource),
		heartbeat:    desc("remote_cluster_heartbeat_age_seconds", "Seconds since the cluster's heartbeat was last seen to be written, or since the connection began.", cluster),
		interval:     desc("remote_cluster_probe_interval_seconds", "Seconds between two reads that confirm the data of the cluster; more with more nodes in the own cluster.", cluster),
		syncTime:     desc("remote_cluster_sync_duration_seconds", "How long the first complete list took.", cluster, resource),
		revocations:  desc("remote_cluster_cache_revocations", "How often the service backends were withheld because there was no contact.", cluster),
		policy:       desc("remote_cluster_policy_state", "Step of the disconnect policy for the service backends: 0 keep, 1 demote, 2 withdraw.", cluster),
		panics:       desc("remote_cluster_internal_errors_total", "Internal errors that ended work on the cluster (MESH-1223).", cluster),
		certificates: desc("remote_cluster_certificate_expiry_timestamp_seconds", "When a certificate of the connection expires, in seconds since 1970: that of the client, of the server, or the first of those above it in its chain (authority).", cluster, "certificate"),
		notices:      desc("remote_cluster_notice", "1 while there is a notice with this code (docs/codes.md), else 0.", cluster, "code"),
		sessions:     desc("sessions", "Connections to kvstores; clusters with equal client files share one."),
		users:        desc("session_clusters", "Clusters that use a connection."),
		opened:       desc("sessions_opened_total", "Connections to kvstores that were opened."),
		without:      desc("ready_without_clusters", "Clusters that were not synced when the sync timeout passed and the agent became ready, and still are not."),
		ignored:      desc("ignored_files", "Files of the mesh directory that look like client files and cannot be used (MESH-7001)."),
		unreadable:   desc("directory_unreadable", "1 while the mesh directory cannot be read (MESH-7003)."),
		held:         desc("policy_held", "1 while the disconnect policy is held, since most clusters are in doubt at once (MESH-1021)."),
	}
	c.all = all
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.all {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	all := c.mesh.Clusters()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(c.clusters, float64(len(all)))
	sessions, users, opened := c.mesh.Sessions()
	gauge(c.sessions, float64(sessions))
	gauge(c.users, float64(users))
	ch <- prometheus.MustNewConstMetric(c.opened, prometheus.CounterValue, float64(opened))
	if m, is := c.mesh.(incomplete); is {
		gauge(c.without, float64(len(m.Missing())))
	}
	if d, is := c.mesh.(fromDirectory); is {
		files, unreadable := ignored(d.Ignored())
		gauge(c.ignored, files)
		gauge(c.unreadable, unreadable)
	}
	gauge(c.held, held(all))
	for _, s := range all {
		ready, last := 0.0, 0.0
		if s.Ready {
			ready = 1
		}
		if !s.LastFailure.IsZero() {
			last = float64(s.LastFailure.UnixMilli()) / 1000
		}
		gauge(c.ready, ready, s.Name)
		gauge(c.state, 1, s.Name, string(s.State), string(cmp.Or(s.Code, codes.AllFollowed)))
		gauge(c.failures, float64(s.Failures), s.Name)
		gauge(c.lastFailure, last, s.Name)
		gauge(c.revocations, float64(s.Revocations), s.Name)
		ch <- prometheus.MustNewConstMetric(c.panics, prometheus.CounterValue, float64(s.Panics), s.Name)
		if s.Connected || !s.Heartbeat.Seen.IsZero() {
			gauge(c.heartbeat, s.Heartbeat.Age.Seconds(), s.Name)
		}
		if s.ProbeInterval > 0 {
			gauge(c.interval, s.ProbeInterval.Seconds(), s.Name)
		}
		if s.Forecast != nil {
			gauge(c.policy, float64(s.Forecast.State), s.Name)
		}
		for of, until := range map[string]time.Time{"client": s.Certificate, "server": s.ServerCertificate, "authority": s.AuthorityCertificate} {
			if !until.IsZero() {
				gauge(c.certificates, float64(until.Unix()), s.Name, of)
			}
		}
		for _, code := range remotecluster.NoticeCodes() {
			is := 0.0
			if slices.ContainsFunc(s.Notices, func(n remotecluster.Notice) bool { return n.Code == code }) {
				is = 1
			}
			gauge(c.notices, is, s.Name, string(code))
		}
		for r, src := range s.Families {
			gauge(c.entries, float64(src.Count), s.Name, string(r))
			for reason, n := range src.Rejections {
				gauge(c.rejected, float64(n), s.Name, string(r), string(reason))
			}
			if asOf := src.Freshness.AsOf; !asOf.IsZero() {
				gauge(c.age, time.Since(asOf).Seconds(), s.Name, string(r))
			}
			if src.SyncDuration > 0 {
				gauge(c.syncTime, src.SyncDuration.Seconds(), s.Name, string(r))
			}
			if lag := src.Lag; lag.Batches > 0 {
				quantiles := map[float64]float64{0.5: lag.Median.Seconds(), 0.99: lag.P99.Seconds(), 1: lag.Most.Seconds()}
				ch <- prometheus.MustNewConstSummary(c.lag, uint64(lag.Batches), lag.Sum.Seconds(), quantiles, s.Name, string(r)) //nolint:gosec // not negative
			}
		}
	}
}

// ignored returns the number of ignored files, and 1 if the directory itself cannot be read, else 0.
func ignored(all []Ignored) (files, directory float64) {
	for _, i := range all {
		if i.Directory {
			directory = 1
		} else {
			files++
		}
	}
	return files, directory
}

// held returns 1 while the policy is held, else 0. Every cluster that the policy judges then has Forecast.Held set.
func held(all []remotecluster.Status) float64 {
	if slices.ContainsFunc(all, func(s remotecluster.Status) bool { return s.Forecast != nil && !s.Forecast.Held.IsZero() }) {
		return 1
	}
	return 0
}
