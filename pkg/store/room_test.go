package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// slow is a client whose lists have 10 pages of one key, each with a delay.
type slow struct {
	kvstore.Client
	page time.Duration
}

func (s slow) List(ctx context.Context, prefix string, page func(kvstore.Page) error, _ ...kvstore.ReadOption) (kvstore.Position, error) {
	for n := range int64(10) {
		if err := waiting.Sleep(ctx, s.page); err != nil {
			return kvstore.Position{}, err
		}
		kv := kvstore.KeyValue{Key: fmt.Appendf(nil, "%s%d", prefix, n), ModRevision: 1}
		if err := page(kvstore.Page{Items: []kvstore.KeyValue{kv}, Left: 9 - n}); err != nil {
			return kvstore.Position{}, err
		}
	}
	return kvstore.Position{ClusterID: 1, Revision: 1}, nil
}

func (s slow) Watch(context.Context, string, kvstore.Position, ...kvstore.SelectOption) (kvstore.Stream, error) {
	return nil, kvstore.ErrClosed // reached only after a complete list
}

// TestTheTimeOfAListIsThatOfTheRemote: the time that a list waits for local room does not count as the remote's.
func TestTheTimeOfAListIsThatOfTheRemote(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page, room time.Duration
		long       bool
	}{
		"a remote that is quick, and no room for hours": {time.Second, time.Hour, false},
		"a remote that is slow":                         {time.Hour, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := Session{
					Client: slow{page: c.page}, Prefix: "p/", Limits: Limits{List: time.Minute}, Lists: NewTurns(1), Expect: wire.Expect{Cluster: "c"},
					Room: func(ctx context.Context) error { return waiting.Sleep(ctx, c.room) },
				}
				count := 0
				err := s.List(t.Context(), func(kvstore.Page) error { count++; return nil })
				if errors.Is(err, ErrListTooLong) != c.long || !c.long && (err != nil || count != 10) {
					t.Errorf("a list: %d pages, %v", count, err)
				}
				w := NewWatch(Kind[Raw]{
					Resource: wire.IPs, Apply: func([]Change[Raw]) {},
					Decode: func(wire.Expect) Decode[Raw] { return func(string, []byte) (*Raw, error) { return new(Raw), nil } },
				}, slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Hour)
				defer cancel()
				_ = w.Run(ctx, s)
				if st := w.Status(); st.Synced == c.long || errors.Is(st.Err, ErrListTooLong) != c.long {
					t.Errorf("a watch: %+v", st)
				}
			})
		})
	}
}
