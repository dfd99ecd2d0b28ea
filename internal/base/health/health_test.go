package health

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// newTicking returns a registry whose clock advances by a second each report.
func newTicking() *Registry {
	r := New()
	now := epoch
	r.now = func() time.Time { now = now.Add(time.Second); return now }
	return r
}

var epoch = time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

func TestList(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reports func(r *Registry)
		want    []Status
	}{
		"nothing": {func(*Registry) {}, []Status{}},
		"a scope that has not reported": {
			func(r *Registry) { r.NewScope("a") },
			[]Status{{Name: "a", State: Unknown, Message: "has not reported yet"}},
		},
		"success": {
			func(r *Registry) { r.NewScope("a").OK("fine") },
			[]Status{{Name: "a", State: OK, Message: "fine", LastSuccess: at(1)}},
		},
		"failures are counted until a success": {
			func(r *Registry) {
				a, b := r.NewScope("a"), r.NewScope("b")
				a.OK("fine")
				a.Degraded("cannot read", errors.New("no such file"))
				a.Degraded("cannot read", nil)
				b.Degraded("broken", nil)
				b.OK("again")
			},
			[]Status{
				{Name: "a", State: Degraded, Message: "cannot read", LastSuccess: at(1), LastFailure: at(3), ConsecutiveFailures: 2},
				{Name: "b", State: OK, Message: "again", LastSuccess: at(5), LastFailure: at(4)},
			},
		},
		"the error is part of the message": {
			func(r *Registry) { r.NewScope("a").Degraded("cannot read", errors.New("no such file")) },
			[]Status{{Name: "a", State: Degraded, Message: "cannot read: no such file", LastFailure: at(1), ConsecutiveFailures: 1}},
		},
		"what has stopped does not report again": {
			func(r *Registry) {
				a := r.NewScope("a")
				a.Stopped("done")
				a.OK("fine")
			},
			[]Status{{Name: "a", State: Stopped, Message: "done"}},
		},
		"a module shows the worst of its tasks": {
			func(r *Registry) {
				m := r.NewScope("m")
				m.NewScope("x").OK("fine")
				m.NewScope("y").Degraded("broken", nil)
				r.NewScope("mm").OK("a neighbour")
			},
			[]Status{
				{Name: "m", State: Degraded, Message: "y: broken", LastSuccess: at(1), LastFailure: at(2), ConsecutiveFailures: 1},
				{Name: "m.x", State: OK, Message: "fine", LastSuccess: at(1)},
				{Name: "m.y", State: Degraded, Message: "broken", LastFailure: at(2), ConsecutiveFailures: 1},
				{Name: "mm", State: OK, Message: "a neighbour", LastSuccess: at(3)},
			},
		},
		"a module whose tasks have finished": {
			func(r *Registry) {
				task := r.NewScope("m").NewScope("x")
				task.OK("fine")
				task.Close()
				task.Degraded("after its end", nil)
			},
			[]Status{{Name: "m", State: Stopped, Message: "none of its tasks is running"}},
		},
		"closing removes what is below": {
			func(r *Registry) {
				m := r.NewScope("m")
				m.NewScope("x").OK("fine")
				r.NewScope("mm")
				m.Close()
				m.Close()
			},
			[]Status{{Name: "mm", State: Unknown, Message: "has not reported yet"}},
		},
		"equal names get numbers": {
			func(r *Registry) { r.NewScope("a").OK("1"); r.NewScope("a").OK("2") },
			[]Status{
				{Name: "a", State: OK, Message: "1", LastSuccess: at(1)},
				{Name: "a#2", State: OK, Message: "2", LastSuccess: at(2)},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTicking()
			test.reports(r)
			if diff := cmp.Diff(test.want, r.List()); diff != "" {
				t.Errorf("List() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConcurrentReports(t *testing.T) {
	t.Parallel()
	r := New()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			m := r.NewScope(fmt.Sprintf("m%d", i))
			for range 100 {
				task := m.NewScope("task")
				task.OK("fine")
				task.Degraded("broken", nil)
				r.List()
				task.Close()
			}
		})
	}
	wg.Wait()
	if n := len(r.List()); n != 8 {
		t.Errorf("List() has %d scopes, want 8", n)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
