package etcd

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// Status implements [kvstore.Client].
func (e *Session) Status() kvstore.Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.health.at(time.Now(), e.opts.Timings.HeartbeatLimit)
	s.ProbeInterval = e.opts.probeInterval()
	e.Count(&s)
	return s
}

// WaitConnected waits until Status().Connected is as wanted. It fails with the
// context, and when the session has ended while a connection is wanted.
func (e *Session) WaitConnected(ctx context.Context, want bool) error {
	for {
		e.mu.Lock()
		is, wake := e.health.status.Connected, e.wake
		e.mu.Unlock()
		if is == want {
			return nil
		}
		if err := e.over(); err != nil {
			if !want {
				return nil
			}
			return err
		}
		select {
		case <-wake:
		case <-e.life.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// update changes the health and wakes up those who wait for a change of it.
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

// askEndpoint asks the endpoint about itself. Not being permitted to ask is no
// failure; it returns false for any other reason not to get an answer.
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
	e.progress.Store(progressReliable(resp.GetVersion()))
	e.update(func(h *health) { h.answered(serverStatus(resp, asked)) })
	return true
}

// maxAlarms bounds how many complaints of a server are kept.
const maxAlarms = 16

func serverStatus(r *pb.StatusResponse, asked time.Time) kvstore.ServerStatus {
	alarms := make([]string, 0, min(len(r.GetErrors()), maxAlarms))
	for _, alarm := range r.GetErrors()[:cap(alarms)] {
		alarms = append(alarms, cutText(alarm))
	}
	return kvstore.ServerStatus{
		Version:  cutText(r.GetVersion()),
		MemberID: r.GetHeader().GetMemberId(),
		Leader:   r.GetLeader() != 0 && r.GetLeader() == r.GetHeader().GetMemberId(),
		DBSize:   r.GetDbSize(),
		DBInUse:  r.GetDbSizeInUse(),
		DBQuota:  r.GetDbSizeQuota(),
		Alarms:   alarms,
		AskedAt:  asked,
	}
}

// progressReliable tells whether a version of etcd never reports progress ahead
// of the events (etcd issue 15220): 3.4 from 3.4.25 on, 3.5 from 3.5.8 on, and
// all later ones.
func progressReliable(version string) bool {
	version, _, _ = strings.Cut(version, "-")
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		return false
	}
	var n [3]int
	for i, p := range parts {
		var err error
		if n[i], err = strconv.Atoi(p); err != nil || n[i] < 0 {
			return false
		}
	}
	switch {
	case n[0] != 3:
		return n[0] > 3
	case n[1] == 4:
		return n[2] >= 25
	case n[1] == 5:
		return n[2] >= 8
	default:
		return n[1] > 5
	}
}
