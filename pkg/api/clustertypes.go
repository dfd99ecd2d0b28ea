package api

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Cluster is one remote cluster.
type Cluster struct {
	Name           string           `json:"name"`
	ID             uint32           `json:"id" doc:"0 until its configuration was read."`
	State          string           `json:"state" enum:"connecting,syncing,ready,degraded,failed,removing"`
	Ready          bool             `json:"ready"`
	Connected      bool             `json:"connected"`
	Cached         bool             `json:"cached" doc:"Read from a copy that a mirror keeps."`
	Message        string           `json:"message" doc:"Why it is not ready, in a person's words."`
	Code           string           `json:"code" doc:"The stable code of what the message says."`
	Remedy         string           `json:"remedy" doc:"What to do about the code; empty without one."`
	Trouble        *Trouble         `json:"trouble" doc:"What kind of thing is wrong with it, the worst; null when nothing is."`
	Endpoints      []string         `json:"endpoints"`
	EtcdClusterID  string           `json:"etcdClusterID" doc:"Hexadecimal; empty before the first connection."`
	ConfigFile     string           `json:"configFile"`
	ConfigHash     string           `json:"configHash" doc:"A hash of the client file and of the authorities, certificate and key that it names, as they were read for the present connection, with a key of this process (/v1/config-key); empty when they cannot be."`
	Capabilities   Capabilities     `json:"capabilities" doc:"What the cluster says it can do; empty until its configuration was read."`
	Synced         ByResource[bool] `json:"synced" doc:"Whether a complete list has been applied."`
	Counts         ByResource[int]  `json:"counts" doc:"Accepted keys of the kvstore."`
	Rejected       ByResource[int]  `json:"rejected" doc:"Keys whose present value was refused."`
	Refusals       []Refusal        `json:"refusals" doc:"The same in words: one for each resource with refused keys."`
	Freshness      ClusterFreshness `json:"freshness" doc:"Until when the copy is known to equal the remote."`
	Failures       int              `json:"failures" doc:"Attempts and sessions that ended in an error."`
	LastFailure    *time.Time       `json:"lastFailure"`
	LastError      string           `json:"lastError"`
	ConnectedSince *time.Time       `json:"connectedSince"`
	LastEvent      *time.Time       `json:"lastEvent"`

	HeartbeatAgeSeconds *float64       `json:"heartbeatAgeSeconds" doc:"Since the heartbeat was last seen to be written, or since the connection began; null when there never was one."`
	CertificateExpires  *time.Time     `json:"certificateExpires" doc:"Until when the client certificate is valid that a new session would have; null without one."`
	Policy              *ClusterPolicy `json:"policy" doc:"What the disconnect policy makes of it; null where there is none, or before its first look."`
}

// UnmarshalJSON fills in what an agent of before the fields did not send.
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

// Well tells whether the cluster is ready, its data fresh, and its service
// backends used as those of any other.
func (c *Cluster) Well() bool { return c.Ready && c.State == "ready" && c.Fresh() && c.Kept() }

// Kept tells whether the disconnect policy, if there is one, has nothing against
// the use of its service backends.
func (c *Cluster) Kept() bool { return c.Policy == nil || c.Policy.State == PolicyKeep }

// Fresh tells whether every resource is known to equal the remote that is not optional.
func (c *Cluster) Fresh() bool { return fresh(&c.Freshness.ByResource) }

// fresh tells whether every resource is that a cluster is used for. Details may be
// unknown: an agent that does not know the resource says nothing of them.
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

// Complete tells whether every resource has been listed completely that is neither
// optional nor a detail of another.
func (c *Cluster) Complete() bool {
	for r, synced := range c.Synced.All() {
		if !*synced && !r.Describe().Optional && !c.Freshness.Of(r).NotRead && !c.Capabilities.wire().Details(r) {
			return false
		}
	}
	return true
}

// Has tells whether a resource is shown of the cluster: where it is read, as far as the cluster
// says it writes it, or that is in doubt.
func (c *Cluster) Has(r wire.Resource) bool {
	f := c.Freshness.Of(r)
	state := f.State
	return state != "" && !f.NotRead && (c.Capabilities.wire().Exports(r) || state == "syncing" || state == "stale")
}

// Assess fills in what follows from the other fields: what to do about the code, the
// trouble, and the worst freshness.
func (c *Cluster) Assess() {
	e, _ := codes.Find(c.Code)
	c.Remedy, c.Trouble, c.Freshness.Worst = e.Remedy, nil, Freshness{State: "synced"}
	if kind := remotecluster.TroubleOf(remotecluster.State(c.State), c.Ready, c.Connected, c.Fresh()); kind != "" {
		c.Trouble = &Trouble{Kind: string(kind), Remedy: kind.Remedy()}
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

// Trouble is a kind of thing that is wrong with a cluster.
type Trouble struct {
	Kind   string `json:"kind" enum:"failed,connecting,lost,degraded,stale,syncing,removing"`
	Remedy string `json:"remedy" doc:"What to do about clusters with such trouble."`
}

// ClusterFreshness is that of all resources of a cluster.
type ClusterFreshness struct {
	ByResource[Freshness]
	Worst Freshness `json:"worst" doc:"The worst state of those that are not optional, and the greatest age."`
}

// Refusal says which entries of a resource are refused, and why.
type Refusal struct {
	Resource string            `json:"resource"`
	Count    int               `json:"count" doc:"Keys whose present value is refused."`
	Reasons  map[string]int    `json:"reasons" doc:"How many for each reason."`
	Remedies map[string]string `json:"remedies" doc:"What to do, by reason."`
	Key      string            `json:"key" doc:"One of them; empty when none is known in words any more."`
	Message  string            `json:"message" doc:"What is wrong with the value of that key."`
}

// Freshness tells until when a copy is known to equal the remote.
type Freshness struct {
	State      string     `json:"state" enum:"unknown,syncing,synced,stale"`
	NotRead    bool       `json:"notRead,omitempty" doc:"Of a cluster's resource: this process has no use for it and does not read it, as an operator the addresses of remote clusters."`
	AsOf       *time.Time `json:"asOf" doc:"null when it never was."`
	AgeSeconds *float64   `json:"ageSeconds" doc:"The age of asOf at the time of the answer."`
	Read       int        `json:"read,omitempty" doc:"While a list runs: how many keys it has brought so far."`
	Total      int        `json:"total,omitempty" doc:"While a list runs: how many keys there are at its revision."`
	Message    string     `json:"message,omitempty" doc:"Of service exports, which nobody waits for: why they are not read. The cluster's message tells of the others."`
	Lag        *Lag       `json:"lag,omitempty" doc:"Of a cluster's resource: how long events took lately; absent when none came."`
}

// Lag is how long the latest batches of events took from their receipt until they were visible.
type Lag struct {
	MedianSeconds float64 `json:"medianSeconds"`
	P99Seconds    float64 `json:"p99Seconds" doc:"Of 100 batches 99 took no longer."`
	MaxSeconds    float64 `json:"maxSeconds"`
	Batches       int     `json:"batches" doc:"How many it is of."`
	Events        uint64  `json:"events" doc:"How many events have become visible, of all batches since the resource of the cluster is read."`
}

// The states of a [ClusterPolicy].
const (
	PolicyKeep     = "keep"     // used as those of any cluster
	PolicyDemote   = "demote"   // used only where no other cluster has a usable one
	PolicyWithdraw = "withdraw" // removed where another cluster has a usable one
)

// ClusterPolicy is what the disconnect policy makes of a cluster: how its service
// backends are used, and what happens next.
type ClusterPolicy struct {
	State    string         `json:"state" enum:"keep,demote,withdraw" doc:"keep: its service backends are used as those of any cluster. demote: only where no other cluster has a usable one. withdraw: they are removed where another cluster has a usable one."`
	Since    time.Time      `json:"since" doc:"When the state began; for keep, unless it was restored, when the agent came to know the cluster."`
	Code     string         `json:"code" doc:"That of the state; empty for keep."`
	Doubtful bool           `json:"doubtful" doc:"Whether the evidence speaks against it at this moment."`
	Reason   string         `json:"reason" doc:"What speaks against the cluster, or for its return; empty when there is nothing to say."`
	Next     string         `json:"next" doc:"The state that follows if the evidence stays as it is; empty when none does."`
	NextAt   *time.Time     `json:"nextAt" doc:"When that is; null when nothing follows."`
	Held     *time.Time     `json:"held" doc:"Since when more than half of the clusters are in doubt, so that none is demoted or withdrawn; null when it is not so."`
	InDoubt  int            `json:"inDoubt" doc:"How many clusters are in doubt."`
	Judged   int            `json:"judged" doc:"Of how many: those that were synced at some time."`
	Evidence PolicyEvidence `json:"evidence"`
}

// PolicyEvidence is what the policy goes by.
type PolicyEvidence struct {
	Confirmed      *time.Time `json:"confirmed" doc:"Until when its services are known to equal the remote's; null when they never were."`
	Heartbeat      *time.Time `json:"heartbeat" doc:"When its writer was last heard of in this session; null when never."`
	ConnectedSince *time.Time `json:"connectedSince" doc:"null while there is no session."`
	Error          string     `json:"error" doc:"Why it does not answer, as far as somebody knows."`
}

// toPolicy is nil without a policy.
func toPolicy(o *disconnect.Outlook) *ClusterPolicy {
	if o == nil {
		return nil
	}
	p := &ClusterPolicy{
		State: o.State.String(), Since: o.Since.UTC(), Doubtful: o.Doubtful, Reason: o.Why,
		NextAt: timeOrNull(o.NextAt), Held: timeOrNull(o.Held), InDoubt: o.Failing, Judged: o.Judged,
		Evidence: PolicyEvidence{
			Confirmed: timeOrNull(o.Evidence.AsOf), Heartbeat: timeOrNull(o.Evidence.Heartbeat),
			ConnectedSince: timeOrNull(o.Evidence.Connected), Error: o.Evidence.Error,
		},
	}
	if p.NextAt != nil {
		p.Next = o.Next.String()
	}
	switch o.State {
	case disconnect.Demote:
		p.Code = string(codes.ClusterDemoted)
	case disconnect.Withdraw:
		p.Code = string(codes.ClusterWithdrawn)
	}
	return p
}

// steady leaves out what moves all the time.
func (p *ClusterPolicy) steady() *ClusterPolicy {
	if p == nil {
		return nil
	}
	s := *p
	s.Evidence.Confirmed, s.Evidence.Heartbeat = nil, nil
	return &s
}

// ConfigKey is the answer of /v1/config-key.
type ConfigKey struct {
	Key string `json:"key" doc:"The key of configHash, hexadecimal; another one in each process."`
}

// NewConfigKey returns a key for [KeyedHash].
func NewConfigKey() string {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return hex.EncodeToString(key)
}

// KeyedHash is a cluster's configHash: the HMAC of kvstore.Fingerprint, which is
// hexadecimal, as a client file has a password in it, and whoever sees a plain hash
// can try passwords. That of nothing is nothing.
func KeyedHash(key, contentHash string) string {
	if contentHash == "" {
		return ""
	}
	h := hmac.New(sha256.New, []byte(key))
	_, _ = h.Write([]byte(contentHash)) // it never fails
	return hex.EncodeToString(h.Sum(nil))
}

// configKeyRoute gives the key to those who may read the client files anyway.
func (s *Server) configKeyRoute() route {
	return route{
		local: true, path: "/v1/config-key", id: "config-key", summary: "The key of configHash, to compare client files with it.",
		answer: reflect.TypeFor[ConfigKey](), handle: func(w http.ResponseWriter, _ *http.Request) error {
			writeJSON(w, ConfigKey{s.configKey})
			return nil
		},
	}
}
