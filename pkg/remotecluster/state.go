package remotecluster

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
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

// state is what follows from the events of a cluster so far. It is immutable: an
// event makes another one of it. Its zero value is that of a cluster that nothing
// has happened to.
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

	configAsOf  time.Time // until when the configuration was known to be in force, at the end of the session before
	heartbeat   time.Time // when it was last seen, at the end of the session before
	certificate time.Time // until when the client certificate is valid; zero without one
	inVain      bool      // the last session that could be had ended for want of a configuration or a canary

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

// event is something that happens to a cluster. apply returns the state after it.
type event interface {
	apply(s state, now time.Time) state
}

// started: the controller runs with this client file.
type started struct{ file string }

func (e started) apply(s state, _ time.Time) state {
	s.file, s.unusable, s.refusal, s.draining = e.file, nil, nil, false
	return s
}

// entered: the session is as far as this.
type entered struct{ phase phase }

func (e entered) apply(s state, _ time.Time) state {
	s.phase = e.phase
	return s
}

// fileRead: the client file can be used.
type fileRead struct {
	endpoints []string
	hash      [32]byte
}

func (e fileRead) apply(s state, _ time.Time) state {
	s.endpoints, s.hash, s.unusable = e.endpoints, hexadecimal(e.hash), nil
	return s
}

// fileUnread: the client file cannot be used, or, with a zero hash, not be read.
// Why follows as [attemptFailed].
type fileUnread struct{ hash [32]byte }

func (e fileUnread) apply(s state, _ time.Time) state {
	s.hash = hexadecimal(e.hash)
	return s
}

// hexadecimal is empty for nothing.
func hexadecimal(hash [32]byte) string {
	if hash == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(hash[:])
}

// opened: there is a session.
type opened struct {
	answered time.Time // when the server last answered
	etcd     string    // its cluster ID, hexadecimal; empty when it is not known
}

func (e opened) apply(s state, now time.Time) state {
	s.open, s.since, s.probeError, s.answered, s.lastSuccess = true, now, nil, 0, e.answered
	if e.etcd != "" {
		s.etcd = e.etcd
	}
	return s
}

// certificateRead: the client certificate is valid until then.
type certificateRead struct{ until time.Time }

func (e certificateRead) apply(s state, _ time.Time) state {
	s.certificate = e.until
	return s
}

// ended: the session is over.
type ended struct {
	why        error
	heartbeat  time.Time // when it was last seen
	configAsOf time.Time // until when the configuration was known to be in force
}

func (e ended) apply(s state, now time.Time) state {
	_, s.inVain = errors.AsType[*overdue](e.why)
	if s.lost = e.why; errors.Is(e.why, context.Canceled) {
		s.lost = nil
	}
	s.heartbeat, s.configAsOf = e.heartbeat, e.configAsOf
	s.contact.broke(now)
	s.open, s.since, s.refusal, s.probeError = false, time.Time{}, nil, nil
	return s
}

// attemptFailed: an attempt, or a session, has ended; the next begins after a pause.
type attemptFailed struct {
	err   error
	pause time.Duration
}

func (e attemptFailed) apply(s state, now time.Time) state {
	s.phase, s.retryAt = phaseWait, now.Add(e.pause)
	s.failures++
	s.consecutive++
	s.lastError, s.lastFailure = e.err, now
	if f := faultOf(e.err, now); f.err != nil {
		s.fault = f
	}
	if u, ok := errors.AsType[*unusable](e.err); ok {
		s.unusable = u.error
	}
	return s
}

// configRefused: the configuration that was read cannot be used.
type configRefused struct{ err error }

func (e configRefused) apply(s state, now time.Time) state {
	if s.refusal != nil && s.refusal.Error() == e.err.Error() {
		return s // the same configuration, looked at again
	}
	s.failures++
	s.consecutive++
	if s.conflict, _ = errors.AsType[*IDConflict](e.err); s.conflict != nil {
		s.answered = s.conflict.ID
	}
	s.refusal, s.lastError, s.lastFailure = e.err, e.err, now
	s.contact.made()
	return s
}

// handing: whether the configuration is being handed to the consumer.
type handing bool

func (e handing) apply(s state, _ time.Time) state {
	s.handing = bool(e)
	return s
}

// configAdopted: the sources run with this configuration from now on.
type configAdopted struct{ config wire.ClusterConfig }

func (e configAdopted) apply(s state, _ time.Time) state {
	s.phase, s.clusterID, s.capabilities, s.refusal, s.consecutive = phaseSync, e.config.ID, &e.config.Capabilities, nil, 0
	s.conflict, s.answered = nil, e.config.ID
	s.contact.made()
	return s
}

// canaryOverdue: whether a resource is used without its canary.
type canaryOverdue struct {
	resource wire.Resource
	yes      bool
}

func (e canaryOverdue) apply(s state, _ time.Time) state {
	late := maps.Clone(s.late)
	if late == nil {
		late = make(map[wire.Resource]bool)
	}
	late[e.resource] = e.yes
	s.late = late
	return s
}

// probed: a linearizable read has ended.
type probed struct{ kvstore.Probe }

func (e probed) apply(s state, _ time.Time) state {
	if s.probeError = e.Err; e.Err == nil {
		s.lastSuccess = e.At
	} else {
		s.lost = e.Err
	}
	return s
}

// panicked: an internal error has ended work on the cluster.
type panicked struct{}

func (panicked) apply(s state, _ time.Time) state {
	s.panics++
	return s
}

// removalBegun: the client file is gone.
type removalBegun struct{}

func (removalBegun) apply(s state, _ time.Time) state {
	s.draining, s.conflict = true, nil
	return s
}

// drained: nothing of the cluster is left that carries its ID.
type drained struct{}

func (drained) apply(s state, _ time.Time) state {
	s.clusterID = 0
	return s
}

// timePassed: the backends are withheld if it is time.
type timePassed struct{ ttl time.Duration }

func (e timePassed) apply(s state, now time.Time) state {
	s.contact.expire(e.ttl, now)
	return s
}

// allSynced: every source follows, or there will be none any more: backends that
// are withheld are not any longer.
type allSynced struct{}

func (allSynced) apply(s state, _ time.Time) state {
	s.contact.takeBack()
	return s
}
