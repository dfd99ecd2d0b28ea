package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/serve/httpapi"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// withoutEnd is a server whose lists never end, although each of their pages is valid: it has as many keys as
// requested, after a pause.
func withoutEnd(name, prefix string, pause time.Duration, one func(prefix string, n int64) *mvccpb.KeyValue) *rule {
	return &rule{name: name, ranged: func(ctx context.Context, s *server, q *pb.RangeRequest, a *pb.RangeResponse) (any, error) {
		if !lists(q) || !about(q, prefix) || q.Limit == 0 {
			return a, nil
		}
		n := s.broken.Add(q.Limit)
		if pause > 0 && waiting.Sleep(ctx, pause) != nil {
			return nil, ctx.Err()
		}
		a.More, a.Count, a.Kvs = true, 1<<40, nil
		for i := range q.Limit {
			a.Kvs = append(a.Kvs, one(prefixOf(q.Key), n+i))
		}
		return a, nil
	}}
}

// endless is a server that does this for all lists.
func endless(pause time.Duration) *rule {
	return withoutEnd(fmt.Sprintf("endless: a page each %s", pause), "", pause, func(prefix string, n int64) *mvccpb.KeyValue {
		return key(fmt.Sprintf("%s~%015d", prefix, n))
	})
}

// TestEndlessLists: lists that never end take no turns from other clusters, which join later and are synced as usual.
// /readyz is not ready while it waits for them, and then reports that it is ready without these clusters.
func TestEndlessLists(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	for _, pause := range []time.Duration{0, 600 * time.Millisecond} {
		t.Run(fmt.Sprint(pause), func(t *testing.T) {
			t.Parallel()
			const timeout = time.Second
			w := newMesh(t, func(p *clustermesh.Params) { p.SyncTimeout = timeout })
			served := w.serve(t)
			began := time.Now()
			first, s := w.hostileCluster(t)
			s.breaks(endless(pause))
			w.join(first, s.endpoint())
			w.until(t, "the lists to begin", func() bool { return s.broken.Load() > 200 })
			without := []string{first.name}
			for range 2 {
				c, s := w.hostileCluster(t)
				s.breaks(endless(pause))
				w.join(c, s.endpoint())
				without = append(without, c.name)
			}
			w.until(t, "all of them to be known", func() bool { return len(w.mesh.Clusters()) == len(without) })
			if code, is := readyz(t, served); code != http.StatusServiceUnavailable && time.Since(began) < timeout {
				t.Errorf("/readyz before the sync timeout: %d %+v", code, is)
			}
			w.join(w.honestCluster("c1", 1))
			w.join(w.honestCluster("c2", 2))
			w.synced()
			w.observe()
			w.until(t, "/readyz without the endless clusters alone", func() bool {
				code, is := readyz(t, served)
				return code == http.StatusOK && is.Code == string(codes.ReadyWithout) && slices.Equal(slices.Sorted(maps.Keys(is.Without)), without)
			})
			w.sentinel(t, 2)
			for _, name := range without {
				if st, _ := w.status(name); st.State != remotecluster.Syncing || st.Failures > 0 {
					t.Errorf("the list of %s has ended: %s %q", name, st.State, st.Message)
				}
			}
		})
	}
}

// serve returns the API of a mesh.
func (w *world) serve(tb testing.TB) http.Handler {
	tb.Helper()
	s, err := httpapi.NewServer(w.sources, slog.New(slog.DiscardHandler))
	must(tb, err)
	tb.Cleanup(s.Close)
	return s.Handler()
}

// readyz asks for the readiness.
func readyz(tb testing.TB, h http.Handler) (code int, is api.Readiness) {
	tb.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(tb.Context(), http.MethodGet, "http://localhost/readyz", http.NoBody))
	must(tb, json.Unmarshal(w.Body.Bytes(), &is))
	return w.Code, is
}
