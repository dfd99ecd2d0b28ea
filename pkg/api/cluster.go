package api

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Cluster is one remote cluster.
type Cluster struct {
	Name           string           `json:"name"`
	ID             uint32           `json:"id" doc:"0 before the agent has read the cluster's configuration."`
	State          string           `json:"state" enum:"connecting,syncing,ready,degraded,failed,removing"`
	Ready          bool             `json:"ready"`
	Connected      bool             `json:"connected"`
	Cached         bool             `json:"cached" doc:"Whether the agent reads a copy that a mirror keeps."`
	Message        string           `json:"message" doc:"Why the cluster is not ready."`
	Code           string           `json:"code" doc:"The stable code of the message."`
	Cause          string           `json:"cause" doc:"The stable code of the error that the message ends with; empty when there is none, or it is not known."`
	Remedy         string           `json:"remedy" doc:"The remedy for the code; empty without a code."`
	Trouble        *Trouble         `json:"trouble" doc:"The kind of the worst problem; null when there is none."`
	Endpoints      []string         `json:"endpoints"`
	EtcdClusterID  string           `json:"etcdClusterID" doc:"Hexadecimal; empty before the first connection."`
	ConfigFile     string           `json:"configFile"`
	ConfigHash     string           `json:"configHash" doc:"A keyed hash of the client file and of the authorities, certificate and key that it names, as read for the present connection. The key is that of this process (/v1/config-key). Empty when they cannot be read."`
	Capabilities   Capabilities     `json:"capabilities" doc:"The capabilities that the cluster publishes; empty before the agent has read its configuration."`
	Synced         ByResource[bool] `json:"synced" doc:"Whether the agent has applied a complete list."`
	Counts         ByResource[int]  `json:"counts" doc:"The number of accepted keys of the kvstore."`
	Rejected       ByResource[int]  `json:"rejected" doc:"The number of keys whose present value the agent refuses."`
	Refusals       []Refusal        `json:"refusals" doc:"The refused keys, one item for each resource that has some."`
	Freshness      ClusterFreshness `json:"freshness" doc:"The time until which the copy is known to equal the remote cluster."`
	Failures       int              `json:"failures" doc:"The number of attempts and sessions that ended in an error."`
	LastFailure    *time.Time       `json:"lastFailure"`
	LastError      string           `json:"lastError"`
	ConnectedSince *time.Time       `json:"connectedSince"`
	LastEvent      *time.Time       `json:"lastEvent"`

	HeartbeatAgeSeconds *float64       `json:"heartbeatAgeSeconds" doc:"Seconds since the agent last saw a new heartbeat, or since the connection began; null without a connection when the agent has seen no heartbeat."`
	CertificateExpires  *time.Time     `json:"certificateExpires" doc:"The end of the validity of the client certificate that a new session would use; null without one."`
	Certificates        Certificates   `json:"certificates" doc:"The ends of all certificates of the connection."`
	EtcdVersion         string         `json:"etcdVersion" doc:"The release of the etcd that answers; empty while it is not known."`
	Notices             []Notice       `json:"notices" doc:"Possible future problems, the most severe first. A notice does not change the state."`
	Policy              *ClusterPolicy `json:"policy" doc:"The decision of the disconnect policy; null without a policy, or before its first decision."`
}

// UnmarshalJSON fills in the fields that an older agent did not send.
func (c *Cluster) UnmarshalJSON(text []byte) error {
	type plain Cluster
	if err := json.Unmarshal(text, (*plain)(c)); err != nil {
		return err
	}
	if c.Freshness.Worst.State == "" {
		c.Assess()
	}
	return nil
}

// Well reports whether the cluster is ready, its data fresh, and its service backends used like those of any other.
func (c *Cluster) Well() bool { return c.Ready && c.State == "ready" && c.Fresh() && c.Kept() }

// Kept reports whether the disconnect policy, if there is one, does not restrict the use of its service backends.
func (c *Cluster) Kept() bool { return c.Policy == nil || c.Policy.State == PolicyKeep }

// Fresh reports whether every resource that is not optional is known to equal the remote.
func (c *Cluster) Fresh() bool { return fresh(&c.Freshness.ByResource) }

// fresh reports whether every resource is fresh that the use of a cluster requires. Details may be unknown: an agent
// that does not support the resource sends none.
func fresh(all *ByResource[Freshness]) bool {
	for r, f := range all.All() {
		switch d := r.Describe(); {
		case d.Optional || f.NotRead || f.State == "synced":
		case d.Required() || f.State != "unknown" && f.State != "":
			return false
		}
	}
	return true
}

// Complete reports whether every resource that is neither optional nor a detail of another has been listed completely.
func (c *Cluster) Complete() bool {
	for r, synced := range c.Synced.All() {
		if !*synced && !r.Describe().Optional && !c.Freshness.Of(r).NotRead && !c.Capabilities.wire().Details(r) {
			return false
		}
	}
	return true
}

// Has reports whether a resource of the cluster is shown: the agent reads it, and either the cluster's capabilities
// include it, or its state is in doubt (syncing or stale).
func (c *Cluster) Has(r wire.Resource) bool {
	f := c.Freshness.Of(r)
	state := f.State
	return state != "" && !f.NotRead && (c.Capabilities.wire().Exports(r) || state == "syncing" || state == "stale")
}

// Assess fills in the fields that are derived from others: the remedy of the code, the trouble, and the worst
// freshness.
func (c *Cluster) Assess() { c.AssessAs(codes.Cluster(c.Name)) }

// AssessAs is Assess for a subject that need not be a remote cluster.
func (c *Cluster) AssessAs(as codes.Subject) {
	e, _ := codes.Find(c.Code)
	c.Remedy, c.Trouble, c.Freshness.Worst = as.Fill(e.Remedy), nil, Freshness{State: "synced"}
	if kind := TroubleOf(c.State, c.Ready, c.Connected, c.Fresh()); kind != "" {
		c.Trouble = &Trouble{Kind: string(kind), Remedy: as.Fill(kind.Remedy())}
	}
	worst, severity := &c.Freshness.Worst, []string{"synced", "syncing", "stale", "unknown"}
	for r, f := range c.Freshness.All() {
		if r.Describe().Optional || !c.Has(r) {
			continue
		}
		if slices.Index(severity, f.State) > slices.Index(severity, worst.State) {
			worst.State = f.State
		}
		if f.AgeSeconds != nil && (worst.AgeSeconds == nil || *f.AgeSeconds > *worst.AgeSeconds) {
			worst.AsOf, worst.AgeSeconds = f.AsOf, f.AgeSeconds
		}
	}
}

// Certificates has the expiry times of the certificates of a connection.
type Certificates struct {
	Client    *time.Time `json:"client" doc:"The client certificate that a new session would use."`
	Server    *time.Time `json:"server" doc:"The certificate of the etcd, from the last handshake."`
	Authority *time.Time `json:"authority" doc:"The first end of the certificates above that of the etcd in its chain, from the last handshake."`
}

// Notice is a problem that will occur, or may.
type Notice = codes.Notice

// Trouble is a kind of problem of a cluster.
type Trouble struct {
	Kind   string `json:"kind" enum:"failed,connecting,lost,degraded,stale,syncing,removing"`
	Remedy string `json:"remedy" doc:"The remedy for clusters with this problem."`
}

// ClusterFreshness is the freshness of all resources of a cluster.
type ClusterFreshness struct {
	ByResource[Freshness]
	Worst Freshness `json:"worst" doc:"The worst state of the resources that are not optional, and the greatest age."`
}

// Refusal has the refused entries of a resource, with the reasons.
type Refusal struct {
	Resource string            `json:"resource"`
	Count    int               `json:"count" doc:"The number of keys whose present value the agent refuses."`
	Reasons  map[string]int    `json:"reasons" doc:"The number of keys, by reason."`
	Remedies map[string]string `json:"remedies" doc:"The remedy, by reason."`
	Key      string            `json:"key" doc:"One of the keys; empty when the agent no longer has its name."`
	Message  string            `json:"message" doc:"The error of that key's value."`
}

// Freshness is the time until which a copy is known to equal the remote, with its state.
type Freshness struct {
	State      string     `json:"state" enum:"unknown,syncing,synced,stale"`
	NotRead    bool       `json:"notRead,omitempty" doc:"This process does not use the resource and does not read it. For example, an operator does not read the addresses of remote clusters."`
	AsOf       *time.Time `json:"asOf" doc:"null when it was never synced."`
	AgeSeconds *float64   `json:"ageSeconds" doc:"The age of asOf at the time of the answer."`
	Read       int        `json:"read,omitempty" doc:"While a list runs: the number of keys read so far."`
	Total      int        `json:"total,omitempty" doc:"While a list runs: the number of keys at its revision."`
	Message    string     `json:"message,omitempty" doc:"Only service exports, which are optional: why they are not read. For other resources, see the message of the cluster."`
	Lag        *Lag       `json:"lag,omitempty" doc:"How long recent events took to become visible; absent when there were none."`
}

// Lag is how long the latest batches of events took from receipt until they were visible.
type Lag struct {
	MedianSeconds float64 `json:"medianSeconds"`
	P99Seconds    float64 `json:"p99Seconds" doc:"The 99th percentile."`
	MaxSeconds    float64 `json:"maxSeconds"`
	Batches       int     `json:"batches" doc:"The number of measured batches."`
	Events        uint64  `json:"events" doc:"The number of events that have become visible since the agent started to read the resource."`
}

// The states of a [ClusterPolicy].
const (
	PolicyKeep     = "keep"     // used like those of any cluster
	PolicyDemote   = "demote"   // used only where no other cluster has a usable one
	PolicyWithdraw = "withdraw" // removed where another cluster has a usable one
)

// ClusterPolicy is the state of a cluster in the disconnect policy: how its service backends are used, and the next
// change.
type ClusterPolicy struct {
	State    string         `json:"state" enum:"keep,demote,withdraw" doc:"keep: its service backends are used like those of other clusters. demote: they are used only where no other cluster has a usable backend. withdraw: they are removed where another cluster has a usable backend."`
	Since    time.Time      `json:"since" doc:"When the state began. For keep, unless restored: when the agent first saw the cluster."`
	Code     string         `json:"code" doc:"The stable code of the state; empty for keep."`
	Doubtful bool           `json:"doubtful" doc:"Whether the cluster is in doubt now."`
	Reason   string         `json:"reason" doc:"The evidence against the cluster, or for its return; empty when there is none."`
	Next     string         `json:"next" enum:",keep,demote,withdraw" doc:"The next state if the evidence does not change; empty when there is none."`
	NextAt   *time.Time     `json:"nextAt" doc:"The time of the next state; null when there is none."`
	Held     *time.Time     `json:"held" doc:"Since when more than half of the clusters are in doubt. No cluster is then demoted or withdrawn. null when at most half are."`
	InDoubt  int            `json:"inDoubt" doc:"The number of clusters in doubt."`
	Judged   int            `json:"judged" doc:"The number of clusters that were synced at some time."`
	Evidence PolicyEvidence `json:"evidence"`
}

// PolicyEvidence is the evidence for the policy.
type PolicyEvidence struct {
	Confirmed      *time.Time `json:"confirmed" doc:"The time until which its services are known to equal those of the remote cluster; null when they were never synced."`
	Heartbeat      *time.Time `json:"heartbeat" doc:"When the agent last saw a new heartbeat in this session; null when it saw none."`
	ConnectedSince *time.Time `json:"connectedSince" doc:"null while there is no session."`
	Error          string     `json:"error" doc:"Why the cluster does not answer, if known."`
}
