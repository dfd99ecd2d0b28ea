package remotecluster

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// phase is the step that a session has reached.
type phase int

const (
	phaseWait    phase = iota // between attempts
	phaseConnect              // reading the file, connecting
	phaseConfig               // waiting for the cluster configuration
	phaseSync                 // canaries, lists, and following
)

// state is the result of all events of a cluster so far: each event makes a new state of the
// previous one. The zero value is the state before the first event.
type state struct {
	phase    phase
	draining bool

	file      string
	endpoints []string
	hash      string // of the file that was read last, hexadecimal; empty when it could not be read
	unusable  error  // why the file cannot be used

	open         bool      // a session is open
	since        time.Time // when it was opened; zero while none is open
	etcd         string    // cluster ID of the etcd that answered last, hexadecimal
	clusterID    uint32
	answered     uint32 // the ID in the configuration that was read in the session; 0 before
	capabilities *wire.Capabilities
	handing      bool                   // the configuration is being handed to the consumer
	late         map[wire.Resource]bool // resources whose canaries are overdue; never changed in place
	refusal      error                  // why the present configuration cannot be used
	conflict     *IDConflict            // the conflict of the last configuration; kept when the connection is lost, which resolves nothing

	configAsOf  time.Time    // last time at which the configuration was known to be in force, from the end of the previous session
	heartbeat   time.Time    // when it was last seen, from the end of the previous session
	certificate time.Time    // when the client certificate expires; zero without one
	next        string       // the error of a new session with the present files; empty for none
	around      surroundings // other contents of the etcd while the configuration is missing in the session
	inVain      bool         // the last session ended because a configuration or a canary was missing

	retryAt     time.Time
	failures    int
	consecutive int
	lastError   error
	lastFailure time.Time
	lastSuccess time.Time
	probeError  error // error of the last probe; nil when it succeeded
	lost        error // why the connection was last lost; nil when it was not, or when this process ended it
	fault       fault // the last fault
	panics      int

	contact contact
}

// event is a change of a cluster's state. It is applied to a copy of the state.
type event func(s *state, now time.Time)

// after returns the state after an event.
func (s state) after(e event, now time.Time) state {
	e(&s, now)
	return s
}

// started: the controller runs with this client file.
func started(file string) event {
	return func(s *state, _ time.Time) {
		s.file, s.unusable, s.refusal, s.draining = file, nil, nil, false
	}
}

// entered: the session has reached this phase.
func entered(p phase) event {
	return func(s *state, _ time.Time) { s.phase = p }
}

// fileRead: the client file can be used.
func fileRead(endpoints []string, hash [32]byte) event {
	return func(s *state, _ time.Time) {
		s.endpoints, s.hash, s.unusable = endpoints, hexadecimal(hash), nil
	}
}

// fileUnread: the client file cannot be used; if the hash is zero, it cannot be read.
// The reason follows in [attemptFailed].
func fileUnread(hash [32]byte) event {
	return func(s *state, _ time.Time) { s.hash = hexadecimal(hash) }
}

// hexadecimal returns the hash in hexadecimal form; empty for a zero hash.
func hexadecimal(hash [32]byte) string {
	if hash == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(hash[:])
}

// opened: a session is open, whose server last answered at the given time. etcd is the
// cluster ID of the etcd, hexadecimal; empty when unknown.
func opened(answered time.Time, etcd string) event {
	return func(s *state, now time.Time) {
		s.open, s.since, s.probeError, s.answered, s.lastSuccess, s.around = true, now, nil, 0, answered, surroundings{}
		s.etcd = cmp.Or(etcd, s.etcd)
	}
}

// certificateRead: the client certificate is valid until the given time. next is the error that a new session would
// fail with; empty for none.
func certificateRead(until time.Time, next string) event {
	return func(s *state, _ time.Time) { s.certificate, s.next = until, next }
}

// ended: the session has ended. The times are when the heartbeat was last seen, and when the
// configuration was last known to be in force.
func ended(why error, heartbeat, configAsOf time.Time) event {
	return func(s *state, now time.Time) {
		_, s.inVain = errors.AsType[*overdue](why)
		if s.lost = why; errors.Is(why, context.Canceled) {
			s.lost = nil
		}
		s.heartbeat, s.configAsOf = heartbeat, configAsOf
		if s.contact.ever && s.contact.lost.IsZero() {
			s.contact.lost = now
		}
		s.open, s.since, s.refusal, s.probeError = false, time.Time{}, nil, nil
	}
}

// attemptFailed: an attempt or a session has ended with an error; the next attempt begins after the pause.
func attemptFailed(err error, pause time.Duration) event {
	return func(s *state, now time.Time) {
		s.phase, s.retryAt = phaseWait, now.Add(pause)
		s.failures++
		s.consecutive++
		s.lastError, s.lastFailure = err, now
		if f := faultOf(err, now); f.err != nil {
			s.fault = f
		}
		if u, ok := errors.AsType[*unusable](err); ok {
			s.unusable = u.error
		}
	}
}

// configRefused: the configuration that was read cannot be used.
func configRefused(err error) event {
	return func(s *state, now time.Time) {
		if s.refusal != nil && s.refusal.Error() == err.Error() {
			return // the same configuration was checked again
		}
		s.failures++
		s.consecutive++
		if s.conflict, _ = errors.AsType[*IDConflict](err); s.conflict != nil {
			s.answered = s.conflict.ID
		}
		s.refusal, s.lastError, s.lastFailure = err, err, now
		s.contact.made()
	}
}

// handing: the hand-over of the configuration to the consumer has begun (true) or ended (false).
func handing(yes bool) event {
	return func(s *state, _ time.Time) { s.handing = yes }
}

// configAdopted: the families run with this configuration from now on.
func configAdopted(c wire.ClusterConfig) event {
	return func(s *state, _ time.Time) {
		s.phase, s.clusterID, s.capabilities, s.refusal, s.consecutive = phaseSync, c.ID, &c.Capabilities, nil, 0
		s.conflict, s.answered = nil, c.ID
		s.contact.made()
	}
}

// canaryOverdue: the canary of a resource is overdue (true), or no longer (false).
func canaryOverdue(r wire.Resource, yes bool) event {
	return func(s *state, _ time.Time) {
		late := map[wire.Resource]bool{r: yes}
		for other, is := range s.late {
			if other != r {
				late[other] = is
			}
		}
		s.late = late
	}
}

// probed: a linearizable read has ended.
func probed(p kvstore.Probe) event {
	return func(s *state, _ time.Time) {
		if s.probeError = p.Err; p.Err == nil {
			s.lastSuccess = p.At
		} else {
			s.lost = p.Err
		}
	}
}

// panicked: an internal error has ended work on the cluster.
func panicked(s *state, _ time.Time) { s.panics++ }

// removalBegun: the client file is gone.
func removalBegun(s *state, _ time.Time) { s.draining, s.conflict = true, nil }

// drained: no entry with the cluster's ID is left.
func drained(s *state, _ time.Time) { s.clusterID = 0 }

// timePassed: the backends are withheld if the cache TTL has passed.
func timePassed(ttl time.Duration) event {
	return func(s *state, now time.Time) {
		if due := s.contact.due(ttl); !due.IsZero() && !now.Before(due) {
			s.contact.withheld = now
			s.contact.times++
		}
	}
}

// allSynced: every family follows, or all families were drained: the backends are no longer withheld.
func allSynced(s *state, _ time.Time) { s.contact.withheld = time.Time{} }
