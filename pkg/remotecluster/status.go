package remotecluster

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// State is the state of a cluster.
type State string

// The states of a cluster, as interface.md names them.
const (
	// Connecting: no session yet, or the previous one was lost before the first complete copy.
	Connecting State = "connecting"
	// Syncing: a session runs, but not every resource has been listed yet.
	Syncing State = "syncing"
	// Ready: every resource is visible and the session has no problem.
	Ready State = "ready"
	// Degraded: the copy was complete once, and is kept and shown, but the session
	// is lost or has a problem. The message describes it.
	Degraded State = "degraded"
	// Failed: the cluster cannot be used until the user corrects something: an
	// unusable file, an invalid name or configuration, a cluster ID in conflict.
	Failed State = "failed"
	// Removing: its file is gone and its entries are being withdrawn.
	Removing State = "removing"
)

// FamilyStatus describes one resource of one cluster.
type FamilyStatus struct {
	// Exported is false when, by its configuration, the cluster does not export the resource,
	// which then counts as synced. Entries from earlier are withdrawn when the other resources are synced.
	Exported bool
	// Late: the canary is overdue, and the cluster is used without the resource, which has
	// only details of other resources; or the resource is optional, and is not followed now.
	Late            bool
	Synced          bool                // a complete list has been applied since the cluster was added; it stays when the connection is lost
	Read, Total     int                 // keys that the present list has read so far, and the number of keys at its revision; 0 for unknown
	Count, Rejected int                 // keys that are accepted, and keys that are refused because of their value
	Rejections      map[wire.Reason]int // Rejected by reason
	Example         store.Refusal       // one of the refused keys; the zero value means none
	Over            store.Over          // which limits of the budget the keys exceed
	Freshness       Freshness
	Why             string        // why an optional resource is not followed, as text for the user; empty for all others
	Lag             store.Lag     // time from the receipt of events until they were visible
	SyncDuration    time.Duration // how long the first complete list took
}

// Status describes one cluster completely, at one moment.
type Status struct {
	Name           string
	ID             uint32 // 0 until its configuration was read
	State          State
	Ready          bool
	Connected      bool
	Cached         bool
	Message        string     // why the cluster is not ready, as text for the user; empty when there is no problem
	Code           codes.Code // of the finding in Message
	Cause          codes.Code // of the error at the end of Message; empty for none, or for an unknown error
	Endpoints      []string
	EtcdClusterID  string // hexadecimal; empty before the first session
	AnsweredID     uint32 // the ID in its configuration in the present session, also when the cluster cannot have it; 0 until the configuration was read
	ConfigFile     string
	ConfigHash     string             // of the contents of that file and of the files that it names (clientfile.Fingerprint), hexadecimal; empty when the file cannot be read
	Capabilities   *wire.Capabilities // nil until its configuration was read
	Families       map[wire.Resource]FamilyStatus
	Failures       int // number of all attempts and sessions that ended in an error
	LastFailure    time.Time
	LastError      string
	LastLoss       string    // why Connected last became false; empty when it never did, or when this process ended the session
	ConnectedSince time.Time // zero while not connected
	LastEvent      time.Time // when the last batch of events arrived
	LastSuccess    time.Time // when the endpoint last answered a linearizable read
	ConsecFailures int       // failures since the last success
	Panics         int       // internal errors that ended work on the cluster
	// Certificate is when the client certificate expires that a new session would
	// use; zero without one, and before the first session.
	Certificate time.Time
	// ServerCertificate is when the etcd's certificate in the present session expires, and AuthorityCertificate
	// when the first certificate above it in its chain expires; zero without TLS or a session.
	ServerCertificate, AuthorityCertificate time.Time
	// ServerVersion is the version of the etcd, such as "3.6.12"; empty while unknown.
	ServerVersion string
	// Notices are about problems that will, or may, occur. They change neither the state nor the freshness.
	Notices []Notice
	// Heartbeat shows whether the writer of the cluster's state runs. Without a
	// connection it has the time of the last heartbeat, and is never stale.
	Heartbeat kvstore.HeartbeatStatus
	// ProbeInterval is the time between two linearizable reads of the session, at the
	// present size of the own cluster; zero without a session.
	ProbeInterval time.Duration
	// NoSpace: the etcd reports that it has no space, and refuses all writes.
	NoSpace bool
	// IDConflict is why the cluster cannot have its ID; nil when it can. It is kept
	// while the connection is lost.
	IDConflict *IDConflict
	// Withheld is since when its service backends are not used because there is no
	// contact, zero while they are used; Revocations is how often they were withheld.
	Withheld    time.Time
	Revocations int
	// Forecast is the decision of the disconnect policy about the cluster; nil without a
	// policy. The owner of several clusters, such as pkg/clustermesh, fills it in.
	Forecast *disconnect.Forecast
}

// String returns one line for the user, such as "east: ready", with the reason if the cluster is not ready.
func (s Status) String() string {
	text := s.Name + ": " + string(s.State)
	if s.Message != "" {
		text += ", " + s.Message
	}
	return text
}
