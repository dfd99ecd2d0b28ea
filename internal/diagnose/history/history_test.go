package history

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// TestRun: a sample at once, and one each interval; Run ends with its context. A cluster that changes its state thousands
// of times a second is one sample each time.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		states := []remotecluster.State{remotecluster.Ready, remotecluster.Failed}
		asked := 0
		h := New(func() []remotecluster.Status {
			asked++
			return []remotecluster.Status{{Name: "a", State: states[asked%2]}}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*Interval+Interval/2)
		defer cancel()
		if err := h.Run(ctx); err != nil {
			t.Error(err)
		}
		of, known := h.Of("a")
		if all := h.All(); !known || len(of.Points) != 11 || len(all.Points) != 11 || asked != 11 {
			t.Errorf("%d and %d samples", len(of.Points), len(all.Points))
		}
		if got := of.Points[10].Time.Sub(of.Points[0].Time); got != 10*Interval || of.Points[1].State == of.Points[2].State || of.IntervalSeconds != 10 {
			t.Errorf("of %v, %+v", got, of)
		}
		if _, known := h.Of("b"); known {
			t.Error("an unknown cluster is known")
		}
		time.Sleep(2 * time.Hour) // of the test's own clock
		if of, _ := h.Of("a"); len(of.Points) > 0 {
			t.Errorf("%d samples are shown two hours later", len(of.Points))
		}
	})
}
