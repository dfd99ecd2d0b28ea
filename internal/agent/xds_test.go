package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/xds"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// listening starts a gRPC server on an address; port 0 chooses a port. stop stops it.
func listening(t *testing.T, ip string, port int) (at int, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", ip, port))
	agenttest.Must(t, err)
	server := grpc.NewServer()
	healthpb.RegisterHealthServer(server, health.NewServer())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().(*net.TCPAddr).Port, func() { server.Stop(); <-ended }
}

// publish publishes a cluster's part of a service of the namespace shop: one backend, which may terminate.
func publish(t *testing.T, r *sim.Running, name, ip string, port int, terminating bool) {
	t.Helper()
	c := r.Cluster()
	service := wire.Service{
		Cluster: c.Name, ClusterID: c.ID, Namespace: "shop", Name: name, Shared: true, IncludeExternal: true,
		Frontends: map[string]wire.Ports{"10.9.9.9": {"grpc": {Protocol: "TCP", Port: 80}}},
		Backends:  map[string]wire.Ports{ip: {"grpc": {Protocol: "TCP", Port: uint16(port)}}},
	}
	agenttest.Must(t, r.Put(t.Context(), wire.Services.Key(c.Name, false, "shop/"+name), service.Encode()))
	portName, protocol, number, ready := "grpc", "TCP", int32(port), !terminating
	serving := true
	slice := wire.EndpointSlice{
		Cluster: c.Name, ClusterID: c.ID, Namespace: "shop", Name: name + "-1", AddressType: wire.AddressTypeIPv4,
		Labels:    map[string]string{wire.LabelServiceName: name},
		Ports:     []wire.EndpointPort{{Name: &portName, Protocol: &protocol, Port: &number}},
		Endpoints: []wire.Endpoint{{Addresses: []string{ip}, Conditions: wire.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating}}},
	}
	agenttest.Must(t, r.Put(t.Context(), slice.Key(), slice.Encode()))
}

// dialXDS returns a connection of a gRPC program that has read a bootstrap.
func dialXDS(t *testing.T, bootstrap, target string) *grpc.ClientConn {
	t.Helper()
	r, err := xds.NewXDSResolverWithConfigForTesting([]byte(bootstrap))
	agenttest.Must(t, err)
	conn, err := grpc.NewClient(target, grpc.WithResolvers(r), grpc.WithTransportCredentials(insecure.NewCredentials()))
	agenttest.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestGRPCClientThroughFaults: every etcd is killed, the agent is restarted without them, and they return one by one.
// No call fails, including the calls to a service that only the last cluster has.
func TestGRPCClientThroughFaults(t *testing.T) {
	t.Parallel()
	waittest.Long(t)
	m := meshtest.Run(t, meshtest.Clusters(2)...)
	first, last := m.Clusters()[0], m.Clusters()[1]
	port, _ := listening(t, "127.0.7.4", 0)
	publish(t, first, "cart", "127.0.7.4", port, false)
	publish(t, last, "only", "127.0.7.4", port, false)
	flags := []string{"--xds", "unix:" + filepath.Join(t.TempDir(), "xds.sock"), "--clustermesh-sync-timeout", "1s"}
	a := agenttest.StartAgent(t, m.Dir(), flags...)
	a.Until("it to be ready", func() bool { return len(a.ReadyClusters()) == 2 })
	bootstrap, errs, code := a.Call("xds", "bootstrap", "--node-id", "shopper")
	if code != exit.OK {
		t.Fatalf("%s%s", bootstrap, errs)
	}
	conns := []*grpc.ClientConn{dialXDS(t, bootstrap, "xds:///shop/cart:80"), dialXDS(t, bootstrap, "xds:///shop/only:80")}
	calls := func(when string, wait bool) {
		t.Helper()
		for range 20 {
			for _, conn := range conns {
				if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(wait)); err != nil {
					t.Fatalf("a call to %s failed %s: %v", conn.Target(), when, err)
				}
			}
		}
	}
	calls("at first", true)
	follows := func(confirmed ...string) func() bool {
		return func() bool {
			calls("meanwhile", false)
			var names []string
			var shown api.XDSClients
			out, errs, code := a.Call("xds", "clients", "-o", "json")
			if err := json.Unmarshal([]byte(out), &shown); code != exit.OK || err != nil {
				t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
			}
			for _, c := range shown.Items {
				for _, f := range c.Follows {
					if f.Type == "endpoints" && f.Sent != "" && f.Sent == f.Confirmed {
						names = append(names, slices.DeleteFunc(slices.Clone(f.Names), func(name string) bool { return slices.Contains(f.WithoutBackends, name) })...)
					}
				}
			}
			slices.Sort(names)
			return slices.Equal(slices.Compact(names), confirmed)
		}
	}
	a.Until("both to be followed", follows("shop/cart:80", "shop/only:80"))
	agenttest.Must(t, errors.Join(first.Kill(), last.Kill()))
	calls("without any etcd", false)
	a.Stop()
	calls("without the agent", false)
	a = agenttest.StartAgent(t, m.Dir(), flags...)
	a.Until("it to be ready without any cluster", func() bool { calls("with an agent that knows nothing", false); return a.Status().Ready })
	agenttest.Must(t, first.Start(t.Context()))
	a.Until("the client to follow it, which knows one cluster", follows("shop/cart:80"))
	agenttest.Must(t, last.Start(t.Context()))
	a.Until("it to know both again", follows("shop/cart:80", "shop/only:80"))
	calls("at the end", false)
}

// TestGRPCClientOverThreeClusters: an unmodified gRPC program balances over three simulated clusters with the bootstrap
// that the program prints. No call fails while a backend drains and returns. A cluster that is killed with its etcd is
// no longer used, and is used again after its return (xds.md E 1, 4, 6, 25).
func TestGRPCClientOverThreeClusters(t *testing.T) {
	t.Parallel()
	m := meshtest.Run(t, meshtest.Clusters(3)...)
	ips, ports, stops := []string{"127.0.7.1", "127.0.7.2", "127.0.7.3"}, make([]int, 3), make([]func(), 3)
	for i, r := range m.Clusters() {
		ports[i], stops[i] = listening(t, ips[i], 0)
		publish(t, r, "cart", ips[i], ports[i], false)
	}
	a := agenttest.StartAgent(t, m.Dir(), "--xds", "unix:"+filepath.Join(t.TempDir(), "xds.sock"))
	bootstrap, errs, code := a.Call("xds", "bootstrap", "--node-id", "shopper")
	if code != exit.OK {
		t.Fatalf("%s%s", bootstrap, errs)
	}
	conn := dialXDS(t, bootstrap, "xds:///shop/cart:80")
	calls := func(mayFail bool) (from []string) {
		t.Helper()
		for range 60 {
			var p peer.Peer
			_, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}, grpc.Peer(&p), grpc.WaitForReady(mayFail))
			if err != nil && !mayFail {
				t.Fatalf("a call failed: %v", err)
			} else if err == nil {
				ip, _, _ := net.SplitHostPort(p.Addr.String())
				from = append(from, ip)
			}
		}
		slices.Sort(from)
		return slices.Compact(from)
	}
	until := func(what string, mayFail bool, wanted ...string) {
		t.Helper()
		a.Until(what, func() bool { return slices.Equal(calls(mayFail), wanted) })
	}
	until("all three clusters to answer", true, ips...)
	resolved, errs, code := a.Call("xds", "resolve", "shop/cart:80")
	for i, ip := range ips {
		if code != exit.OK || !strings.Contains(resolved, fmt.Sprintf("%s:%d", ip, ports[i])) {
			t.Errorf("xds resolve does not say %s:%d: exit %d\n%s%s", ip, ports[i], code, resolved, errs)
		}
	}
	if _, errs, code := a.Call("xds", "resolve", "nonsense"); code == exit.OK || !strings.Contains(errs, `no service can have the name "nonsense"`) {
		t.Errorf("xds resolve of a name of nothing: exit %d %s", code, errs)
	}
	second := m.Clusters()[1]
	publish(t, second, "cart", ips[1], ports[1], true)
	until("the backend that drains to be left, without one failed call", false, ips[0], ips[2])
	publish(t, second, "cart", ips[1], ports[1], false)
	until("it to be back, without one failed call", false, ips...)

	agenttest.Must(t, second.Kill())
	stops[1]()
	until("the cluster that was killed to be left", true, ips[0], ips[2])
	if out, _, _ := a.Call("describe", "service", "shop/cart"); !strings.Contains(out, ips[1]) {
		t.Errorf("what is known of a cluster that does not answer is gone:\n%s", out)
	}
	listening(t, ips[1], ports[1])
	agenttest.Must(t, second.Start(t.Context()))
	until("it to be back", true, ips...)

	out, errs, code := a.Execute("xds", "clients")
	if code != exit.OK || !strings.Contains(out, "shopper") || !strings.Contains(out, "shop/cart:80") {
		t.Errorf("xds clients: exit %d\n%s%s", code, out, errs)
	}
	t.Logf("with\n%sthere is\n%s%s", bootstrap, resolved, out) // as in docs/xds.md
	if out, _, _ := a.Call("status"); !strings.Contains(out, "xDS on unix:") {
		t.Errorf("status:\n%s", out)
	}
}
