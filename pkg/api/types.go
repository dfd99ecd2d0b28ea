package api

import (
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/reasons"
	"github.com/mesh-agent/mesh-agent/pkg/summary"
)

// MediaTypeProblem is the content type of a [Problem] (RFC 9457).
const MediaTypeProblem = "application/problem+json"

// HeaderToken is the header of a list with its position as a token: a watch since it sends what
// has changed after the list, and no state first. A list of addresses by labels has none, because
// its watch cannot be resumed.
const HeaderToken = "Resume-Token"

// MaxLimit is the greatest page; a greater limit is clamped to it.
const MaxLimit = 5000

// List is the answer of every list endpoint.
type List[T any] struct {
	Revision  uint64               `json:"revision" doc:"The revision of the view that the items show."`
	Freshness map[string]Freshness `json:"freshness,omitempty" doc:"By cluster, the time until which the listed entries are known to equal those of the cluster: the oldest of the resources that the list comes from. Absent for lists that do not come from clusters."`
	Items     []T                  `json:"items" doc:"The items, sorted by name."`
	Next      string               `json:"next" doc:"The cursor of the next page; empty on the last one."`
}

// Problem is the body of every error (RFC 9457).
type Problem struct {
	Type   string `json:"type" doc:"Always about:blank: see the title."`
	Title  string `json:"title" doc:"The kind of problem: the text of the status code."`
	Status int    `json:"status" doc:"The HTTP status code."`
	Detail string `json:"detail" doc:"The error of this request, and its remedy."`
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// Liveness is the answer of /healthz.
type Liveness struct {
	Status string `json:"status" doc:"Always ok: a process that hangs does not answer."`
}

// Readiness is the answer of /readyz. It is a problem document when not ready.
type Readiness struct {
	Type    string            `json:"type,omitempty" doc:"Set when not ready."`
	Title   string            `json:"title,omitempty" doc:"Set when not ready."`
	Status  int               `json:"status,omitempty" doc:"The HTTP status code, when not ready."`
	Detail  string            `json:"detail,omitempty" doc:"When not ready: the clusters and resources that the agent waits for. When ready: those that are missing."`
	Code    string            `json:"code,omitempty" doc:"The stable code of an agent that is ready without some clusters."`
	Ready   bool              `json:"ready" doc:"Whether the agent has synced every configured cluster once, or the sync timeout has passed."`
	Reasons map[string]string `json:"reasons" doc:"By cluster, the resources that the agent waits for, and why. The mesh directory and the local kvstore can be in it too."`
	Without map[string]string `json:"without" doc:"By cluster, the resources that were not synced when the sync timeout passed and still are not, and why."`
}

// Status is the answer of /v1/status.
type Status struct {
	Agent       AgentInfo                       `json:"agent"`
	State       string                          `json:"state" enum:"starting,ready,degraded" doc:"starting: until the agent is ready for the first time. degraded: a cluster is not ready or not fresh, the local kvstore refuses writes, or the agent cannot read the source of the description."`
	Reason      string                          `json:"reason" doc:"The problems with their clusters, the worst first, on one line; empty when there are none."`
	Ready       bool                            `json:"ready" doc:"As /readyz."`
	Summary     Summary                         `json:"summary"`
	Clusters    []Cluster                       `json:"clusters"`
	Impact      *summary.Impact                 `json:"impact" doc:"The backends of services in clusters that are not connected, or whose data could not be confirmed for too long; null without such clusters."`
	Ignored     []clustermesh.Ignored           `json:"ignored" doc:"Files of the mesh directory that belong to no cluster, and why."`
	KVStore     *KVStore                        `json:"kvstore" doc:"The local kvstore; null when the agent neither reads nor writes one."`
	OwnCluster  *Cluster                        `json:"ownCluster" doc:"The own cluster as read from its kvstore, in the same form as remote clusters, with all capabilities; null when the agent does not read it."`
	Serving     []Serving                       `json:"serving,omitempty" doc:"The enabled servers of other protocols, such as DNS; absent when there is none."`
	TLS         *transport.ListenerCertificates `json:"tls,omitempty" doc:"The ends of the certificates that the HTTP API and xDS use; absent when they do not use TLS."`
	Description *Description                    `json:"description,omitempty" doc:"The description of the own cluster by manifests or the Kubernetes API; absent when there is no source."`
}

// AgentInfo says who answers.
type AgentInfo struct {
	Version       string    `json:"version"`
	Cluster       string    `json:"cluster" doc:"The own cluster."`
	ClusterID     uint32    `json:"clusterID"`
	Node          string    `json:"node"`
	Started       time.Time `json:"started"`
	Mode          string    `json:"mode" doc:"run, operate or mirror."`
	MeshDirectory string    `json:"meshDirectory" doc:"The mesh directory, with the client files of the remote clusters."`
	Leads         *bool     `json:"leads,omitempty" doc:"Only operate and mirror: whether this process is the leader."`
}

// Summary counts what the lists hold.
type Summary struct {
	Clusters       int `json:"clusters"`
	ClustersReady  int `json:"clustersReady" doc:"The number of clusters that are ready. The data of some of them may be stale."`
	Nodes          int `json:"nodes"`
	Services       int `json:"services" doc:"Items of /v1/services."`
	GlobalServices int `json:"globalServices" doc:"Services that at least one cluster shares."`
	Identities     int `json:"identities"`
	IPs            int `json:"ips" doc:"Prefixes. A prefix that several clusters claim counts once."`
	Conflicts      int `json:"conflicts" doc:"All conflicts, including those that the list leaves out."`

	ByTrouble map[string]int `json:"byTrouble" doc:"The number of clusters by the kind of their worst problem, ready for those that have none. Each cluster counts once."`
}

// KVStore describes the own cluster as it is read from its kvstore: the connection, and what came
// over it. Its fields mean what those of a [Cluster] do.
type KVStore struct {
	State               string                `json:"state" enum:"connecting,syncing,ready,degraded,failed"`
	Ready               bool                  `json:"ready"`
	Connected           bool                  `json:"connected"`
	Message             string                `json:"message" doc:"Why the kvstore is not ready, or why the agent has stopped copying into it."`
	Code                string                `json:"code" doc:"The stable code of the message."`
	Endpoints           []string              `json:"endpoints"`
	EtcdClusterID       string                `json:"etcdClusterID" doc:"Hexadecimal; empty before the first connection."`
	ConfigFile          string                `json:"configFile" doc:"The client file; empty when only addresses are given."`
	WriteOnly           bool                  `json:"writeOnly" doc:"The agent only writes to it. It reads no entries, so none are synced, fresh or counted."`
	Lease               string                `json:"lease" doc:"Empty when the agent only reads: it then has no lease."`
	HeartbeatAgeSeconds *float64              `json:"heartbeatAgeSeconds" doc:"Seconds since the agent last saw a new heartbeat, or since the connection began; null without a connection when the agent has seen no heartbeat, and when writeOnly is set."`
	ProbeInterval       float64               `json:"probeIntervalSeconds,omitempty" doc:"Seconds between two reads that confirm the connection. It grows with the number of nodes. Absent without a connection."`
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
	Written             []Written             `json:"written,omitempty" doc:"The keys that this process keeps in the kvstore, by prefix; absent when it writes none."`
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
	EncryptionKey      uint8             `json:"encryptionKey" doc:"0 means none."`
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
	Global    bool             `json:"global" doc:"Whether at least one cluster shares it."`
	Affinity  string           `json:"affinity" enum:"none,local,remote"`
	Clusters  []ServiceCluster `json:"clusters" doc:"All clusters that publish it."`
	Backends  []Backend        `json:"backends" doc:"The backends, one for each cluster and address."`
}

// ServiceCluster is the part that one cluster has in a service.
type ServiceCluster struct {
	Cluster         string `json:"cluster"`
	Shared          bool   `json:"shared"`
	IncludeExternal bool   `json:"includeExternal"`
	Backends        int    `json:"backends" doc:"How many backends it provides."`
	Reason          string `json:"reason" doc:"Why the agent uses its backends, or not."`
}

// Backend is one address behind a service.
type Backend struct {
	IP          string `json:"ip"`
	Cluster     string `json:"cluster"`
	Ports       []Port `json:"ports"`
	Hostname    string `json:"hostname"`
	Zone        string `json:"zone"`
	Node        string `json:"node" doc:"Empty when its cluster exports no endpoint slices."`
	Ready       bool   `json:"ready" doc:"Whether the cluster publishes it as ready for new connections."`
	Serving     bool   `json:"serving" doc:"Whether it serves connections, also while it terminates."`
	Terminating bool   `json:"terminating" doc:"Whether it terminates."`
	Preferred   bool   `json:"preferred" doc:"Whether the affinity prefers it."`
	Selected    bool   `json:"selected" doc:"Whether the own cluster's traffic goes to it now."`
	Local       bool   `json:"local" doc:"Whether it belongs to the own cluster."`
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
	Ports                         []Port    `json:"ports" doc:"The ports of the service."`
	Created                       time.Time `json:"created" doc:"If exports disagree, the oldest one decides."`
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
	HostIP        string `json:"hostIP" doc:"The IP address of the node behind which the prefix is; empty when the entry has none."`
	EncryptionKey uint8  `json:"encryptionKey" doc:"0 means none."`
	Namespace     string `json:"namespace"`
	Pod           string `json:"pod"`
	Source        string `json:"source"`
	Kind          string `json:"kind" enum:"endpoint,node,pod-cidr,health,ingress"`
	Claims        int    `json:"claims" doc:"How many claims the prefix has."`
}

// Lookup is the answer of /v1/lookup.
type Lookup struct {
	IP          string              `json:"ip"`
	Match       *IP                 `json:"match" doc:"The longest prefix that contains the address; null when no cluster claims the address."`
	Identity    *Identity           `json:"identity" doc:"The match's identity; null when it is not known."`
	Node        *Node               `json:"node" doc:"The node that hosts it; null when it is not known."`
	Services    []ServiceName       `json:"services" doc:"The services that have the address as a backend."`
	Candidates  []Candidate         `json:"candidates" doc:"The claims of prefixes that contain the address, the winner first. For a prefix with more than 128 claims: the best one of each cluster and kind."`
	Why         reasons.Explanation `json:"why" doc:"The evidence for the match, with the keys in the kvstore."`
	Freshness   *Freshness          `json:"freshness" doc:"The time until which the match is known to be true; null without a match."`
	Unconfirmed []string            `json:"unconfirmed" doc:"Clusters whose addresses are not known as of now: they may claim the address, or may have withdrawn a claim."`
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
	Reason string `json:"reason" doc:"The rule that decided."`
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
	Subject  string    `json:"subject" doc:"The subject, unique within the kind: a prefix, a cluster ID or name, the name of a service, CLUSTER/ID of an identity, CLUSTER/RULE of claims."`
	Clusters []string  `json:"clusters" doc:"The clusters that take part, the winner first."`
	Message  string    `json:"message" doc:"The finding and its remedy."`
	Rule     string    `json:"rule" doc:"Why the first cluster wins; empty when none wins."`
	Unlisted int       `json:"unlisted,omitempty" doc:"The number of conflicts of the kind that the list leaves out; present only in the item that reports it."`
	Since    time.Time `json:"since" doc:"When this agent first saw it."`
}

// Event is something that happened: a line of the agent's recent history.
type Event struct {
	ID       uint64            `json:"id" doc:"The number of the event; it increases with each event of this process."`
	Time     time.Time         `json:"time"`
	Cluster  string            `json:"cluster" doc:"Empty when the event is not about one cluster."`
	Kind     string            `json:"kind" doc:"The kind of the event, such as cluster-connected or conflict."`
	Code     string            `json:"code" doc:"The stable code of the finding."`
	Message  string            `json:"message" doc:"The message of the event."`
	Resource string            `json:"resource" doc:"The list that contains the object, such as clusters; empty when the event is not about an object."`
	Name     string            `json:"name" doc:"The name of the object in that list."`
	Evidence map[string]string `json:"evidence" doc:"The values that the finding is based on."`
}

// WatchEvent is the data of an event of /v1/watch.
type WatchEvent struct {
	Resource string `json:"resource"`
	Object   any    `json:"object,omitempty" doc:"An item of the resource's list; fields that change all the time are null. Absent when the event is synced."`
	Revision uint64 `json:"revision" doc:"The revision of the change in the view."`
}

// LogLevel is how much the agent's log tells.
type LogLevel struct {
	Level string `json:"level" enum:"error,warn,info,debug"`
}
