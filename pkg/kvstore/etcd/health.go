package etcd

import (
	"context"
	"errors"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// health is the pure core of the watchdog: it makes the status of a session from observations.
type health struct {
	status kvstore.Status
	over   bool // the session has ended
}

func (h *health) begin(now time.Time, endpoint string, at kvstore.Position) {
	h.status.Endpoint = endpoint
	h.status.EtcdClusterID = at.ClusterID
	h.status.ConnectedSince = now
	h.succeeded(now, at)
}

// probed records the result of a linearizable read that ended at now, and returns
// the number of consecutive failures.
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

// failed records an error. It changes nothing else in the status.
func (h *health) failed(now time.Time, err error) {
	h.status.LastError, h.status.LastErrorAt = err.Error(), now
}

func (h *health) answered(s kvstore.ServerStatus) { h.status.Server = s }

// unanswered records why the endpoint did not answer, and keeps its earlier answer.
func (h *health) unanswered(why string) { h.status.Server.Error = why }

// heartbeat records a heartbeat that was written at a revision, unless it is already known.
func (h *health) heartbeat(now time.Time, rev int64) {
	h.status.Heartbeat.Observe(now, rev)
}

func (h *health) closed() {
	h.over = true
	h.status.Connected = false
}

// Status implements [kvstore.Client].
func (e *Session) Status() kvstore.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.health.status
	s.AgeHeartbeat(time.Now(), e.opts.Timings.HeartbeatLimit)
	s.ProbeInterval = e.opts.probeInterval()
	if accepted := e.dialer.accepted.Load(); accepted != nil {
		s.Certificates = *accepted
	}
	e.Count(&s)
	return s
}

// WaitConnected implements [kvstore.Session].
func (e *Session) WaitConnected(ctx context.Context, want bool) error {
	for {
		e.mu.Lock()
		is, wake := e.health.status.Connected, e.wake
		e.mu.Unlock()
		switch over := e.over(); {
		case is == want, !want && over != nil:
			return nil
		case over != nil:
			return over
		}
		select {
		case <-wake:
		case <-e.life.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// update changes the health, and wakes up the goroutines in WaitConnected when Connected changes.
func (e *Session) update(f func(*health)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.health.status.Connected
	f(&e.health)
	if e.health.status.Connected != before {
		close(e.wake)
		e.wake = make(chan struct{})
	}
}

// askEndpoint requests the status of the endpoint. It reports whether the endpoint answered; a refusal
// for lack of permission counts as an answer.
func (e *Session) askEndpoint(ctx context.Context) bool {
	s := e.scope(ctx, "endpoint status", e.opts.Timings.Probe)
	defer s.close()
	asked := time.Now()
	resp, err := e.maint.Status(s.ctx, &pb.StatusRequest{})
	if err == nil {
		err = e.check(resp.GetHeader())
	}
	if err != nil {
		err = e.explain(s, "status", "", err)
		denied := errors.Is(err, kvstore.ErrPermissionDenied)
		why := err.Error()
		if denied {
			why = "not known, because this user may not ask for it"
		}
		e.update(func(h *health) { h.unanswered(why) })
		return denied
	}
	e.progress.Store(kvstore.ProgressReliable(resp.GetVersion()))
	e.update(func(h *health) { h.answered(serverStatus(resp, asked)) })
	return true
}

// maxAlarms is the maximum number of alarms of a server that are kept.
const maxAlarms = 16

func serverStatus(r *pb.StatusResponse, asked time.Time) kvstore.ServerStatus {
	alarms := make([]string, 0, min(len(r.GetErrors()), maxAlarms))
	for _, alarm := range r.GetErrors()[:cap(alarms)] {
		alarms = append(alarms, cutText(alarm))
	}
	return kvstore.ServerStatus{
		Version:  cutText(r.GetVersion()),
		Faults:   kvstore.DescribeFaults(r.GetVersion()),
		MemberID: r.GetHeader().GetMemberId(),
		Leader:   r.GetLeader() != 0 && r.GetLeader() == r.GetHeader().GetMemberId(),
		DBSize:   r.GetDbSize(),
		DBInUse:  r.GetDbSizeInUse(),
		DBQuota:  r.GetDbSizeQuota(),
		Alarms:   alarms,
		AskedAt:  asked,
	}
}
