package etcd

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/ports"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// freeEndpoint returns an endpoint at which no server listens.
func freeEndpoint(t *testing.T) string {
	t.Helper()
	nobody, err := ports.Reserve("127.0.0.1:0")
	must(t, err)
	t.Cleanup(nobody.Release)
	return "http://" + nobody.Addr()
}

// silent is a network that drops all packets.
func silent(ctx context.Context, network, addr string) (net.Conn, error) {
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
}

func TestConnectRefused(t *testing.T) {
	t.Parallel()
	err := refused(t, addresses(t, freeEndpoint(t)), DefaultOptions())
	kvtest.Contains(t, err, "connection refused", "nothing listens there")
	if strings.Contains(err.Error(), "deadline") {
		t.Errorf("the error is about a deadline: %v", err)
	}
}

func TestConnectToUnknownName(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Dial = func(_ context.Context, _, addr string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: addr, IsNotFound: true}
	}
	kvtest.Contains(t, refused(t, addresses(t, "https://nowhere.invalid:2379"), o), "no such host", "does not resolve")
}

func TestConnectToBlackHole(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Dial = silent
	o.Timings.Dial = 200 * time.Millisecond
	kvtest.Contains(t, refused(t, addresses(t, "https://192.0.2.1:2379"), o), "dial tcp", "unreachable")
	o.Timings.Dial, o.Timings.Connect = time.Hour, 200*time.Millisecond
	kvtest.WantErr(t, refused(t, addresses(t, "https://192.0.2.1:2379"), o), context.DeadlineExceeded, "no answer within 200ms", "still connecting to 192.0.2.1:2379", "unreachable")
}

// TestConnectToFrozenServer: the kernel accepts connections, but the server does not answer.
func TestConnectToFrozenServer(t *testing.T) {
	t.Parallel()
	p := etcdtest.StartProcess(t)
	p.Freeze(t)
	o := DefaultOptions()
	o.Timings.Dial = 300 * time.Millisecond
	kvtest.Contains(t, refused(t, addresses(t, p.Endpoint()), o), "nothing came back")
}

func TestConnectEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := DefaultOptions()
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		cancel()
		return silent(ctx, network, addr)
	}
	kvtest.WantErr(t, second(Connect(ctx, addresses(t, "http://192.0.2.1:2379"), 0, o)), context.Canceled)
}

func TestEndpointsRotate(t *testing.T) {
	t.Parallel()
	a, b := etcdtest.Start(t), etcdtest.Start(t)
	cfg := addresses(t, a.Endpoint(), freeEndpoint(t), b.Endpoint())
	for attempt, want := range []uint64{a.ClusterID(), 0, b.ClusterID(), a.ClusterID(), 0} {
		e, err := Connect(waittest.Context(t), cfg, attempt, DefaultOptions())
		if want == 0 {
			kvtest.Contains(t, err, "connection refused")
			continue
		}
		must(t, err)
		s := e.Status()
		if s.EtcdClusterID != want || s.Endpoint != cfg.Endpoints[attempt%3] {
			t.Errorf("attempt %d: %s, want %x", attempt, s, want)
		}
		e.Close()
	}
}

func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	p := etcdtest.StartProcess(t)
	e := connect(t, addresses(t, p.Endpoint()), DefaultOptions())
	st := watch(t, e, "p/", e.Status().Head)
	p.Freeze(t)
	e.Close()
	e.Close()
	kvtest.WantErr(t, second(st.Recv()), kvstore.ErrClosed)
	st.Close()
}
