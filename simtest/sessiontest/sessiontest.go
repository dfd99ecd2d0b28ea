// Package sessiontest connects tests to a real etcd.
package sessiontest

import (
	"context"
	"sync"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// Connect returns a session with the etcd at an endpoint, without limits of requests per second, like [ConnectWith].
func Connect(t testing.TB, endpoint string) *etcd.Session {
	t.Helper()
	cfg, err := clientfile.New(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	o := etcd.DefaultOptions()
	o.QPS, o.BootstrapQPS = 0, 0
	return ConnectWith(t, cfg, o)
}

// ConnectWith returns a session. Its leases, and with them its locks, are kept alive until the test ends, also on a
// slow machine. No watchdog ends it ([etcd.Session.Run]).
func ConnectWith(t testing.TB, cfg *clientfile.Config, o etcd.Options) *etcd.Session {
	t.Helper()
	session, err := etcd.Connect(t.Context(), cfg, 0, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() { _ = session.Keep(ctx) }) // it ends with its context
	t.Cleanup(func() {
		cancel()
		keeping.Wait()
		session.Close()
	})
	return session
}
