package kvstore

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Status describes a session at one moment (spec kvstore.md §2.6). Times are
// zero when the thing has not happened yet.
type Status struct {
	// Endpoint is the one that this session uses, as in the configuration.
	Endpoint string
	// EtcdClusterID is the one that the session is pinned to, 0 before the first answer.
	EtcdClusterID uint64
	// Connected: the session is not over, and the last linearizable read succeeded.
	Connected bool
	// Quorum: the last linearizable read succeeded.
	Quorum bool
	// Head is the position of the last linearizable read that succeeded.
	Head Position
	// ProbeInterval is the time between two of them, at the present size of the own cluster.
	ProbeInterval time.Duration

	// Leases is the number of leases that keys are tied to, LockLeases that of
	// locks, and Locks how many locks are held: one that is known to be lost is not.
	Leases, LockLeases, Locks int

	// Certificates are those of the present connection; zero without TLS.
	Certificates Certificates
	// Server is what the endpoint said about itself when last asked.
	Server ServerStatus
	// Heartbeat is what is known about the writer of the heartbeat.
	Heartbeat HeartbeatStatus

	// ConnectedSince is when the session began.
	ConnectedSince time.Time
	// LastSuccess is when a linearizable read last succeeded, and ConsecutiveErrors counts
	// those of the watchdog that have failed since.
	LastSuccess       time.Time
	ConsecutiveErrors int
	// LastError is the text of the last error of the watchdog or the connection, and
	// LastErrorAt when it was seen. They stay after a recovery.
	LastError   string
	LastErrorAt time.Time
}

// Certificates are those by which the server of a connection was accepted.
type Certificates struct {
	// Chain begins with the server's own and ends with that of the authority; that alone of the server where nobody
	// verifies it (insecure-skip-tls-verify). It is not changed.
	Chain []*x509.Certificate
	At    time.Time // of the handshake
}

// Server is until when the server's certificate is valid; zero without one.
func (c Certificates) Server() time.Time {
	if len(c.Chain) == 0 {
		return time.Time{}
	}
	return c.Chain[0].NotAfter
}

// Authority is until when those above the server's are all valid; zero without one.
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
	// Faults are what is known to be wrong with that version ([DescribeFaults]); empty for nothing.
	Faults string
	// MemberID is the member that answers; Leader reports whether it leads.
	MemberID uint64
	Leader   bool
	// DBSize is the size of the database file in bytes, with what is deleted until somebody
	// defragments it. DBInUse is what of it is in use, with old revisions that are not
	// compacted yet; 0 when the server does not report it.
	DBSize, DBInUse int64
	// DBQuota is the size at which the server refuses to write; 0 when it does not report it,
	// as before 3.6.
	DBQuota int64
	// Alarms are what the member complains about, such as a full disk.
	Alarms []string
	// Error is why nothing is known, or nothing newer.
	Error string
	// AskedAt is when the last question was asked that was answered.
	AskedAt time.Time
}

// NoSpace reports whether the member complains that it has no space: it refuses all writes.
func (s ServerStatus) NoSpace() bool {
	return slices.ContainsFunc(s.Alarms, func(a string) bool { return strings.Contains(a, "NOSPACE") })
}

// HeartbeatStatus is evidence about the writer of the heartbeat key, not about
// etcd: a stale one degrades a cluster and never ends a session.
type HeartbeatStatus struct {
	// Seen is when the key was last seen to be written, or found present at
	// the beginning; zero when never.
	Seen time.Time
	// Revision is that of the write that was seen, 0 for none.
	Revision int64
	// Age is the time since Seen, or since the session began; Stale: it is above the limit.
	Age   time.Duration
	Stale bool
}

// String returns the one-line form, for people.
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
	// At was taken before the read began.
	At time.Time
	// Head is the position that the read saw; zero when it failed.
	Head Position
	// Err is why it failed, nil when it succeeded.
	Err error
}
