package api

import (
	"iter"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// ByResource holds one value for each resource of a cluster.
type ByResource[T any] struct {
	Nodes          T `json:"nodes"`
	Services       T `json:"services"`
	EndpointSlices T `json:"endpointSlices"`
	ServiceExports T `json:"serviceExports"`
	Identities     T `json:"identities"`
	IPs            T `json:"ips"`
}

// All yields every resource's name, as in JSON, with its value, which may be
// changed in place.
func (b *ByResource[T]) All() iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		_ = yield("nodes", &b.Nodes) && yield("services", &b.Services) && yield("endpointSlices", &b.EndpointSlices) &&
			yield("serviceExports", &b.ServiceExports) && yield("identities", &b.Identities) && yield("ips", &b.IPs)
	}
}

// Cluster is one remote cluster.
type Cluster struct {
	Name           string                `json:"name"`
	ID             uint32                `json:"id" doc:"0 until its configuration was read."`
	State          string                `json:"state" enum:"connecting,syncing,ready,degraded,failed,removing"`
	Ready          bool                  `json:"ready"`
	Connected      bool                  `json:"connected"`
	Cached         bool                  `json:"cached" doc:"Read from a copy that a mirror keeps."`
	Message        string                `json:"message" doc:"Why it is not ready, in a person's words."`
	Code           string                `json:"code" doc:"The stable code of what the message says."`
	Endpoints      []string              `json:"endpoints"`
	EtcdClusterID  string                `json:"etcdClusterID" doc:"Hexadecimal; empty before the first connection."`
	ConfigFile     string                `json:"configFile"`
	ConfigHash     string                `json:"configHash" doc:"A hash of the client file and of the authorities, certificate and key that it names, as they were read for the present connection, with a key of this process (/v1/config-key); empty when they cannot be."`
	Capabilities   Capabilities          `json:"capabilities" doc:"What the cluster says it can do; empty until its configuration was read."`
	Synced         ByResource[bool]      `json:"synced" doc:"Whether a complete list has been applied."`
	Counts         ByResource[int]       `json:"counts" doc:"Accepted keys of the kvstore."`
	Rejected       ByResource[int]       `json:"rejected" doc:"Keys whose present value was refused."`
	Refusals       []Refusal             `json:"refusals" doc:"The same in words: one for each resource with refused keys."`
	Freshness      ByResource[Freshness] `json:"freshness" doc:"Until when the copy is known to equal the remote."`
	Failures       int                   `json:"failures" doc:"Attempts and sessions that ended in an error."`
	LastFailure    *time.Time            `json:"lastFailure"`
	LastError      string                `json:"lastError"`
	ConnectedSince *time.Time            `json:"connectedSince"`
	LastEvent      *time.Time            `json:"lastEvent"`

	HeartbeatAgeSeconds *float64       `json:"heartbeatAgeSeconds" doc:"Since the heartbeat was last seen to be written, or since the connection began; null when there never was one."`
	CertificateExpires  *time.Time     `json:"certificateExpires" doc:"Until when the client certificate is valid that a new session would have; null without one."`
	Policy              *ClusterPolicy `json:"policy" doc:"What the disconnect policy makes of it; null where there is none, or before its first look."`
}

// Well tells whether the cluster is ready, its data fresh, and its service
// backends used as those of any other.
func (c *Cluster) Well() bool { return c.Ready && c.State == "ready" && c.Fresh() && c.Kept() }

// Kept tells whether the disconnect policy, if there is one, has nothing against
// the use of its service backends.
func (c *Cluster) Kept() bool { return c.Policy == nil || c.Policy.State == PolicyKeep }

// Fresh tells whether every resource is known to equal the remote; service exports,
// which nobody waits for, are not asked.
func (c *Cluster) Fresh() bool { return fresh(&c.Freshness) }

// fresh tells whether every resource is that a cluster is used for; service exports
// are none of these. An agent that knows nothing of endpoint slices says nothing
// of them.
func fresh(f *ByResource[Freshness]) bool {
	for _, one := range []Freshness{f.Nodes, f.Services, f.Identities, f.IPs} {
		if one.State != "synced" {
			return false
		}
	}
	return f.EndpointSlices.State == "synced" || f.EndpointSlices.State == "unknown" || f.EndpointSlices.State == ""
}

// Complete tells whether every resource has been listed completely. Endpoint
// slices only add to the services of a cluster that exports both, and nobody waits
// for service exports.
func (c *Cluster) Complete() bool {
	mode := c.Capabilities.EndpointSlicesExportMode
	return c.Synced.Nodes && c.Synced.Services && c.Synced.Identities && c.Synced.IPs &&
		(c.Synced.EndpointSlices || mode == nil || *mode != wire.EndpointSlicesOnly)
}

// Refusal says which entries of a resource are refused, and why.
type Refusal struct {
	Resource string         `json:"resource"`
	Count    int            `json:"count" doc:"Keys whose present value is refused."`
	Reasons  map[string]int `json:"reasons" doc:"How many for each reason."`
	Key      string         `json:"key" doc:"One of them; empty when none is known in words any more."`
	Message  string         `json:"message" doc:"What is wrong with the value of that key."`
}

// Capabilities are the abilities that a cluster advertises (wire.md §2.1). A
// nil field was not advertised.
type Capabilities struct {
	SyncedCanaries           *bool   `json:"syncedCanaries,omitempty"`
	Cached                   *bool   `json:"cached,omitempty"`
	MaxConnectedClusters     *uint32 `json:"maxConnectedClusters,omitempty"`
	ServiceExportsEnabled    *bool   `json:"serviceExportsEnabled,omitempty"`
	EndpointSlicesExportMode *string `json:"endpointSlicesExportMode,omitempty"`
}

// Freshness tells until when a copy is known to equal the remote.
type Freshness struct {
	State      string     `json:"state" enum:"unknown,syncing,synced,stale"`
	AsOf       *time.Time `json:"asOf" doc:"null when it never was."`
	AgeSeconds *float64   `json:"ageSeconds" doc:"The age of asOf at the time of the answer."`
	Read       int        `json:"read,omitempty" doc:"While a list runs: how many keys it has brought so far."`
	Total      int        `json:"total,omitempty" doc:"While a list runs: how many keys there are at its revision."`
	Message    string     `json:"message,omitempty" doc:"Of service exports, which nobody waits for: why they are not read. The cluster's message tells of the others."`
	Lag        *Lag       `json:"lag,omitempty" doc:"Of a cluster's resource: how long events took lately; absent when none came."`
}

// Lag is how long the latest batches of events took from their receipt until they
// were visible.
type Lag struct {
	MedianSeconds float64 `json:"medianSeconds"`
	P99Seconds    float64 `json:"p99Seconds" doc:"Of 100 batches 99 took no longer."`
	MaxSeconds    float64 `json:"maxSeconds"`
	Batches       int     `json:"batches" doc:"How many it is of."`
}
