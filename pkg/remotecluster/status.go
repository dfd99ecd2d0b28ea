package remotecluster

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// State is that of a cluster.
type State string

// The states of a cluster, as interface.md names them.
const (
	// Connecting: no session yet, or the one before was lost before the first complete copy.
	Connecting State = "connecting"
	// Syncing: a session runs, but not every resource has been listed yet.
	Syncing State = "syncing"
	// Ready: every resource is visible and the session is well.
	Ready State = "ready"
	// Degraded: what was once complete is kept and shown, but the session is
	// lost or something is wrong with it. The message says what.
	Degraded State = "degraded"
	// Failed: the cluster cannot be used until somebody changes something: an
	// unusable file, an invalid name or configuration, a cluster ID in conflict.
	Failed State = "failed"
	// Removing: its file is gone and its entries are being withdrawn.
	Removing State = "removing"
)

// SourceStatus describes one resource of one cluster.
type SourceStatus struct {
	// Exported is false when the cluster says that it does not export the resource, which
	// then counts as synced. What is kept of an earlier time goes when the others are synced.
	Exported bool
	// Late: the canary is overdue, and the cluster is used without the resource, which has
	// only details of what others bring; or it is optional, and is not followed now.
	Late            bool
	Synced          bool                // a complete list has been applied since the cluster was added; it stays when the connection is lost
	Read, Total     int                 // keys that the list under way has brought, and that there were at its revision; 0 for unknown
	Count, Rejected int                 // keys that are accepted, and that are refused for their value
	Rejections      map[wire.Reason]int // Rejected by reason
	Example         store.Refusal       // one of the refused keys; its zero value is none
	Over            store.Over          // which limits of the budget the keys exceed
	Freshness       Freshness
	Why             string        // what stands in the way of an optional resource, in a person's words; empty for all others
	Lag             store.Lag     // how long events took from their receipt until they were visible
	SyncDuration    time.Duration // how long the first complete list took
}

// Status is everything that is known about one cluster, at one moment.
type Status struct {
	Name           string
	ID             uint32 // 0 until its configuration was read
	State          State
	Ready          bool
	Connected      bool
	Cached         bool
	Message        string     // why it is not ready, in a person's words; empty when all is well
	Code           codes.Code // of what the message says
	Cause          codes.Code // of the error that the message ends with; empty for none, or one that is not known
	Endpoints      []string
	EtcdClusterID  string // hexadecimal; empty before the first session
	AnsweredID     uint32 // what its configuration says in the present session, also when it cannot have it; 0 until that was read
	ConfigFile     string
	ConfigHash     string             // of the contents of that file and of those that it names (clientfile.Fingerprint), hexadecimal; empty when it cannot be read
	Capabilities   *wire.Capabilities // nil until its configuration was read
	Sources        map[wire.Resource]SourceStatus
	Failures       int // attempts and sessions that ended in an error, in all
	LastFailure    time.Time
	LastError      string
	LastLoss       string    // why Connected became false last, from that moment on; empty when it never did, or by ourselves
	ConnectedSince time.Time // zero while not connected
	LastEvent      time.Time // when the last batch of events arrived
	LastSuccess    time.Time // when the endpoint last answered a linearizable read
	ConsecFailures int       // failures since the last success
	Panics         int       // internal errors that ended work on the cluster
	// Certificate is until when the client certificate is valid that a new session
	// would have; zero without one, and before the first session.
	Certificate time.Time
	// ServerCertificate is until when the certificate of the etcd is valid, as the present session has it, and
	// AuthorityCertificate until when those above it in its chain are; zero without TLS or a session.
	ServerCertificate, AuthorityCertificate time.Time
	// ServerVersion is that of the etcd, such as "3.6.12"; empty while it is not known.
	ServerVersion string
	// Notices are what will, or may, go wrong. They change neither the state nor the freshness.
	Notices []Notice
	// Heartbeat is the evidence for somebody who writes the cluster's state; without a
	// connection what was last seen of it, which is never stale.
	Heartbeat kvstore.HeartbeatStatus
	// ProbeInterval is the time between two linearizable reads of the session, at the
	// present size of the own cluster; zero without one.
	ProbeInterval time.Duration
	// NoSpace: the etcd says that it has no space, and refuses all writes.
	NoSpace bool
	// IDConflict is why the cluster cannot have its ID; nil when it can. It stays
	// while the connection is lost.
	IDConflict *IDConflict
	// Withheld is since when its service backends are not used for want of
	// contact, zero while they are; Revocations is how often that was so.
	Withheld    time.Time
	Revocations int
	// Outlook is what the disconnect policy makes of the cluster; nil without one.
	// Whoever runs several clusters fills it in.
	Outlook *disconnect.Outlook
}

// String is a line for a person: "east: ready", with why it is not.
func (s Status) String() string {
	text := s.Name + ": " + string(s.State)
	if s.Message != "" {
		text += ", " + s.Message
	}
	return text
}
