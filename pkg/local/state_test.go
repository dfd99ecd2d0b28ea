package local

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestHowWellTheDescriptionIsKnown checks the state of the description through a series of events.
func TestHowWellTheDescriptionIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		start := time.Now()
		check := func(when string, want State) {
			t.Helper()
			got := c.State()
			if got.Listed != want.Listed || !got.AsOf.Equal(want.AsOf) || !errors.Is(got.Err, want.Err) {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
			<-time.After(time.Minute)
		}
		broken := errors.New("broken")
		check("at first", State{})
		c.Report(nil)
		c.Services.Listed()
		check("without slices", State{})
		c.Report(broken)
		check("without slices, and broken", State{Err: broken})
		c.Report(nil)
		c.EndpointSlices.Listed()
		check("followed", State{Listed: true, AsOf: start.Add(3 * time.Minute)})
		c.Report(broken)
		for range 2 {
			check("broken since", State{Listed: true, AsOf: start.Add(4 * time.Minute), Err: broken})
		}
		c.Report(nil)
		check("followed again", State{Listed: true, AsOf: start.Add(6 * time.Minute)})
		c.Confirmed(time.Minute, func() time.Time { return start.Add(time.Second) })
		for range 2 {
			check("silent", State{Listed: true, AsOf: start.Add(time.Second)})
		}
	})
}

func TestADescriptionIsWholeUnlessItsSourceDoubts(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if err := c.WaitWhole(t.Context()); err != nil {
		t.Error(err)
	}
	c.Doubt()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.WaitWhole(over); !errors.Is(err, context.Canceled) {
		t.Errorf("in doubt: %v", err)
	}
	whole, becomesWhole := c.IsWhole()
	if whole {
		t.Error("whole in doubt")
	}
	c.Whole()
	<-becomesWhole
	if err := c.WaitWhole(t.Context()); err != nil {
		t.Error(err)
	}
}
