package kvstore

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Status describes a session at one moment (spec kvstore.md §2.6). Times are
// zero when the event has not happened yet.
type Status struct {
	// Endpoint is the endpoint of this session, as in the configuration.
	Endpoint string
	// EtcdClusterID is the etcd cluster ID that the session is pinned to, 0 before the first answer.
	EtcdClusterID uint64
	// Connected: the session is not over, and the last linearizable read succeeded.
	Connected bool
	// Quorum: the last linearizable read succeeded.
	Quorum bool
	// Head is the position of the last linearizable read that succeeded.
	Head Position
	// ProbeInterval is the time between two linearizable reads, at the current size of the own cluster.
	ProbeInterval time.Duration

	// Leases is the number of leases of keys, LockLeases the number of leases of locks, and
	// Locks the number of held locks, without those that are known to be lost.
	Leases, LockLeases, Locks int

	// Certificates are those of the current connection; zero without TLS.
	Certificates Certificates
	// Server is the status that the endpoint last reported about itself.
	Server ServerStatus
	// Heartbeat is the state of the writer of the heartbeat.
	Heartbeat HeartbeatStatus

	// ConnectedSince is when the session began.
	ConnectedSince time.Time
	// LastSuccess is when a linearizable read last succeeded, and ConsecutiveErrors is the
	// number of the watchdog's reads that have failed since.
	LastSuccess       time.Time
	ConsecutiveErrors int
	// LastError is the text of the last error of the watchdog or the connection, and
	// LastErrorAt the time of that error. They stay after a recovery.
	LastError   string
	LastErrorAt time.Time
}

// Certificates are the certificates with which the server of a connection was accepted.
type Certificates struct {
	// Chain begins with the server's certificate and ends with that of the authority. Without verification
	// (insecure-skip-tls-verify) it has only the server's certificate. It must not be changed.
	Chain []*x509.Certificate
	At    time.Time // of the handshake
}

// Server returns the end of the validity of the server's certificate; zero without a certificate.
func (c Certificates) Server() time.Time {
	if len(c.Chain) == 0 {
		return time.Time{}
	}
	return c.Chain[0].NotAfter
}

// Authority returns until when all certificates above the server's are valid; zero without any.
func (c Certificates) Authority() (until time.Time) {
	for i, one := range c.Chain {
		if i > 0 && (until.IsZero() || one.NotAfter.Before(until)) {
			until = one.NotAfter
		}
	}
	return until
}

// ServerStatus is the answer of one etcd member about itself.
type ServerStatus struct {
	// Version of the server, such as "3.6.12"; empty while unknown.
	Version string
	// Faults describes the known faults of that version ([DescribeFaults]); empty for none.
	Faults string
	// MemberID is the ID of the member that answered; Leader reports whether it is the leader.
	MemberID uint64
	Leader   bool
	// DBSize is the size of the database file in bytes, including deleted data until an operator
	// defragments the file. DBInUse is the size in use in bytes, including old revisions that are
	// not compacted yet; 0 when the server does not report it.
	DBSize, DBInUse int64
	// DBQuota is the size in bytes at which the server refuses to write; 0 when the server does
	// not report it (before 3.6).
	DBQuota int64
	// Alarms are the alarms that the member reports, such as a full disk.
	Alarms []string
	// Error is why there is no status of the server, or no newer one.
	Error string
	// AskedAt is when the last answered request was sent.
	AskedAt time.Time
}

// NoSpace reports whether the member has raised the alarm NOSPACE: it refuses all writes.
func (s ServerStatus) NoSpace() bool {
	return slices.ContainsFunc(s.Alarms, func(a string) bool { return strings.Contains(a, "NOSPACE") })
}

// Observe records a heartbeat that was written at a revision, unless it is already known.
func (h *HeartbeatStatus) Observe(now time.Time, revision int64) {
	if revision > h.Revision {
		h.Seen, h.Revision = now, revision
	}
}

// AgeHeartbeat sets the age of the heartbeat at a moment. One that is older than limit is stale.
func (s *Status) AgeHeartbeat(now time.Time, limit time.Duration) {
	since := s.Heartbeat.Seen
	if since.IsZero() {
		since = s.ConnectedSince
	}
	if !since.IsZero() {
		s.Heartbeat.Age = now.Sub(since)
		s.Heartbeat.Stale = s.Heartbeat.Age > limit
	}
}

// HeartbeatStatus is evidence about the writer of the heartbeat key, not about
// etcd: a stale heartbeat degrades a cluster and never ends a session.
type HeartbeatStatus struct {
	// Seen is when a write of the key was last observed, or when the key was found at the
	// start of the session; zero when never.
	Seen time.Time
	// Revision is the revision of that write, 0 for none.
	Revision int64
	// Age is the time since Seen, or without one since the start of the session; Stale: Age is above the limit.
	Age   time.Duration
	Stale bool
}

// String returns the status in one line, for people.
func (s Status) String() string {
	var b strings.Builder
	state := "disconnected"
	if s.Connected {
		state = "connected"
	}
	fmt.Fprintf(&b, "etcd: %s: %s", s.Endpoint, state)
	if s.EtcdClusterID != 0 {
		fmt.Fprintf(&b, ", ID: %x", s.EtcdClusterID)
	}
	fmt.Fprintf(&b, ", leases=%d, lock leases=%d, has-quorum=%t", s.Leases, s.LockLeases, s.Quorum)
	if v := s.Server.Version; v != "" {
		fmt.Fprintf(&b, ", version %s", v)
		if s.Server.Leader {
			b.WriteString(" (leader)")
		}
		fmt.Fprintf(&b, ", %.1f MiB", float64(s.Server.DBSize)/(1<<20))
	}
	if s.Server.Error != "" {
		fmt.Fprintf(&b, ", endpoint status: %s", s.Server.Error)
	}
	for _, a := range s.Server.Alarms {
		fmt.Fprintf(&b, ", alarm: %s", a)
	}
	b.WriteString(s.heartbeatText())
	if s.ConsecutiveErrors > 0 {
		fmt.Fprintf(&b, ", %d consecutive errors", s.ConsecutiveErrors)
	}
	if !s.Connected && s.LastError != "" {
		fmt.Fprintf(&b, ", last error: %s", s.LastError)
	}
	return b.String()
}

func (s Status) heartbeatText() string {
	age := s.Heartbeat.Age.Round(time.Second)
	switch {
	case s.Heartbeat.Stale && s.Heartbeat.Seen.IsZero():
		return fmt.Sprintf(", heartbeat never seen (for %s)", age)
	case s.Heartbeat.Stale:
		return fmt.Sprintf(", heartbeat stale (%s ago)", age)
	case s.Heartbeat.Seen.IsZero():
		return ""
	default:
		return fmt.Sprintf(", heartbeat %s ago", age)
	}
}

// Probe is one linearizable read of the watchdog. When it succeeded, everything
// that was written before At is at or before Head: a copy that has reached Head
// equals the server's contents as of At.
type Probe struct {
	// At is a time before the read began.
	At time.Time
	// Head is the position that the read returned; zero when it failed.
	Head Position
	// Err is why the read failed, nil when it succeeded.
	Err error
}
