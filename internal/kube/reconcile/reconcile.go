// Package reconcile is the common part of controllers that follow tables and write objects of the Kubernetes API: the
// loop, the dirty names, the names that failed and when they are tried again, and which remote clusters were read,
// which decides what may be withdrawn.
//
// Concurrency: a [Work] belongs to the goroutine of [Run]; the functions that [CarryOut] calls run concurrently.
package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cilium/statedb"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// lookAgain is how often is looked at what no table tells.
const lookAgain = time.Second

// FirstPause and LongestPause bound the growing pauses after which work that failed is tried again.
const FirstPause, LongestPause = time.Second, 30 * time.Second

// Steps are what a controller does in a loop, in this order.
type Steps interface {
	// Look looks at what no table tells.
	Look(ctx context.Context, now time.Time)
	// Gather takes in the changes of the tables, and returns channels that are closed when there are more.
	Gather(txn statedb.ReadTxn) *statedb.WatchSet
	// Round works on some of the names that are dirty, as of a snapshot. It is called when there are any.
	Round(ctx context.Context, txn statedb.ReadTxn, now time.Time)
	// ReportProblems reports the current problems.
	ReportProblems()
}

// Run takes steps until ctx ends, whose error it returns. Changes of the tables are gathered for a
// batch period.
func Run(ctx context.Context, db *statedb.DB, batch time.Duration, w *Work, s Steps) error {
	for {
		now := time.Now()
		if now.Sub(w.looked) >= lookAgain {
			w.looked = now
			s.Look(ctx, now) // before the snapshot, which has everything of the clusters that were read
			if !now.Before(w.tryAt) {
				for name := range w.failed {
					w.Touch(name)
				}
			}
		}
		txn := db.ReadTxn()
		more := s.Gather(txn)
		if len(w.dirty) > 0 {
			s.Round(ctx, txn, now)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.ReportProblems()
		if len(w.dirty) > 0 {
			continue
		}
		tick, cancel := context.WithTimeout(ctx, lookAgain)
		_, err := more.Wait(tick, batch)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return cmp.Or(ctx.Err(), err)
		}
	}
}

// WaitReady waits until all tables are complete, and until ready returns true.
func WaitReady(ctx context.Context, ready func() bool, listed ...func(context.Context) error) error {
	for _, wait := range listed {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	for !ready() {
		if err := waiting.Sleep(ctx, lookAgain); err != nil {
			return err
		}
	}
	return nil
}

// Work is what a controller has to do. Names are "namespace/name".
type Work struct {
	// Guard calls a function, and returns its error, or one for its panic, which ends the work for one name
	// alone (boundary.Boundary.Run). Nil: a panic ends the process.
	Guard func(f func() error, attributes ...any) error

	dirty   map[string]struct{} // that are to be looked at
	failed  map[string]error    // that are to be tried again
	pause   time.Duration       // before that; 0 while nothing fails
	tryAt   time.Time
	looked  time.Time       // at what no table tells
	remotes map[string]bool // the clusters that there are, and whether they were read
}

// New returns nothing to do, with a [Work.Guard].
func New(guard func(f func() error, attributes ...any) error) Work {
	return Work{Guard: guard, dirty: make(map[string]struct{}), failed: make(map[string]error)}
}

// Touch makes a name dirty.
func (w *Work) Touch(name string) { w.dirty[name] = struct{}{} }

// Take removes some of the dirty names and returns them, sorted. A most of 0 takes all.
func (w *Work) Take(most int) (names []string) {
	for name := range w.dirty {
		if names = append(names, name); len(names) == most {
			break
		}
	}
	for _, name := range names {
		delete(w.dirty, name)
	}
	slices.Sort(names)
	return names
}

// Clean reports whether nothing is to be done, and nothing has failed.
func (w *Work) Clean() bool { return len(w.dirty) == 0 && len(w.failed) == 0 }

// Done notes that there is nothing to do for a name: an earlier failure no longer matters.
func (w *Work) Done(name string) { delete(w.failed, name) }

// SetRemotes notes which clusters there are, and reports whether that is other than before.
func (w *Work) SetRemotes(all []Remote) (changed bool) {
	remotes := make(map[string]bool)
	for _, r := range all {
		remotes[r.Name] = r.Read
	}
	if maps.Equal(remotes, w.remotes) {
		return false
	}
	w.remotes = remotes
	return true
}

// Keeps reports whether what follows from a cluster stays as it is: it is configured and was not read.
func (w *Work) Keeps(cluster string) bool {
	read, configured := w.remotes[cluster]
	return configured && !read
}

// Unread are the clusters that were not read, sorted.
func (w *Work) Unread() (all []string) {
	for name, read := range w.remotes {
		if !read {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// CarryOut plans the writes for each name, possibly none, then carries out all plans, at most atOnce concurrently, and
// notes the failures. It reports true for the first failure after a time without failures. A write that ends with ctx
// does not count as failed.
func CarryOut[T any](ctx context.Context, w *Work, now time.Time, atOnce int, names []string, plan func(name string) (one T, todo bool), write func(context.Context, T) error) (news bool) {
	errs := make(map[string]error)
	planned := make(map[string]T)
	for _, name := range names {
		err := w.guard(name, func() error {
			one, todo := plan(name)
			if todo {
				planned[name] = one
			} else {
				w.Done(name)
			}
			return nil
		})
		if err != nil {
			errs[name] = err
		}
	}
	var g errgroup.Group
	g.SetLimit(atOnce)
	var mu sync.Mutex
	for _, name := range names {
		one, todo := planned[name]
		if !todo {
			continue
		}
		g.Go(func() error {
			err := w.guard(name, func() error { return write(ctx, one) })
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	if ctx.Err() != nil {
		return false
	}
	return w.note(errs, now)
}

// guard does the work for one name.
func (w *Work) guard(name string, do func() error) error {
	if w.Guard == nil {
		return do()
	}
	return w.Guard(do, "object", name)
}

func (w *Work) note(errs map[string]error, now time.Time) (news bool) {
	failed := false
	for name, err := range errs {
		delete(w.failed, name)
		if err != nil {
			w.failed[name] = err
			failed = true
		}
	}
	switch {
	case failed:
		news = w.pause == 0
		w.pause = min(cmp.Or(2*w.pause, FirstPause), LongestPause)
		w.tryAt = now.Add(w.pause)
	case len(w.failed) == 0:
		w.pause = 0
	}
	return news
}

// Failed returns how many names failed, and the error of one of them; nil when none has. The what completes "3 ... ,
// such as ns/name: why".
func (w *Work) Failed(what string) error {
	if len(w.failed) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(w.failed)))
	return fmt.Errorf("%d %s, such as %s: %w", len(w.failed), what, first, w.failed[first])
}
