package mirror

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
)

// This file keeps the copies from filling our own etcd: at its quota etcd refuses the writes of all clients, and the
// whole cluster stops allocating.

// Room says how full our own etcd may become by copying.
type Room struct {
	// Quota is the quota of our own etcd in bytes where it does not tell, as before
	// 3.6. 0 is no bound there.
	Quota int64
	// StopAt is the percentage of the quota in use at which the mirror stops putting entries. It continues at five
	// percent less. 0 never stops.
	StopAt int
}

// quotaOf is the quota of a server, 0 for one that is not known.
func (r Room) quotaOf(s kvstore.ServerStatus) int64 {
	if s.DBQuota > 0 {
		return s.DBQuota
	}
	return r.Quota
}

// DefaultRoom is the quota of an etcd without a setting, and what leaves a
// fifth of it to those whose etcd it is.
func DefaultRoom() Room { return Room{Quota: 2 << 30, StopAt: 80} }

// In percent of the quota: how far below StopAt copying continues, the least space that is granted, and the maximum
// size of the file: etcd uses free space in it again, but compares the size with the quota.
const (
	goOnBelow  = 5
	grantLeast = 1
	fileMost   = 95
)

// retryFull is how long nothing is put after our own etcd has refused a write for lack of space, when it does not
// report its size.
const retryFull = time.Minute

// verdict is how our own etcd stands, in words.
type verdict struct {
	code codes.Code // OwnEtcdFull, OwnEtcdRoom or OwnEtcdUnknown; empty before it was asked
	why  string
}

// gauge is the pure core: what follows from what our own etcd says of itself.
type gauge struct {
	Room
	full bool
	verdict
}

// judge takes the status of the server, and the time when it last refused a write for lack of space. It returns how
// many bytes may be put until the next status.
func (g *gauge) judge(s kvstore.ServerStatus, fullAt, now time.Time) (grant int64) {
	quota := g.quotaOf(s)
	used := s.DBInUse
	if used == 0 {
		used = s.DBSize
	}
	percent := func(of int) int64 { return quota / 100 * int64(of) }
	refused := fullAt.After(s.AskedAt)
	switch unknown := s.AskedAt.IsZero() || s.DBSize == 0; {
	case g.StopAt == 0:
		return syncstore.Unbounded
	case s.NoSpace():
		return g.stop("it has raised the alarm NOSPACE")
	case refused && (!unknown || now.Sub(fullAt) < retryFull):
		return g.stop("it says that it has no space left")
	case unknown:
		g.full, g.verdict = false, verdict{codes.OwnEtcdUnknown, "our own etcd does not tell how full it is: " + s.Error}
		return syncstore.Unbounded
	case quota == 0:
		g.full, g.verdict = false, verdict{codes.OwnEtcdRoom, ""}
		return syncstore.Unbounded
	case s.DBSize >= percent(fileMost):
		return g.stop(fmt.Sprintf("its file has %s of %s; defragment it", mebibytes(s.DBSize), mebibytes(quota)))
	}
	left := percent(g.StopAt) - used
	if left < percent(grantLeast) || g.full && used >= percent(g.StopAt-goOnBelow) {
		return g.stop(fmt.Sprintf("%s of %s are in use", mebibytes(used), mebibytes(quota)))
	}
	g.full, g.verdict = false, verdict{codes.OwnEtcdRoom, ""}
	return left
}

// stop keeps the reason of the moment at which it stopped: a text with numbers that
// change all the time would be another state each time.
func (g *gauge) stop(why string) int64 {
	if !g.full {
		g.full, g.verdict = true, verdict{codes.OwnEtcdFull, fmt.Sprintf(
			"only deletions are copied into our own etcd, which is nearly full: %s; other writes continue below %d%% of its quota (--own-kvstore-stop-at)", why, g.StopAt-goOnBelow)}
	}
	return 0
}

func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

// lookAtRoom is how often it is looked whether our own etcd has said something new.
const lookAtRoom = 100 * time.Millisecond

// uncounted is how long written bytes may be missing from the size that etcd reports: it counts them when it commits,
// ten times a second unless its disk is slow.
const uncounted = time.Second

// watchRoom follows how full our own etcd is, and grants space to the outbox.
func (t *term) watchRoom(ctx context.Context) error {
	var said time.Time // what the present grant follows from
	var full time.Time
	var past spending
	for {
		s, fullAt, spent := t.Writer.Status().Server, t.outbox.FullAt(), t.outbox.Spent()
		past.note(time.Now(), spent)
		if answered := !s.AskedAt.IsZero() || s.Error != ""; answered && (!s.AskedAt.Equal(said) || !fullAt.Equal(full) || s.AskedAt.IsZero()) {
			said, full = s.AskedAt, fullAt
			t.judging.Lock()
			was := t.gauge.verdict
			grant := t.gauge.judge(s, fullAt, time.Now())
			is := t.gauge.verdict
			t.judging.Unlock()
			if grant != syncstore.Unbounded {
				grant -= spent - past.until(s.AskedAt.Add(-uncounted))
			}
			t.outbox.Grant(max(grant, 0))
			t.tellRoom(was, is)
		}
		if err := waiting.Sleep(ctx, lookAtRoom); err != nil {
			return err
		}
	}
}

func (t *term) tellRoom(was, is verdict) {
	switch {
	case was.code == is.code:
	case is.code == codes.OwnEtcdFull:
		t.Log.Error("The own etcd is nearly full, copying stops", "code", is.code, "why", is.why)
	case is.code == codes.OwnEtcdUnknown:
		t.Log.Warn("The own etcd does not report how full it is", "code", is.code, "why", is.why)
	case was.code != "":
		t.Log.Info("The own etcd has room, copying continues", "code", is.code)
	}
}

// stopped returns why nothing is copied for lack of space; empty while copying continues.
func (t *term) stopped() verdict {
	if !t.outbox.Stopped() {
		return verdict{}
	}
	t.judging.Lock()
	defer t.judging.Unlock()
	if t.gauge.full {
		return t.gauge.verdict
	}
	return verdict{codes.OwnEtcdFull, "the copies have filled the free space that the own etcd last reported; the mirror asks for its size again in a moment"}
}

// Stopped reports whether nothing is copied for lack of space in our own etcd, and why; the code is empty while copying
// continues, and while another mirror leads.
func (m *Mirror) Stopped() (code codes.Code, why string) {
	if t := m.Term(); t != nil {
		v := t.stopped()
		return v.code, v.why
	}
	return "", ""
}

// spending remembers how much had been put in all at moments of the past, the last one last.
type spending []spent

type spent struct {
	at    time.Time
	bytes int64
}

// spendingMost bounds how many moments are remembered.
const spendingMost = 128

// note remembers how much was put until now.
func (s *spending) note(now time.Time, bytes int64) {
	*s = append(*s, spent{now, bytes})
	if len(*s) <= spendingMost {
		return
	}
	n := 0
	*s = slices.DeleteFunc(*s, func(spent) bool { n++; return n%2 == 0 })
}

// until is how much had been put at some moment: at the last one remembered that was not after it, so it is rather too
// little than too much. Earlier moments are removed.
func (s *spending) until(at time.Time) int64 {
	i := 0
	for i+1 < len(*s) && !(*s)[i+1].at.After(at) {
		i++
	}
	*s = slices.Delete(*s, 0, i)
	if len(*s) == 0 {
		return 0
	}
	return (*s)[0].bytes
}
