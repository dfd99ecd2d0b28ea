package consumers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/mesh-agent/mesh-agent/simtest/programtest"
)

// serveGRPC opens a gRPC backend on an address, at the common port.
func (w *world) serveGRPC(ip string) {
	w.t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(int(w.port))))
	must(w.t, err)
	s := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // until it is stopped
	}()
	w.t.Cleanup(func() {
		s.Stop()
		<-ended
	})
}

// nodeClient is a program of Node.js that calls the targets of its input.
type nodeClient struct {
	t     *testing.T
	calls io.Writer
	ended *bufio.Scanner
}

// called is the result of a call.
type called struct {
	Peer, Message string
	Code          int
	Milliseconds  float64
}

func newNodeClient(t *testing.T, bootstrap string) *nodeClient {
	t.Helper()
	cmd := exec.Command(programtest.Find(t, "consumers", "node"), "client.mjs")
	if _, err := os.Stat(filepath.Join("grpcjs", "node_modules")); err != nil {
		programtest.Missing(t, "the modules of grpcjs are missing: make consumers installs them")
	}
	cmd.Dir, cmd.Env, cmd.Stderr = "grpcjs", append(os.Environ(), "GRPC_XDS_BOOTSTRAP="+bootstrap), t.Output()
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &nodeClient{t: t, calls: in, ended: bufio.NewScanner(out)}
}

func (c *nodeClient) call(target string) (r called) {
	c.t.Helper()
	_, err := fmt.Fprintln(c.calls, target)
	must(c.t, err)
	if !c.ended.Scan() {
		c.t.Fatalf("calling %s: the client has ended: %v", target, c.ended.Err())
	}
	must(c.t, json.Unmarshal(c.ended.Bytes(), &r))
	return r
}

// TestNode: a program of Node.js calls the backends of all clusters by name, follows changes, and fails at once for
// names that do not exist.
func TestNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "xds.sock")
	w := newWorld(t, "--xds", "unix:"+socket)
	cart := w.shop()
	for _, ip := range cart {
		w.serveGRPC(ip)
	}
	w.start()
	text, errs, code := w.agent.Call("xds", "bootstrap", "--address", "unix:"+socket)
	if code != 0 {
		t.Fatalf("xds bootstrap: %d\n%s", code, errs)
	}
	c := newNodeClient(t, programtest.Write(t, dir, "xds.json", text))
	for _, target := range []string{
		"xds:///shop/cart:80", fmt.Sprintf("xds:///shop/cart:%d", w.port), "xds:///shop/cart:http",
		"xds:///cart.shop.svc.clusterset.local:80", "xds:///shop/cart",
	} {
		var peers []string
		w.until("all backends to have answered "+target, func() bool {
			if r := c.call(target); r.Code == 0 && !slices.Contains(peers, r.Peer) {
				peers = append(peers, r.Peer)
			}
			return len(peers) == len(cart)
		})
	}
	w.publish("west", "cart")
	w.until("a backend to be gone", func() bool {
		for range 2 * len(cart) {
			if r := c.call("xds:///shop/cart:http"); r.Code != 0 || strings.HasPrefix(r.Peer, cart[1]) {
				return false
			}
		}
		return true
	})
	for target, message := range map[string]string{
		"xds:///shop/nothing:80": "empty priority list",  // a service that does not exist
		"xds:///Shop_/cart:80":   "Failed to route call", // no valid name of a service
	} {
		if r := c.call(target); r.Code != 14 || !strings.Contains(r.Message, message) {
			t.Errorf("%s: %+v", target, r)
		}
	}
}
