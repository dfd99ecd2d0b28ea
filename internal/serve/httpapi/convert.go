package httpapi

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func (s *Server) cluster(st remotecluster.Status, now time.Time) api.Cluster {
	c := api.Cluster{
		Name: st.Name, ID: st.ID, State: string(st.State),
		Ready: st.Ready, Connected: st.Connected, Cached: st.Cached, Message: st.Message, Code: string(st.Code), Cause: string(st.Cause),
		Endpoints: append([]string{}, st.Endpoints...), EtcdClusterID: st.EtcdClusterID, ConfigFile: st.ConfigFile, ConfigHash: clientfile.KeyedHash(s.configKey, st.ConfigHash),
		Capabilities: toCapabilities(st.Capabilities),
		Failures:     st.Failures, LastFailure: timeOrNull(st.LastFailure), LastError: st.LastError,
		ConnectedSince: timeOrNull(st.ConnectedSince), LastEvent: timeOrNull(st.LastEvent),
		Policy: toPolicy(st.Forecast),
	}
	c.Synced, c.Counts, c.Rejected, c.Freshness.ByResource = byFamily(st.Families, now)
	c.Refusals = toRefusals(st)
	c.HeartbeatAgeSeconds, c.CertificateExpires = heartbeatAge(st), timeOrNull(st.Certificate)
	c.Certificates = api.Certificates{Client: c.CertificateExpires, Server: timeOrNull(st.ServerCertificate), Authority: timeOrNull(st.AuthorityCertificate)}
	c.EtcdVersion, c.Notices = st.ServerVersion, toNotices(st)
	c.Assess()
	return c
}

func toNotices(st remotecluster.Status) []api.Notice {
	out := make([]api.Notice, 0, len(st.Notices))
	for _, n := range st.Notices {
		of := n.Code.Notice(n.Message)
		of.Remedy = codes.Cluster(st.Name).Fill(of.Remedy)
		out = append(out, of)
	}
	return out
}

// byFamily returns the status of the families, as fields of the JSON.
func byFamily(families map[wire.Resource]remotecluster.FamilyStatus, now time.Time) (
	synced api.ByResource[bool], counts, rejected api.ByResource[int], freshness api.ByResource[api.Freshness],
) {
	for _, r := range wire.Resources() {
		src, read := families[r]
		f := toFreshness(src.Freshness, now)
		f.NotRead, f.Read, f.Total, f.Message = !read && len(families) > 0, src.Read, src.Total, src.Why
		if lag := src.Lag; lag.Batches > 0 {
			f.Lag = &api.Lag{MedianSeconds: lag.Median.Seconds(), P99Seconds: lag.P99.Seconds(), MaxSeconds: lag.Most.Seconds(), Batches: lag.Batches, Events: lag.Events}
		}
		*synced.Of(r), *counts.Of(r), *rejected.Of(r), *freshness.Of(r) = src.Synced, src.Count, src.Rejected, f
	}
	return synced, counts, rejected, freshness
}

func toRefusals(st remotecluster.Status) []api.Refusal {
	all := []api.Refusal{}
	for _, r := range slices.Sorted(maps.Keys(st.Families)) {
		s := st.Families[r]
		if s.Rejected == 0 {
			continue
		}
		one := api.Refusal{
			Resource: string(r), Count: s.Rejected, Reasons: make(map[string]int), Remedies: make(map[string]string),
			Key: s.Example.Key, Message: s.Example.Why,
		}
		for reason, n := range s.Rejections {
			one.Reasons[string(reason)], one.Remedies[string(reason)] = n, remotecluster.RefusalRemedy(st.Name, r, reason)
		}
		all = append(all, one)
	}
	return all
}

// own returns the own cluster in the form of a remote cluster, and the fields that only its kvstore has. The own
// cluster may have services in both formats, and exports.
func (s *Server) own(st remotecluster.Status, now time.Time) (*api.Cluster, *api.KVStore) {
	everything := wire.Everything()
	if caps := st.Capabilities; caps != nil {
		everything.SyncedCanaries, everything.Cached, everything.MaxConnectedClusters = caps.SyncedCanaries, caps.Cached, caps.MaxConnectedClusters
	}
	st.Capabilities = &everything
	if st.NoSpace && st.State == remotecluster.Ready {
		st.State, st.Code, st.Message = remotecluster.Degraded, codes.EtcdAlarm, whyNoSpace
	}
	c := s.cluster(st, now)
	c.AssessAs(codes.Subject{Own: true})
	return &c, &api.KVStore{
		State: c.State, Ready: c.Ready, Connected: c.Connected, Message: c.Message, Code: c.Code,
		Endpoints: c.Endpoints, EtcdClusterID: c.EtcdClusterID, ConfigFile: c.ConfigFile,
		HeartbeatAgeSeconds: c.HeartbeatAgeSeconds, ProbeInterval: st.ProbeInterval.Seconds(),
		Synced: c.Synced, Counts: c.Counts, Rejected: c.Rejected, Refusals: c.Refusals, Freshness: c.Freshness.ByResource,
		Failures: c.Failures, LastFailure: c.LastFailure, LastError: c.LastError, ConnectedSince: c.ConnectedSince, LastEvent: c.LastEvent,
	}
}

// heartbeatAge returns the time since the last heartbeat, null when it is unknown.
func heartbeatAge(st remotecluster.Status) *float64 {
	if !st.Connected && st.Heartbeat.Seen.IsZero() {
		return nil
	}
	return new(float64(st.Heartbeat.Age.Milliseconds()) / 1000)
}

// writtenKVStore returns a kvstore that is only written to.
func writtenKVStore(st kvstore.Status) *api.KVStore {
	k := &api.KVStore{
		State: string(remotecluster.Connecting), Ready: st.Connected, Connected: st.Connected, WriteOnly: true,
		Endpoints: []string{}, ProbeInterval: st.ProbeInterval.Seconds(), LastError: st.LastError, LastFailure: timeOrNull(st.LastErrorAt), ConnectedSince: timeOrNull(st.ConnectedSince),
		Refusals: []api.Refusal{},
	}
	if st.Endpoint != "" {
		k.Endpoints = []string{st.Endpoint}
	}
	if st.EtcdClusterID != 0 {
		k.EtcdClusterID = fmt.Sprintf("%x", st.EtcdClusterID)
	}
	if st.Connected {
		k.State = string(remotecluster.Ready)
	} else {
		k.Message = "writes wait: " + cmp.Or(st.LastError, "connecting")
	}
	for _, f := range k.Freshness.All() {
		f.State = string(remotecluster.FreshnessUnknown)
	}
	if st.Server.NoSpace() {
		stopped(k, codes.EtcdAlarm, whyNoSpace)
	}
	return k
}

const whyNoSpace = "the own etcd has raised the alarm NOSPACE: it refuses all writes; compact and defragment it, or raise its quota, and then run 'etcdctl alarm disarm'"

// stopped sets the reason why no entries are written because there is no space, if there is one.
func stopped(k *api.KVStore, code codes.Code, why string) {
	if code == "" || !k.Connected {
		return
	}
	k.State, k.Code, k.Message = string(remotecluster.Degraded), string(code), why
}

func leases(st kvstore.Status) string {
	if st.Leases == 0 && st.LockLeases == 0 {
		return ""
	}
	return fmt.Sprintf("%d of keys, %d of locks", st.Leases, st.LockLeases)
}

func toFreshness(from remotecluster.Freshness, now time.Time) api.Freshness {
	f := api.Freshness{State: string(from.State), AsOf: timeOrNull(from.AsOf)}
	if f.State == "" {
		f.State = string(remotecluster.FreshnessUnknown)
	}
	if f.AsOf != nil {
		f.AgeSeconds = new(max(0, float64(now.Sub(from.AsOf).Milliseconds())/1000))
	}
	return f
}

// toFreshnesses returns nil for nil: a list of objects that are not from clusters has no freshness.
func toFreshnesses(from map[string]remotecluster.Freshness, now time.Time) map[string]api.Freshness {
	if from == nil {
		return nil
	}
	all := make(map[string]api.Freshness, len(from))
	for cluster, f := range from {
		all[cluster] = toFreshness(f, now)
	}
	return all
}

func toNode(n *nodes.Node) api.Node {
	return api.Node{
		Cluster: n.Cluster, ClusterID: n.ClusterID, Name: n.Name,
		Addresses: converted(n.Addresses, func(a nodes.Address) api.NodeAddress { return api.NodeAddress{Type: a.Type, IP: a.IP.String()} }),
		PodCIDRs:  converted(n.PodCIDRs, netip.Prefix.String), HealthIPs: converted(n.HealthIPs, netip.Addr.String), IngressIPs: converted(n.IngressIPs, netip.Addr.String),
		EncryptionKey: n.EncryptionKey, WireguardPublicKey: n.WireguardPublicKey,
		Identity: nodes.RoleAddress.Identity(), BootID: n.BootID,
		Labels: mapOrEmpty(n.Labels), Annotations: mapOrEmpty(n.Annotations),
	}
}

func toService(_ *Server, _ *view.Snapshot, g *services.Global) api.Service {
	out := api.Service{
		Namespace: g.Namespace, Name: g.Name, Global: g.Shared(), Affinity: g.Affinity(),
		Clusters: make([]api.ServiceCluster, len(g.Parts)),
		Backends: make([]api.Backend, 0, g.NumBackends()),
	}
	for i, part := range g.Parts {
		out.Clusters[i] = api.ServiceCluster{
			Cluster: part.Cluster, Shared: part.Shared, IncludeExternal: part.IncludeExternal,
			Backends: len(part.Backends), Reason: g.Reason(part),
		}
	}
	selection := g.Selection()
	for part, b := range g.Backends() {
		local := part.Local()
		out.Backends = append(out.Backends, api.Backend{
			IP: b.IP.String(), Cluster: part.Cluster, Ports: toPorts(b.Ports), Hostname: b.Hostname, Zone: b.Zone,
			Node: b.Node, Ready: b.Ready(), Serving: b.Serving(), Terminating: b.Terminating(),
			Local:     local,
			Preferred: local && out.Affinity == "local" || !local && out.Affinity == "remote",
			Selected:  selection.Takes(part, b),
		})
	}
	return out
}

// doubtService adds to the reason of each cluster why its part of the service may be out of date.
func doubtService(v *view.Snapshot, service *api.Service) {
	for i := range service.Clusters {
		c := &service.Clusters[i]
		if doubt := cmp.Or(v.Doubt(c.Cluster, wire.Services), v.Doubt(c.Cluster, wire.EndpointSlices)); doubt != "" {
			c.Reason += "; " + doubt
		}
	}
}

func toPorts(from []services.Port) []api.Port {
	return converted(from, func(p services.Port) api.Port { return api.Port(p) })
}

func toIdentity(i *identities.Identity) api.Identity {
	return api.Identity{ID: i.ID, Cluster: i.Cluster, ClusterID: i.ClusterID, Labels: mapOrEmpty(i.Map())}
}

func toIP(e *ipcache.Entry, claims int) api.IP {
	ip := api.IP{
		Prefix: e.Prefix().String(), Cluster: e.Cluster().Name, ClusterID: e.Cluster().ID,
		Identity: e.Identity(), EncryptionKey: e.EncryptionKey(),
		Namespace: e.Namespace(), Pod: e.Pod(),
		Source: e.Source().String(), Kind: e.Kind().String(), Claims: claims,
	}
	if host := e.HostIP(); host.IsValid() {
		ip.HostIP = host.String()
	}
	return ip
}

// converted never returns nil: a list in JSON is never null.
func converted[T, J any](from []T, to func(T) J) []J {
	all := make([]J, len(from))
	for i, v := range from {
		all[i] = to(v)
	}
	return all
}

func mapOrEmpty(from map[string]string) map[string]string {
	if from == nil {
		return map[string]string{}
	}
	return from
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func toCapabilities(from *wire.Capabilities) api.Capabilities {
	if from == nil {
		return api.Capabilities{}
	}
	return api.Capabilities{
		SyncedCanaries:           &from.SyncedCanaries,
		Cached:                   &from.Cached,
		MaxConnectedClusters:     &from.MaxConnectedClusters,
		ServiceExportsEnabled:    from.ServiceExportsEnabled,
		EndpointSlicesExportMode: &from.EndpointSlicesExportMode,
	}
}
