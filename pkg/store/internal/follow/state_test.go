package follow

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// TestWhoWaitsForAPositionLearnsOfAList: a caller that waits for a position returns as soon as a list begins.
func TestWhoWaitsForAPositionLearnsOfAList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s state
		s.listing(true)
		s.listed(time.Now(), kvstore.Position{ClusterID: 1, Revision: 10})
		ended := make(chan error, 1)
		at := kvstore.Position{ClusterID: 1, Revision: 20}
		go func() { ended <- s.Reach(t.Context(), at, 1, "all") }()
		s.advance(kvstore.Position{ClusterID: 1, Revision: 15}, true)
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatalf("it ended with %v", <-ended)
		}
		s.listing(true)
		synctest.Wait() // without advancing the clock
		if len(ended) == 0 {
			t.Fatal("it still waits")
		}
		if err := <-ended; !errors.Is(err, errListed) {
			t.Errorf("it ended with %v", err)
		}
	})
}
