package remotecluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// TestPausesGrowWithTheOwnCluster: the pauses, in the status and in fact, are those for the current size of the own
// cluster.
func TestPausesGrowWithTheOwnCluster(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nodes, attempts := 6, 0
		b := newBench(t, func(p *Params) {
			p.Timings = DefaultTimings()
			p.Stretch = etcd.Options{ClusterSize: func() int { return nodes }}.Stretch
			p.Connect = func(context.Context, *clientfile.Config) (Client, error) {
				attempts++
				return nil, errors.New("refused")
			}
		})
		count := func() int {
			attempts = 0
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			b.cluster.Run(ctx, b.file)
			return attempts
		}
		few := count()
		nodes = 5000
		if many := count(); few < 650 || few > 800 || many < 150 || many > 190 { // pauses of 5 s and 21.3 s
			t.Errorf("%d attempts in an hour, with 5,000 nodes %d", few, many)
		}
	})
}
