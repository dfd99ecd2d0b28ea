package api

import (
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/reasons"
)

// MediaTypeProblem is the content type of a [Problem] (RFC 9457).
const MediaTypeProblem = "application/problem+json"

// HeaderToken is the header of a list with its position as a token: a watch since it sends what
// has changed after the list, and no state first.
const HeaderToken = "Resume-Token"

// MaxLimit is the greatest page; a greater limit is clamped to it.
const MaxLimit = 5000

// List is the answer of every list endpoint.
type List[T any] struct {
	Revision  uint64               `json:"revision" doc:"The position in the sequence of all changes that the items are at."`
	Freshness map[string]Freshness `json:"freshness,omitempty" doc:"By cluster, until when what is listed of it is known to equal what it has: the worst of the resources that it comes from. Absent for lists that do not come from clusters."`
	Items     []T                  `json:"items" doc:"The items, sorted by name."`
	Next      string               `json:"next" doc:"The cursor of the next page; empty on the last one."`
}

// Problem is the body of every error (RFC 9457).
type Problem struct {
	Type   string `json:"type" doc:"Always about:blank: the title says it."`
	Title  string `json:"title" doc:"The kind of problem: the text of the status code."`
	Status int    `json:"status" doc:"The HTTP status code."`
	Detail string `json:"detail" doc:"What is wrong with this request, and what to do."`
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// Liveness is the answer of /healthz.
type Liveness struct {
	Status string `json:"status" doc:"Always ok: a process that does not work does not answer."`
}

// Readiness is the answer of /readyz. It is a problem document when not ready.
type Readiness struct {
	Type    string            `json:"type,omitempty" doc:"Set when not ready."`
	Title   string            `json:"title,omitempty" doc:"Set when not ready."`
	Status  int               `json:"status,omitempty" doc:"The HTTP status code, when not ready."`
	Detail  string            `json:"detail,omitempty" doc:"What is waited for, when not ready; what is missing, when ready without it."`
	Code    string            `json:"code,omitempty" doc:"The stable code of ready without some clusters."`
	Ready   bool              `json:"ready" doc:"Whether every configured cluster was synced once, or the sync timeout has passed."`
	Reasons map[string]string `json:"reasons" doc:"By cluster, what is waited for."`
	Without map[string]string `json:"without" doc:"By cluster, what is not synced yet of those that were not when the sync timeout passed and the agent became ready."`
}

// Status is the answer of /v1/status.
type Status struct {
	Agent       AgentInfo             `json:"agent"`
	State       string                `json:"state" enum:"starting,ready,degraded" doc:"starting until ready for the first time; degraded while a cluster is not ready or not fresh, the local kvstore does not take what is written, or the source of the description cannot be followed."`
	Ready       bool                  `json:"ready" doc:"As /readyz."`
	Summary     Summary               `json:"summary"`
	Clusters    []Cluster             `json:"clusters"`
	Ignored     []clustermesh.Ignored `json:"ignored" doc:"Files of the mesh directory that are no cluster's, and why."`
	KVStore     *KVStore              `json:"kvstore" doc:"The local kvstore; null when the agent only observes."`
	OwnCluster  *Cluster              `json:"ownCluster" doc:"The own cluster as its kvstore shows it, in the form of the others and with every capability; null where nothing of it is read."`
	Serving     []Serving             `json:"serving,omitempty" doc:"The servers of other protocols that are on, such as DNS; absent without one."`
	Description *Description          `json:"description,omitempty" doc:"What manifests or the Kubernetes API say of the own cluster; absent without such a source."`
}

// AgentInfo says who answers.
type AgentInfo struct {
	Version       string    `json:"version"`
	Cluster       string    `json:"cluster" doc:"The own cluster."`
	ClusterID     uint32    `json:"clusterID"`
	Node          string    `json:"node"`
	Started       time.Time `json:"started"`
	Mode          string    `json:"mode" doc:"run, operate or mirror."`
	MeshDirectory string    `json:"meshDirectory" doc:"Where the client files of the remote clusters are looked for."`
	Leads         *bool     `json:"leads,omitempty" doc:"Of operate and mirror: whether this process does the work; false while another one does, or nobody."`
}

// Summary counts what the lists hold.
type Summary struct {
	Clusters       int `json:"clusters"`
	ClustersReady  int `json:"clustersReady"`
	Nodes          int `json:"nodes"`
	Services       int `json:"services" doc:"Items of /v1/services."`
	GlobalServices int `json:"globalServices" doc:"Those of them that a cluster shares."`
	Identities     int `json:"identities"`
	IPs            int `json:"ips" doc:"Prefixes, each counted once, whoever claims it."`
	Conflicts      int `json:"conflicts" doc:"Conflicts, also those that are not listed."`
}

// KVStore describes the own cluster as it is read from its kvstore: the connection, and what came
// over it. Its fields mean what those of a [Cluster] do.
type KVStore struct {
	State               string                `json:"state" enum:"connecting,syncing,ready,degraded,failed"`
	Ready               bool                  `json:"ready"`
	Connected           bool                  `json:"connected"`
	Message             string                `json:"message" doc:"Why it is not ready, in a person's words."`
	Code                string                `json:"code" doc:"The stable code of what the message says."`
	Endpoints           []string              `json:"endpoints"`
	EtcdClusterID       string                `json:"etcdClusterID" doc:"Hexadecimal; empty before the first connection."`
	ConfigFile          string                `json:"configFile" doc:"The client file; empty when only addresses are given."`
	WriteOnly           bool                  `json:"writeOnly" doc:"It is written to, and nothing of it is shown: then nothing of it is synced, fresh or counted."`
	Lease               string                `json:"lease" doc:"Empty: who only reads has none."`
	HeartbeatAgeSeconds *float64              `json:"heartbeatAgeSeconds" doc:"Since the heartbeat was last seen to be written, or since the connection began; null while there is none."`
	ProbeInterval       float64               `json:"probeIntervalSeconds,omitempty" doc:"Seconds between two reads that confirm the connection; more with more nodes in the cluster. Absent without a connection."`
	Synced              ByResource[bool]      `json:"synced"`
	Counts              ByResource[int]       `json:"counts"`
	Rejected            ByResource[int]       `json:"rejected"`
	Refusals            []Refusal             `json:"refusals"`
	Freshness           ByResource[Freshness] `json:"freshness"`
	Failures            int                   `json:"failures"`
	LastFailure         *time.Time            `json:"lastFailure"`
	LastError           string                `json:"lastError"`
	ConnectedSince      *time.Time            `json:"connectedSince"`
	LastEvent           *time.Time            `json:"lastEvent"`
	Written             []Written             `json:"written,omitempty" doc:"What this process keeps in it, by prefix; absent when it writes nothing."`
}

// Well tells whether the kvstore is ready, takes what is written to it, and what
// came from it, if anything is to, is fresh.
func (k *KVStore) Well() bool {
	return k.Ready && k.State == "ready" && (k.WriteOnly || fresh(&k.Freshness)) &&
		!slices.ContainsFunc(k.Written, func(w Written) bool { return w.Refused > 0 })
}

// Node is a machine of a cluster.
type Node struct {
	Cluster            string            `json:"cluster"`
	ClusterID          uint32            `json:"clusterID"`
	Name               string            `json:"name"`
	Addresses          []NodeAddress     `json:"addresses"`
	PodCIDRs           []string          `json:"podCIDRs"`
	HealthIPs          []string          `json:"healthIPs"`
	IngressIPs         []string          `json:"ingressIPs"`
	EncryptionKey      uint8             `json:"encryptionKey" doc:"0 is none."`
	WireguardPublicKey string            `json:"wireguardPublicKey"`
	Identity           uint32            `json:"identity" doc:"The identity of its addresses."`
	BootID             string            `json:"bootID"`
	Labels             map[string]string `json:"labels"`
	Annotations        map[string]string `json:"annotations"`
}

// NodeAddress is one address of a node.
type NodeAddress struct {
	Type string `json:"type"`
	IP   string `json:"ip"`
}

// Service is a service as all clusters together provide it.
type Service struct {
	Namespace string           `json:"namespace"`
	Name      string           `json:"name"`
	Global    bool             `json:"global" doc:"Whether any cluster shares it."`
	Affinity  string           `json:"affinity" enum:"none,local,remote"`
	Clusters  []ServiceCluster `json:"clusters" doc:"Every cluster that has it."`
	Backends  []Backend        `json:"backends" doc:"One for each cluster and address."`
}

// ServiceCluster is the part that one cluster has in a service.
type ServiceCluster struct {
	Cluster         string `json:"cluster"`
	Shared          bool   `json:"shared"`
	IncludeExternal bool   `json:"includeExternal"`
	Backends        int    `json:"backends" doc:"How many backends it provides."`
	Reason          string `json:"reason" doc:"Why its backends are used, or are not."`
}

// Backend is one address behind a service.
type Backend struct {
	IP          string `json:"ip"`
	Cluster     string `json:"cluster"`
	Ports       []Port `json:"ports"`
	Hostname    string `json:"hostname"`
	Zone        string `json:"zone"`
	Node        string `json:"node" doc:"Empty when its cluster exports no endpoint slices."`
	Ready       bool   `json:"ready" doc:"Whether it wants new connections, as far as its cluster says."`
	Serving     bool   `json:"serving" doc:"Whether it answers, also while it terminates."`
	Terminating bool   `json:"terminating" doc:"Whether it is about to go."`
	Preferred   bool   `json:"preferred" doc:"Whether the affinity prefers it."`
	Selected    bool   `json:"selected" doc:"Whether the own cluster's traffic goes to it now."`
	Local       bool   `json:"local" doc:"Whether it is of the own cluster."`
}

// Port is a port of a backend.
type Port struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Port     uint16 `json:"port"`
}

// ServiceExport is what a cluster says of a service that it exports through the MCS API.
type ServiceExport struct {
	Cluster                       string    `json:"cluster"`
	Namespace                     string    `json:"namespace"`
	Name                          string    `json:"name"`
	Type                          string    `json:"type" enum:"ClusterSetIP,Headless"`
	SessionAffinity               string    `json:"sessionAffinity" enum:"None,ClientIP"`
	SessionAffinityTimeoutSeconds int       `json:"sessionAffinityTimeoutSeconds" doc:"0 without affinity."`
	Ports                         []Port    `json:"ports" doc:"Of the service."`
	Created                       time.Time `json:"created" doc:"Of exports that disagree the oldest counts."`
}

// Identity is a set of labels with its number.
type Identity struct {
	ID        uint32            `json:"id"`
	Cluster   string            `json:"cluster" doc:"Empty for a reserved identity."`
	ClusterID uint32            `json:"clusterID"`
	Labels    map[string]string `json:"labels"`
}

// IP is the winning claim of a prefix.
type IP struct {
	Prefix        string `json:"prefix" doc:"Always with its length."`
	Cluster       string `json:"cluster"`
	ClusterID     uint32 `json:"clusterID"`
	Identity      uint32 `json:"identity"`
	HostIP        string `json:"hostIP" doc:"The node to send to; empty when there is none."`
	EncryptionKey uint8  `json:"encryptionKey" doc:"0 is none."`
	Namespace     string `json:"namespace"`
	Pod           string `json:"pod"`
	Source        string `json:"source"`
	Kind          string `json:"kind" enum:"endpoint,node,pod-cidr,health,ingress"`
	Claims        int    `json:"claims" doc:"How many claims the prefix has."`
}

// Lookup is the answer of /v1/lookup.
type Lookup struct {
	IP          string              `json:"ip"`
	Match       *IP                 `json:"match" doc:"The longest prefix that has the address; null when no cluster claims it."`
	Identity    *Identity           `json:"identity" doc:"The match's identity; null when it is not known."`
	Node        *Node               `json:"node" doc:"The node that hosts it; null when it is not known."`
	Services    []ServiceName       `json:"services" doc:"The services that have the address as a backend."`
	Candidates  []Candidate         `json:"candidates" doc:"The claims that have the address, the best first; of more than 128 on one prefix the best of each cluster and kind."`
	Why         reasons.Explanation `json:"why" doc:"What led to the match, with the keys that were read."`
	Freshness   *Freshness          `json:"freshness" doc:"Until when the match is known to be so; null without a match."`
	Unconfirmed []string            `json:"unconfirmed" doc:"Clusters whose addresses are not known as of now: they may claim it, or have given it up."`
}

// ServiceName names a service.
type ServiceName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Candidate is one claim that has the address.
type Candidate struct {
	Entry  IP     `json:"entry"`
	Won    bool   `json:"won"`
	Reason string `json:"reason" doc:"The rule by which it won or lost."`
}

// Health is what a module, a background task or a cluster connection says of itself.
type Health struct {
	Name                string     `json:"name"`
	Cluster             string     `json:"cluster" doc:"Set for a cluster connection."`
	State               string     `json:"state" enum:"ok,degraded,stopped,unknown"`
	Message             string     `json:"message"`
	LastSuccess         *time.Time `json:"lastSuccess"`
	LastFailure         *time.Time `json:"lastFailure"`
	ConsecutiveFailures int        `json:"consecutiveFailures"`
}

// Settings are the settings in force, by the names of their flags, as they
// would be given there. Secrets are left out.
type Settings map[string]string

// Conflict is something that more than one cluster claims, or on which they disagree.
type Conflict struct {
	Kind     string    `json:"kind" enum:"cluster-id,cluster-name,pod-cidr,ip,node-ip,claim,identity,service-port,service-affinity"`
	Code     string    `json:"code" doc:"The stable code of the finding."`
	Subject  string    `json:"subject" doc:"What it is about, unique within the kind: a prefix, a cluster ID or name, the name of a service, CLUSTER/ID of an identity, CLUSTER/RULE of claims."`
	Clusters []string  `json:"clusters" doc:"Whose claims they are; the one that counts first."`
	Message  string    `json:"message" doc:"What is so, and what to do about it."`
	Rule     string    `json:"rule" doc:"Why the first one counts; empty when none counts more than the others."`
	Unlisted int       `json:"unlisted,omitempty" doc:"How many conflicts of the kind are not listed, where the item says that; otherwise it is left out."`
	Since    time.Time `json:"since" doc:"When this agent first saw it."`
}

// Event is something that happened: a line of the agent's recent history.
type Event struct {
	ID       uint64            `json:"id" doc:"Grows with each event of this process."`
	Time     time.Time         `json:"time"`
	Cluster  string            `json:"cluster" doc:"Empty when it is about no single cluster."`
	Kind     string            `json:"kind" doc:"What kind of thing happened, such as cluster-connected or conflict."`
	Code     string            `json:"code" doc:"The stable code of the finding."`
	Message  string            `json:"message" doc:"What happened, in a person's words."`
	Resource string            `json:"resource" doc:"The list that has the object; empty when it is about none."`
	Name     string            `json:"name" doc:"The object's name in that list."`
	Evidence map[string]string `json:"evidence" doc:"What it was concluded from."`
}

// WatchEvent is the data of an event of /v1/watch.
type WatchEvent struct {
	Resource string `json:"resource"`
	Object   any    `json:"object,omitempty" doc:"An item of the resource's list, without what moves all the time (null there); none when the event is synced."`
	Revision uint64 `json:"revision" doc:"The change's position in the sequence of all changes."`
}

// LogLevel is how much the agent's log tells.
type LogLevel struct {
	Level string `json:"level" enum:"error,warn,info,debug"`
}
