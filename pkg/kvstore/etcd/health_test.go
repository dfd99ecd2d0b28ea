package etcd

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	fail := func(s int) func(*health) {
		return func(h *health) { h.probed(after(s), kvstore.Probe{Err: errors.New("no answer")}) }
	}
	begin := func(h *health) { h.begin(start, "http://a:1", kvstore.Position{ClusterID: 7, Revision: 100}) }
	recovered := func(s int) func(*health) {
		return func(h *health) {
			h.probed(after(s), kvstore.Probe{Head: kvstore.Position{ClusterID: 7, Revision: 101}})
		}
	}
	heartbeat := func(s int) func(*health) { return func(h *health) { h.heartbeat(after(s), 101) } }
	answered := func(s kvstore.ServerStatus) func(*health) { return func(h *health) { h.answered(s) } }
	unanswered := func(h *health) { h.unanswered("timeout") }
	full := kvstore.ServerStatus{Version: "3.6.12", Leader: true, DBSize: 3 << 20, Alarms: []string{"NOSPACE"}}
	const up = "etcd: http://a:1: connected, ID: 7, leases=0, lock leases=0, has-quorum=true"
	const down = "etcd: http://a:1: disconnected, ID: 7, leases=0, lock leases=0, has-quorum="
	for _, c := range []struct {
		name  string
		steps []func(*health)
		at    int // seconds
		want  string
	}{
		{"before the first success", nil, 0, "etcd: : disconnected, leases=0, lock leases=0, has-quorum=false"},
		{"connected", []func(*health){begin}, 5, up},
		{"heartbeat never seen, within the limit", []func(*health){begin}, 120, up},
		{"heartbeat never seen", []func(*health){begin}, 121, up + ", heartbeat never seen (for 2m1s)"},
		{"heartbeat fresh", []func(*health){begin, heartbeat(60)}, 90, up + ", heartbeat 30s ago"},
		{"heartbeat stale, because an old one says nothing", []func(*health){begin, heartbeat(60), heartbeat(170)}, 200, up + ", heartbeat stale (2m20s ago)"},
		{"failing", []func(*health){begin, fail(5), fail(10)}, 10, down + "false, 2 consecutive errors, last error: no answer"},
		{"recovered", []func(*health){begin, fail(5), recovered(10)}, 10, up},
		{"what the endpoint says of itself", []func(*health){begin, answered(full)}, 1, up + ", version 3.6.12 (leader), 3.0 MiB, alarm: NOSPACE"},
		{
			"what it said before stays when it says no more",
			[]func(*health){begin, answered(kvstore.ServerStatus{Version: "3.6.12"}), unanswered},
			1, up + ", version 3.6.12, 0.0 MiB, endpoint status: timeout",
		},
		{"closed", []func(*health){begin, (*health).closed}, 1, down + "true"},
		{"a late success does not bring it back", []func(*health){begin, (*health).closed, recovered(2)}, 2, down + "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var h health
			for _, f := range c.steps {
				f(&h)
			}
			h.status.AgeHeartbeat(after(c.at), 2*time.Minute)
			if got := h.status.String(); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestHealthProperties calls the methods of health with random arguments in random order.
func TestHealthProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var h health
		h.begin(now, "http://a:1", kvstore.Position{ClusterID: 7, Revision: 1})
		failed, lastSeen, lastRev, closed := 0, time.Time{}, int64(0), false
		t.Repeat(map[string]func(*rapid.T){
			"success": func(*rapid.T) {
				failed = 0
				if n := h.probed(now, kvstore.Probe{Head: kvstore.Position{ClusterID: 7, Revision: 2}}); n != 0 {
					t.Fatalf("%d failures after a success", n)
				}
			},
			"failure": func(*rapid.T) {
				failed++
				if n := h.probed(now, kvstore.Probe{Err: errors.New("x")}); n != failed {
					t.Fatalf("%d failures, want %d", n, failed)
				}
			},
			"heartbeat": func(t *rapid.T) {
				rev := rapid.Int64Range(1, 20).Draw(t, "rev")
				h.heartbeat(now, rev)
				if rev > lastRev {
					lastRev, lastSeen = rev, now
				}
			},
			"close": func(*rapid.T) { h.closed(); closed = true },
			"time":  func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "s")) * time.Second) },
			"": func(t *rapid.T) {
				s := h.status
				s.AgeHeartbeat(now, 2*time.Minute)
				since := lastSeen
				if since.IsZero() {
					since = s.ConnectedSince
				}
				switch {
				case s.Connected != (failed == 0 && !closed):
					t.Fatalf("connected=%t with %d failures, closed=%t", s.Connected, failed, closed)
				case s.ConsecutiveErrors != failed || s.Quorum != (failed == 0):
					t.Fatalf("%+v, want %d failures", s, failed)
				case s.Heartbeat.Age != now.Sub(since) || s.Heartbeat.Stale != (now.Sub(since) > 2*time.Minute):
					t.Fatalf("heartbeat %+v, last at %s, now %s", s.Heartbeat, since, now)
				}
			},
		})
	})
}
