package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"
)

func TestAListThatWaitsGivesItsPlaceToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := semaphore.NewWeighted(1)
		stuck, err := takeTurn(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		stuck.wait() // for a server that does not answer
		began := time.Now()
		other, err := takeTurn(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != turnPatience {
			t.Errorf("the other list waited %s, want %s", took, turnPatience)
		}
		// When the answer comes, the first waits for a place again.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := stuck.resume(ctx); err == nil {
			t.Error("two lists have the one place")
		}
		other.end()
		if err := stuck.resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		stuck.end()
		if !of.TryAcquire(1) {
			t.Error("a place was not given back")
		}
	})
}

func TestAListThatIsQuickKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := semaphore.NewWeighted(1)
		quick, err := takeTurn(t.Context(), of)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			quick.wait()
			<-time.After(turnPatience / 2)
			if of.TryAcquire(1) {
				t.Fatal("the place was free in the middle of a list")
			}
			if err := quick.resume(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * turnPatience) // work takes as long as it takes
			if of.TryAcquire(1) {
				t.Fatal("the place was free in the middle of a page")
			}
		}
		quick.end()
		quick.end()
		if !of.TryAcquire(1) {
			t.Error("the place was not given back")
		}
	})
}
