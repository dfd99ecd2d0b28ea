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

// phase is how far a session is.
type phase int

const (
	phaseWait    phase = iota // between attempts
	phaseConnect              // reading the file, connecting
	phaseConfig               // waiting for the cluster configuration
	phaseSync                 // canaries, lists, and following
)

// state is what follows from the events of a cluster so far: an event makes another one
// of it. Its zero value is that of a cluster that nothing has happened to.
type state struct {
	phase    phase
	draining bool

	file      string
	endpoints []string
	hash      string // of the file that was read last, hexadecimal; empty when it could not be
	unusable  error  // why the file cannot be used

	open         bool      // a session is open
	since        time.Time // when it was opened; zero while none is
	etcd         string    // cluster ID of the etcd that answered last, hexadecimal
	clusterID    uint32
	answered     uint32 // the ID of the configuration that was read in the session; 0 before
	capabilities *wire.Capabilities
	handing      bool                   // the configuration is being handed to the consumer
	late         map[wire.Resource]bool // whose canaries are overdue; never changed in place
	refusal      error                  // why the present configuration cannot be used
	conflict     *IDConflict            // the one of the last configuration, over lost connections too: they mend nothing

	configAsOf  time.Time    // until when the configuration was known to be in force, at the end of the session before
	heartbeat   time.Time    // when it was last seen, at the end of the session before
	certificate time.Time    // until when the client certificate is valid; zero without one
	next        string       // what a new session would fail with, as the files are
	around      surroundings // of the configuration that is missing in the session
	inVain      bool         // the last session that could be had ended for want of a configuration or a canary

	retryAt     time.Time
	failures    int
	consecutive int
	lastError   error
	lastFailure time.Time
	lastSuccess time.Time
	probeError  error // of the last probe; nil when it succeeded
	lost        error // why the connection was lost last; nil when it was not, or by ourselves
	fault       fault // the last one
	panics      int

	contact contact
}

// event is something that happens to a cluster: it changes a copy of the state.
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

// entered: the session is as far as this.
func entered(p phase) event {
	return func(s *state, _ time.Time) { s.phase = p }
}

// fileRead: the client file can be used.
func fileRead(endpoints []string, hash [32]byte) event {
	return func(s *state, _ time.Time) {
		s.endpoints, s.hash, s.unusable = endpoints, hexadecimal(hash), nil
	}
}

// fileUnread: the client file cannot be used, or, with a zero hash, not be read.
// Why follows as [attemptFailed].
func fileUnread(hash [32]byte) event {
	return func(s *state, _ time.Time) { s.hash = hexadecimal(hash) }
}

// hexadecimal is empty for nothing.
func hexadecimal(hash [32]byte) string {
	if hash == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(hash[:])
}

// opened: there is a session, whose server answered last at that time. etcd is its
// cluster ID, hexadecimal; empty when it is not known.
func opened(answered time.Time, etcd string) event {
	return func(s *state, now time.Time) {
		s.open, s.since, s.probeError, s.answered, s.lastSuccess, s.around = true, now, nil, 0, answered, surroundings{}
		s.etcd = cmp.Or(etcd, s.etcd)
	}
}

// certificateRead: the client certificate is valid until then, and a new session would fail with this; empty: it
// would not.
func certificateRead(until time.Time, next string) event {
	return func(s *state, _ time.Time) { s.certificate, s.next = until, next }
}

// ended: the session is over. The heartbeat was last seen, and the configuration known
// to be in force, at these times.
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

// attemptFailed: an attempt, or a session, has ended; the next begins after a pause.
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
			return // the same configuration, looked at again
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

// handing: whether the configuration is being handed to the consumer.
func handing(yes bool) event {
	return func(s *state, _ time.Time) { s.handing = yes }
}

// configAdopted: the sources run with this configuration from now on.
func configAdopted(c wire.ClusterConfig) event {
	return func(s *state, _ time.Time) {
		s.phase, s.clusterID, s.capabilities, s.refusal, s.consecutive = phaseSync, c.ID, &c.Capabilities, nil, 0
		s.conflict, s.answered = nil, c.ID
		s.contact.made()
	}
}

// canaryOverdue: whether a resource is used without its canary.
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

// drained: nothing of the cluster is left that carries its ID.
func drained(s *state, _ time.Time) { s.clusterID = 0 }

// timePassed: the backends are withheld if it is time.
func timePassed(ttl time.Duration) event {
	return func(s *state, now time.Time) {
		if due := s.contact.due(ttl); !due.IsZero() && !now.Before(due) {
			s.contact.withheld = now
			s.contact.times++
		}
	}
}

// allSynced: every source follows, or there will be none any more: backends that
// are withheld are not any longer.
func allSynced(s *state, _ time.Time) { s.contact.withheld = time.Time{} }
