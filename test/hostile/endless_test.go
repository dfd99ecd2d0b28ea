package hostile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// endless is a server whose lists never end: one key after another, each after a
// pause.
func endless(pause time.Duration) *rule {
	return &rule{name: fmt.Sprintf("endless: a key each %s", pause), ranged: func(ctx context.Context, s *server, q *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
		if !lists(q) {
			return a, nil
		}
		n := s.broken.Add(1)
		if pause > 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		prefix := string(q.Key[:lastSlash(q.Key)+1])
		a.More, a.Count = true, 1
		a.Kvs = []*mvccpb.KeyValue{key(fmt.Sprintf("%s~%015d", prefix, n), a)}
		return a, nil
	}}
}

// TestEndlessLists: lists that never end take no turns from others, who come after
// them and are synced as ever.
func TestEndlessLists(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{0, 600 * time.Millisecond} {
		t.Run(fmt.Sprint(pause), func(t *testing.T) {
			t.Parallel()
			w := newMesh(t)
			first, s := w.hostileCluster(t)
			s.breaks(endless(pause))
			w.join(first, s.endpoint())
			w.until(t, "the lists to begin", func() bool { return s.broken.Load() > 4 })
			for range 2 {
				c, s := w.hostileCluster(t)
				s.breaks(endless(pause))
				w.join(c, s.endpoint())
			}
			w.join(w.honestCluster("c1", 1))
			w.join(w.honestCluster("c2", 2))
			w.synced()
			w.observe()
			w.sentinel(t, 2)
		})
	}
}
