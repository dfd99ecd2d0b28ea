package operate

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// losing is a writer whose first deletion of a mapping finds that the identity's
// lock is lost. It counts who waited to lead.
type losing struct {
	kvstore.Writer
	lost, led *atomic.Int32
}

func (l losing) Delete(ctx context.Context, key string, opts ...kvstore.Option) (kvstore.Result, error) {
	if strings.HasPrefix(key, wire.IdentityAllocation.Mappings()) && l.lost.Add(1) == 1 {
		return kvstore.Result{}, kvstore.ErrLockLeaseExpired
	}
	return l.Writer.Delete(ctx, key, opts...)
}

func (l losing) Lock(ctx context.Context, path string) (*kvstore.Lock, error) {
	if path == wire.OperatorLockPath {
		l.led.Add(1)
	}
	return l.Writer.Lock(ctx, path)
}

// TestTheLossOfAnIdentitysLockIsNotThatOfTheLead: it ends a round, and no term.
func TestTheLossOfAnIdentitysLockIsNotThatOfTheLead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const unused = "cilium/state/identities/v1/id/196701"
	_, err := w.etcd.Client(t).Put(t.Context(), unused, "k8s:app=x;k8s:io.cilium.k8s.policy.cluster=east;")
	must(t, err)
	w.listed()
	var lost, led, said atomic.Int32
	w.operator(func(p *Params) {
		p.GCInterval, p.Writer = 50*time.Millisecond, losing{p.Writer, &lost, &led}
		p.Report = func(task string, err error) {
			if task == "identities" && err != nil {
				said.Add(1)
			}
		}
	})
	waittest.Until(t, "the unused to go", func() bool { return w.contents()[unused] == nil })
	if led.Load() != 1 || said.Load() != 1 || lost.Load() < 2 {
		t.Errorf("%d terms, %d reports, %d deletions; want 1, 1 and at least 2", led.Load(), said.Load(), lost.Load())
	}
}
