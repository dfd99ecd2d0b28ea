package api

import (
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// ConfigKey is the answer of /v1/config-key.
type ConfigKey struct {
	Key string `json:"key" doc:"The key of configHash, hexadecimal; each process has its own."`
}

// Serving is a server of another protocol that serves the view.
type Serving struct {
	Protocol string `json:"protocol" doc:"The protocol, such as DNS."`
	Address  string `json:"address" doc:"The address of the listener."`
	Requests uint64 `json:"requests" doc:"The number of answered requests since the start."`
	Refused  uint64 `json:"refused" doc:"The number of requests and connections refused because of a limit or, by xDS, because not every cluster was known yet."`
}

// Description is the report of a source on the own cluster.
type Description struct {
	Source  string         `json:"source" doc:"The directory of manifests, or the Kubernetes API."`
	Listed  bool           `json:"listed" doc:"Whether all objects that existed at the start are known."`
	AsOf    *time.Time     `json:"asOf" doc:"The time until which the description is known to equal the source; null when it was never read."`
	Error   string         `json:"error" doc:"Why the agent cannot read the source now; empty while it can."`
	Objects map[string]int `json:"objects" doc:"The number of objects of each kind."`
	Refused []string       `json:"refused" doc:"The objects of the source that the agent cannot use, and why."`
}

// Written is the entries that the process maintains in the own kvstore below one prefix.
type Written struct {
	Prefix    string `json:"prefix"`
	Cluster   string `json:"cluster" doc:"The cluster whose entries they are."`
	Entries   int    `json:"entries" doc:"The number of wanted entries."`
	Pending   int    `json:"pending" doc:"The number of keys whose value in the kvstore is not yet the wanted one, or is not known."`
	Refused   int    `json:"refused" doc:"The number of pending keys that the kvstore has refused; each is retried."`
	LastError string `json:"lastError" doc:"The error of the latest refusal; empty when there is none."`
}

// The states of the agent.
const (
	StateStarting = "starting" // has not been ready yet
	StateReady    = "ready"    // every cluster is ready, and its data fresh
	StateDegraded = "degraded" // serves, but a cluster or the local kvstore has a problem
)

// Status is the answer of /v1/status.
type Status struct {
	Agent       AgentInfo             `json:"agent"`
	State       string                `json:"state" enum:"starting,ready,degraded" doc:"starting: until the agent is ready for the first time. degraded: a cluster is not ready or not fresh, the local kvstore refuses writes, or the agent cannot read the source of the description."`
	Reason      string                `json:"reason" doc:"The problems with their clusters, the worst first, on one line; empty when there are none."`
	Ready       bool                  `json:"ready" doc:"As /readyz."`
	Summary     Summary               `json:"summary"`
	Clusters    []Cluster             `json:"clusters"`
	Impact      *Impact               `json:"impact" doc:"The backends of services in clusters that are not connected, or whose data could not be confirmed for too long; null without such clusters."`
	Ignored     []Ignored             `json:"ignored" doc:"Files of the mesh directory that belong to no cluster, and why."`
	KVStore     *KVStore              `json:"kvstore" doc:"The local kvstore; null when the agent neither reads nor writes one."`
	OwnCluster  *Cluster              `json:"ownCluster" doc:"The own cluster as read from its kvstore, in the same form as remote clusters, with all capabilities; null when the agent does not read it."`
	Serving     []Serving             `json:"serving,omitempty" doc:"The enabled servers of other protocols, such as DNS; absent when there is none."`
	TLS         *ListenerCertificates `json:"tls,omitempty" doc:"The ends of the certificates that the HTTP API and xDS use; absent when they do not use TLS."`
	Description *Description          `json:"description,omitempty" doc:"The description of the own cluster by manifests or the Kubernetes API; absent when there is no source."`
}

// Ignored is a file of the mesh directory that belongs to no cluster.
type Ignored struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// AgentInfo describes the agent that sent the answer.
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

// Summary has the number of items in the lists.
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

// KVStore describes the own cluster as it is read from its kvstore: the connection, and the entries from it. Its
// fields mean the same as those of a [Cluster].
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

// Well reports whether the kvstore is ready, accepts all writes, and has fresh entries, if the agent reads any.
func (k *KVStore) Well() bool {
	return k.Ready && k.State == "ready" && (k.WriteOnly || fresh(&k.Freshness)) &&
		!slices.ContainsFunc(k.Written, func(w Written) bool { return w.Refused > 0 })
}

// ListenerCertificates are the certificates that listeners with TLS use, with future problems of them, or of the files
// on disk.
type ListenerCertificates struct {
	Server          *time.Time `json:"server" doc:"The end of the certificate that the agent shows; null before it listens."`
	Authority       *time.Time `json:"authority" doc:"The first end of the certificates above it in its file; null without any."`
	ClientAuthority *time.Time `json:"clientAuthority" doc:"The last end of the authorities of the clients: no client can connect after it. Null if clients need no certificate."`

	Notices []codes.Notice `json:"notices" doc:"Possible future problems, and files on disk that the agent cannot use, the most severe first. A notice does not change the state."`
}
