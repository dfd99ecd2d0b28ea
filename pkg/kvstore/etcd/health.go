package etcd

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// health is the pure core of the watchdog: what was observed of a session, and its status.
type health struct {
	status kvstore.Status
	over   bool // the session has ended
}

// begin notes the first success.
func (h *health) begin(now time.Time, endpoint string, at kvstore.Position) {
	h.status.Endpoint = endpoint
	h.status.EtcdClusterID = at.ClusterID
	h.status.ConnectedSince = now
	h.succeeded(now, at)
}

// probed notes the result of a linearizable read that ended at now, and returns
// how many have failed in a row.
func (h *health) probed(now time.Time, p kvstore.Probe) int {
	if p.Err == nil {
		h.succeeded(now, p.Head)
		return 0
	}
	h.status.Connected, h.status.Quorum = false, false
	h.status.ConsecutiveErrors++
	h.failed(now, p.Err)
	return h.status.ConsecutiveErrors
}

func (h *health) succeeded(now time.Time, at kvstore.Position) {
	h.status.Connected, h.status.Quorum = !h.over, true
	h.status.ConsecutiveErrors = 0
	h.status.Head = at
	h.status.LastSuccess = now
}

// failed notes an error without drawing a conclusion from it.
func (h *health) failed(now time.Time, err error) {
	h.status.LastError, h.status.LastErrorAt = err.Error(), now
}

// answered notes what the endpoint said about itself.
func (h *health) answered(s kvstore.ServerStatus) { h.status.Server = s }

// unanswered notes why the endpoint said nothing, and keeps what it said before.
func (h *health) unanswered(why string) { h.status.Server.Error = why }

// heartbeat notes a heartbeat that was written at a revision, unless it was seen before.
func (h *health) heartbeat(now time.Time, rev int64) {
	if s := &h.status.Heartbeat; rev > s.Revision {
		s.Seen, s.Revision = now, rev
	}
}

// closed notes the end of the session.
func (h *health) closed() {
	h.over = true
	h.status.Connected = false
}

// at returns the status at a moment. A heartbeat older than limit is stale.
func (h *health) at(now time.Time, limit time.Duration) kvstore.Status {
	s := h.status
	since := s.Heartbeat.Seen
	if since.IsZero() {
		since = s.ConnectedSince
	}
	if !since.IsZero() {
		s.Heartbeat.Age = now.Sub(since)
		s.Heartbeat.Stale = s.Heartbeat.Age > limit
	}
	return s
}
