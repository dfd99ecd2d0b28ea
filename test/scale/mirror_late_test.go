package scale

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// lateness is how long changes took from the remotes to the copies, in ms.
type lateness struct {
	Changes, Missing  int
	Median, P99, Most float64
}

// late measures it in a process of its own, which watches both sides.
func (p programs) late(tb testing.TB, dir, endpoint string) (l lateness) {
	tb.Helper()
	out, err := p.as("late", dir+" "+endpoint).Output()
	if err == nil {
		err = json.Unmarshal(out, &l)
	}
	if err != nil {
		tb.Fatalf("watching both sides: %v", err)
	}
	return l
}

// change is one version of a key of the copies.
type change struct{ key, value string }

// runLate is that process. A change counts from its arrival at a watcher of the
// remote to that at a watcher of the copies.
func runLate(ctx context.Context, argument string) error {
	from, to, err := ends(argument)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	left, came := map[change]time.Time{}, map[change]time.Time{}
	note := func(in map[change]time.Time, c change) {
		mu.Lock()
		defer mu.Unlock()
		if _, known := in[c]; !known {
			in[c] = time.Now()
		}
	}
	const after = 5 * time.Second // late changes may still arrive
	watching, cancel := context.WithTimeout(ctx, changesFor+after)
	defer cancel()
	var g errgroup.Group
	copies := to.Watch(watching, wire.CachePrefix+"/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-copies
	g.Go(func() error {
		for resp := range copies {
			for _, e := range resp.Events {
				note(came, change{string(e.Kv.Key), string(e.Kv.Value)})
			}
		}
		return nil
	})
	sources, stop := context.WithTimeout(ctx, changesFor)
	defer stop()
	for name, c := range from {
		for _, r := range wire.Resources() {
			g.Go(func() error {
				prefix, into := r.Prefix(name, false), r.Prefix(name, true)
				for resp := range c.Watch(sources, prefix, clientv3.WithPrefix(), clientv3.WithPrevKV()) {
					for _, e := range resp.Events {
						if e.PrevKv != nil && e.Type == clientv3.EventTypePut && string(e.PrevKv.Value) == string(e.Kv.Value) {
							continue // written again without a change: nothing to copy
						}
						note(left, change{into + string(e.Kv.Key[len(prefix):]), string(e.Kv.Value)})
					}
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var took []float64
	var l lateness
	for c, at := range left {
		arrived, has := came[c]
		if !has {
			l.Missing++ // or a newer value of the key has replaced it
			continue
		}
		took = append(took, max(0, arrived.Sub(at).Seconds()*1000))
	}
	l.Changes = len(left)
	if len(took) > 0 {
		slices.Sort(took)
		l.Median, l.P99, l.Most = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	}
	return json.NewEncoder(os.Stdout).Encode(l)
}
