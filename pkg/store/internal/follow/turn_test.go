package follow

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func take(t *testing.T, of *Turns, cluster string) *turn {
	t.Helper()
	turn, err := takeTurn(t.Context(), of, cluster)
	must(t, err)
	return turn
}

// free reports whether another cluster would get a place at once.
func free(of *Turns) bool {
	if w := of.ask("probe"); w != nil {
		of.leave("probe", w)
		return false
	}
	of.Give("probe")
	return true
}

func TestAListThatWaitsGivesItsPlaceToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := NewTurns(1)
		stuck := take(t, of, "stuck")
		stuck.Wait() // for a server that does not respond
		began := time.Now()
		other := take(t, of, "other")
		if took := time.Since(began); took != turnPatience {
			t.Errorf("the other list waited %s, want %s", took, turnPatience)
		}
		// When the response arrives, the first list has to wait for a place again.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := stuck.Resume(ctx); err == nil {
			t.Error("two lists have the one place")
		}
		other.End()
		must(t, stuck.Resume(t.Context()))
		// A list that made others wait has less patience the next time.
		stuck.Wait()
		began = time.Now()
		other = take(t, of, "other")
		if took := time.Since(began); took != turnPatience/2 {
			t.Errorf("the second time the other list waited %s, want %s", took, turnPatience/2)
		}
		other.End()
		stuck.End()
		if !free(of) {
			t.Error("a place was not given back")
		}
	})
}

func TestAListThatIsQuickKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := NewTurns(1)
		quick := take(t, of, "quick")
		for range 10 {
			quick.Wait()
			<-time.After(turnPatience / 2)
			if free(of) {
				t.Fatal("the place was free in the middle of a list")
			}
			must(t, quick.Resume(t.Context()))
			<-time.After(10 * turnPatience) // work has no time limit
			if free(of) {
				t.Fatal("the place was free in the middle of a page")
			}
			must(t, quick.Yield(t.Context()))
		}
		quick.End()
		quick.End()
		if !free(of) {
			t.Error("the place was not given back")
		}
	})
}

// TestATimerThatFiredEndsNoLaterTurn: this holds for each order of the timer, the response and another list.
func TestATimerThatFiredEndsNoLaterTurn(t *testing.T) {
	t.Parallel()
	of := NewTurns(1)
	l := take(t, of, "a")
	l.Wait()
	during := l.waits
	if err := l.Resume(t.Context()); err != nil { // the response came before the timer
		t.Fatal(err)
	}
	l.ranOut(during)
	if free(of) {
		t.Error("a timer of a wait that is over gave the place away")
	}
	l.Wait()
	l.ranOut(during)
	if free(of) {
		t.Error("a timer of an earlier wait gave the place away")
	}
	l.End()
}

// TestListsTakeTurnsPageByPage: a cluster with many lists that never end delays the others by one page each time.
func TestListsTakeTurnsPageByPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := NewTurns(2)
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 3 {
			for range 6 { // lists of one cluster that never end
				go func() {
					l, err := takeTurn(ctx, of, fmt.Sprint("endless", i))
					for err == nil && ctx.Err() == nil {
						l.Wait()
						<-time.After(600 * time.Millisecond) // the time of a page
						if err = l.Resume(ctx); err == nil {
							err = l.Yield(ctx)
						}
					}
					l.End()
				}()
			}
		}
		began := time.Now()
		l := take(t, of, "honest")
		for range 20 { // pages
			l.Wait()
			<-time.After(time.Millisecond)
			must(t, l.Resume(t.Context()))
			must(t, l.Yield(t.Context()))
		}
		l.End()
		// Before each page, each of the three others has at most one turn of a page, with two turns at once. Each page
		// itself takes a millisecond.
		if took := time.Since(began); took > 21*2*600*time.Millisecond+20*time.Millisecond {
			t.Errorf("20 pages took %s", took)
		}
		cancel()
		<-time.After(time.Second)
	})
}

func TestAClusterHasOneTurnAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := NewTurns(3)
		var got []string
		ask := func(cluster string) {
			go func() {
				if of.Take(t.Context(), cluster) == nil {
					got = append(got, cluster)
				}
			}()
			synctest.Wait()
		}
		for _, cluster := range strings.Fields("a a a b b c d") {
			ask(cluster)
		}
		for _, cluster := range strings.Fields("a b c a d b a") {
			of.Give(cluster)
			synctest.Wait()
		}
		if order := strings.Join(got, " "); order != "a b c a b d a" {
			t.Errorf("turns were given to %s", order)
		}
		if of.free != 3 || len(of.busy) != 0 || len(of.lines) != 0 {
			t.Errorf("left: %d free, %v busy, %d waiting", of.free, of.busy, len(of.lines))
		}
		// A caller that stops waiting leaves no state behind.
		_ = of.Take(t.Context(), "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := of.Take(ctx, "a"); err == nil {
			t.Error("a second place for a cluster")
		}
		of.Give("a")
		if of.free != 3 || len(of.lines) != 0 {
			t.Errorf("left: %d free, %d waiting", of.free, len(of.lines))
		}
	})
}

var must = waittest.Must
