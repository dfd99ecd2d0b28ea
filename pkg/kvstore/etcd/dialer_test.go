package etcd

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// dialLog is a network in which only some addresses answer.
type dialLog struct {
	answers map[string]bool // an absent address refuses the connection; false drops its packets
	tried   []string
	waited  []time.Duration
}

func (l *dialLog) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.tried = append(l.tried, addr)
	ok, known := l.answers[addr]
	if ok {
		a, b := net.Pipe()
		_ = b.Close()
		return a, nil
	}
	if !known {
		return nil, errors.New(addr + " refuses " + network)
	}
	start := time.Now()
	<-ctx.Done()
	l.waited = append(l.waited, time.Since(start))
	return nil, errors.New(addr + " is silent")
}

func aliasDialer(l *dialLog, ips ...string) *dialer {
	a := clientfile.HostAlias{Hostname: "c2.mesh.cilium.io"}
	for _, ip := range ips {
		a.IPs = append(a.IPs, netip.MustParseAddr(ip))
	}
	o := DefaultOptions()
	o.Dial = l.dial
	return newDialer(&clientfile.Config{HostAliases: []clientfile.HostAlias{a}}, o)
}

func TestDialAliasSharesTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &dialLog{answers: map[string]bool{"10.0.0.1:2379": false, "10.0.0.2:2379": false, "[fd00::1]:2379": false}}
		d := aliasDialer(l, "10.0.0.1", "10.0.0.2", "fd00::1")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		kvtest.Contains(t, second(d.DialContext(ctx, "c2.mesh.cilium.io:2379")), "host alias c2.mesh.cilium.io", "10.0.0.1:2379 is silent", "10.0.0.2", "[fd00::1]")
		for i, w := range l.waited {
			if w != time.Second {
				t.Errorf("attempt %d had %s, want 1s", i, w)
			}
		}
		kvtest.Contains(t, d.trouble(), "is silent")
	})
}

func TestDialAliasWithoutDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &dialLog{answers: map[string]bool{"10.0.0.1:2379": false}}
		start := time.Now()
		if _, err := aliasDialer(l, "10.0.0.1").DialContext(t.Context(), "c2.mesh.cilium.io:2379"); err == nil {
			t.Error("connected")
		}
		if took := time.Since(start); took != DefaultTimings().Dial {
			t.Errorf("it took %s", took)
		}
	})
}

func TestDialAliasPrefersWhatWorked(t *testing.T) {
	t.Parallel()
	l := &dialLog{answers: map[string]bool{"10.0.0.4:2379": true}}
	d := aliasDialer(l, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	first := make(map[string]bool)
	for range 200 { // forget the address that worked, to observe the order
		d.good, d.pace = make(map[string]netip.Addr), pace{}
		l.tried = nil
		must(t, second(d.DialContext(t.Context(), "c2.mesh.cilium.io:2379")))
		first[l.tried[0]] = true
	}
	if len(first) != 4 {
		t.Errorf("the first address is always one of %v", first)
	}
	for range 20 {
		l.tried, d.pace = nil, pace{}
		must(t, second(d.DialContext(t.Context(), "c2.mesh.cilium.io:2379")))
		if len(l.tried) != 1 {
			t.Fatalf("tried %v before what had worked", l.tried)
		}
	}
}

func TestDialWithoutAlias(t *testing.T) {
	t.Parallel()
	l := &dialLog{answers: map[string]bool{"other.example:2379": true, "/run/etcd.sock": true}}
	d := aliasDialer(l, "10.0.0.1")
	for _, addr := range []string{"other.example:2379", "unix:///run/etcd.sock", "unix:/run/etcd.sock"} {
		if _, err := d.DialContext(t.Context(), addr); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		d.pace = pace{}
	}
	kvtest.Contains(t, second(d.DialContext(t.Context(), "nonsense")), "nonsense", "port")
	kvtest.Contains(t, second(d.DialContext(t.Context(), "refusing.example:1")), "refusing.example:1 refuses tcp")
	d.begin("connecting to x")
	kvtest.Contains(t, d.trouble(), "still connecting to x", "before:", "refuses")
	d.worked()
	if err := d.trouble(); err != nil {
		t.Errorf("trouble after all worked: %v", err)
	}
}

// TestConnectThroughAlias reaches a real server under a name that no resolver
// knows, and checks its certificate against that name.
func TestConnectThroughAlias(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t, "c2.mesh.cilium.io")
	srv := etcdtest.Start(t, etcdtest.WithTLS(certs))
	_, port, err := net.SplitHostPort(srv.Addr())
	must(t, err)
	file := func(ips string) string {
		return etcdtest.ConfigFile(t, "https://c2.mesh.cilium.io:"+port, certs,
			"cilium-host-aliases: [{hostname: c2.mesh.cilium.io, ips: "+ips+"}]")
	}
	e := connect(t, configOf(t, file("[127.0.0.1]")), DefaultOptions())
	if at, err := e.Head(t.Context()); err != nil || at.ClusterID != srv.ClusterID() {
		t.Errorf("head %v, %v", at, err)
	}
	connect(t, configOf(t, file("[127.0.0.1, \"::1\"]")), DefaultOptions()) // nothing listens on the second
}
