package etcd

import (
	"context"
	"errors"
	"time"

	"github.com/coreos/go-semver/semver"
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

// WaitConnected implements [kvstore.Session].
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

// askEndpoint asks the endpoint about itself, and reports whether that was answered, also with
// a missing permission.
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

// progressReliable reports whether a version of etcd never reports progress ahead of the events
// (etcd issue 15220): 3.4 from 3.4.25 on, 3.5 from 3.5.8 on, and all later ones.
func progressReliable(version string) bool {
	v, err := semver.NewVersion(version)
	switch {
	case err != nil || v.Major != 3:
		return err == nil && v.Major > 3
	case v.Minor == 4:
		return v.Patch >= 25
	case v.Minor == 5:
		return v.Patch >= 8
	default:
		return v.Minor > 5
	}
}
