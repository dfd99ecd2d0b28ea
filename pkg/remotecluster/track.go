package remotecluster

import (
	"context"
	"encoding/hex"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// phase is where a session stands.
type phase int

const (
	phaseWait    phase = iota // between attempts
	phaseConnect              // reading the file, connecting
	phaseConfig               // waiting for the cluster configuration
	phaseSync                 // canaries, lists, and following
)

// tracker is what a controller knows of itself, for Status. What mu guards
// stands below it.
type tracker struct {
	changed func() // called after each change but those of probes

	mu           sync.Mutex
	at           phase
	draining     bool
	file         string
	eps          []string
	hash         string // of the file that was read last, hexadecimal; empty when it could not be
	client       Client // nil while not connected
	since        time.Time
	clusterID    uint32
	answered     uint32 // the ID of the configuration that was read in the session; 0 before
	capabilities *wire.Capabilities
	config       *configWatch // of the session; nil while not connected, and for the own cluster
	configAsOf   time.Time    // until when the configuration was known to be in force, at the end of the session before
	heartbeat    time.Time    // when it was last seen, at the end of the session before
	certificate  time.Time    // until when the client certificate is valid; zero without one
	handing      bool         // the configuration is being handed to Params.Adopted
	late         map[wire.Resource]bool
	contact      contact
	moved        chan struct{} // closed and replaced when contact changes
	canaries     *canaries     // of the session; nil before there is a configuration
	etcd         string        // cluster ID of the etcd that answered last, hexadecimal
	refusal      error         // why the present configuration cannot be used
	conflict     *IDConflict   // the one of the last configuration, over lost connections too: they mend nothing
	unusable     error         // why the file cannot be used
	inVain       bool          // the last session that could be had ended for want of a configuration or a canary
	retryAt      time.Time
	failures     int
	consecutive  int
	lastError    error
	lastFailure  time.Time
	lastSuccess  time.Time
	probeError   error  // of the last probe; nil when it succeeded
	fault        fault  // the last one
	panics       int    // how many there were
	places       places // where they were
	lost         error  // why the connection was lost last; nil when it was not, or by ourselves
}

func newTracker(changed func()) tracker {
	return tracker{changed: changed, late: make(map[wire.Resource]bool), moved: make(chan struct{}), places: newPlaces()}
}

// done ends a change.
func (t *tracker) done() {
	t.mu.Unlock()
	t.changed()
}

func (t *tracker) begin(file string) {
	t.mu.Lock()
	defer t.done()
	t.file, t.unusable, t.refusal, t.draining = file, nil, nil, false
}

func (t *tracker) phase(p phase) {
	t.mu.Lock()
	defer t.done()
	t.at = p
}

// adopting notes that the configuration is being handed over.
func (t *tracker) adopting(yes bool) {
	t.mu.Lock()
	defer t.done()
	t.handing = yes
}

// configured notes the client file that is in use from now on.
func (t *tracker) configured(cfg *clientfile.Config) {
	t.mu.Lock()
	defer t.done()
	t.eps, t.hash, t.unusable = cfg.Endpoints, hexadecimal(cfg.Fingerprint), nil
}

// unread notes the contents of a client file that cannot be used, zero for one
// that cannot be read.
func (t *tracker) unread(hash [32]byte) {
	t.mu.Lock()
	defer t.mu.Unlock() // why it is refused follows
	t.hash = hexadecimal(hash)
}

// hexadecimal is empty for nothing.
func hexadecimal(hash [32]byte) string {
	if hash == [32]byte{} {
		return ""
	}
	return hex.EncodeToString(hash[:])
}

func (t *tracker) connected(client Client, config *configWatch) {
	t.mu.Lock()
	defer t.done()
	t.client, t.config, t.since, t.probeError, t.answered = client, config, time.Now(), nil, 0
	st := client.Status()
	if t.lastSuccess = st.LastSuccess; st.EtcdClusterID != 0 {
		t.etcd = strconv.FormatUint(st.EtcdClusterID, 16)
	}
}

// certified notes until when the client certificate is valid.
func (t *tracker) certified(until time.Time) {
	t.mu.Lock()
	changed := !t.certificate.Equal(until)
	t.certificate = until
	t.mu.Unlock()
	if changed {
		t.changed()
	}
}

func (t *tracker) gated(c *canaries) {
	t.mu.Lock()
	defer t.done()
	t.canaries = c
}

func (t *tracker) disconnected(why error) {
	t.mu.Lock()
	defer t.done()
	_, t.inVain = errors.AsType[*overdue](why)
	if t.lost = why; errors.Is(why, context.Canceled) {
		t.lost = nil
	}
	if t.client != nil {
		t.heartbeat = t.client.Status().Heartbeat.Seen
	}
	if t.config != nil {
		t.configAsOf = t.config.watch.Status().AsOf
	}
	t.contact.broke(time.Now())
	t.move()
	t.client, t.config, t.canaries, t.since, t.refusal, t.probeError = nil, nil, nil, time.Time{}, nil, nil
}

// failed notes the end of an attempt or of a session.
func (t *tracker) failed(err error, wait time.Duration) {
	t.mu.Lock()
	defer t.done()
	now := time.Now()
	t.at, t.retryAt = phaseWait, now.Add(wait)
	t.failures++
	t.consecutive++
	t.lastError, t.lastFailure = err, now
	if f := faultOf(err, now); f.err != nil {
		t.fault = f
	}
	if u, ok := errors.AsType[*unusable](err); ok {
		t.unusable = u.error
	}
}

// waitedInVain tells whether the last session ended so.
func (t *tracker) waitedInVain() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inVain
}

// refused notes a configuration that cannot be used.
func (t *tracker) refused(err error) {
	t.mu.Lock()
	defer t.done()
	if t.refusal != nil && t.refusal.Error() == err.Error() {
		return // the same configuration, looked at again
	}
	t.failures++
	t.consecutive++
	if t.conflict, _ = errors.AsType[*IDConflict](err); t.conflict != nil {
		t.answered = t.conflict.ID
	}
	t.refusal, t.lastError, t.lastFailure = err, err, time.Now()
	t.contact.made()
	t.move()
}

// adopted notes the configuration that the sources now run with.
func (t *tracker) adopted(cfg wire.ClusterConfig) {
	t.mu.Lock()
	defer t.done()
	t.at, t.clusterID, t.capabilities, t.refusal, t.consecutive = phaseSync, cfg.ID, &cfg.Capabilities, nil, 0
	t.conflict, t.answered = nil, cfg.ID
	t.contact.made()
	t.move()
}

// overdue notes that a resource is used without its canary, or not any more.
func (t *tracker) overdue(r wire.Resource, yes bool) {
	t.mu.Lock()
	defer t.done()
	t.late[r] = yes
}

// move wakes up who waits for a change of contact; mu is held.
func (t *tracker) move() {
	close(t.moved)
	t.moved = make(chan struct{})
}

// nextExpiry returns when the backends are to be withheld, zero for never, and
// a channel that is closed when that may have changed.
func (t *tracker) nextExpiry(ttl time.Duration) (time.Time, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.contact.due(ttl), t.moved
}

// contacted changes the contact, and tells whether it did.
func (t *tracker) contacted(change func(*contact) bool) bool {
	t.mu.Lock()
	defer t.done()
	return change(&t.contact)
}

func (t *tracker) id() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clusterID
}

func (t *tracker) forgetID() {
	t.mu.Lock()
	defer t.done()
	t.clusterID = 0
}

func (t *tracker) removing() {
	t.mu.Lock()
	defer t.done()
	t.draining, t.conflict = true, nil
}

func (t *tracker) probed(p kvstore.Probe) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.probeError = p.Err; p.Err == nil {
		t.lastSuccess = p.At
	} else {
		t.lost = p.Err
	}
}
