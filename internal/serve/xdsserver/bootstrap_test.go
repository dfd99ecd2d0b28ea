package xdsserver_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/internal/serve/xdsserver"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestEnvoyBootstrap: Envoy's own definition of its bootstrap accepts the printed one (xds.md E 25).
func TestEnvoyBootstrap(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]xdsserver.Bootstrap{
		"unix":   {Address: "unix:/run/x.sock", Node: "n"},
		"tcp":    {Address: "127.0.0.1:9980", Node: "n", Zone: "z"},
		"a name": {Address: "agent.example:9980", Node: "n", TLS: true, CA: "/ca", Cert: "/cert", Key: "/key"},
		"IPv6":   {Address: "[::1]:9980", Node: "n", TLS: true},
	} {
		text, err := b.Envoy()
		waittest.Must(t, err)
		m := new(bootstrapv3.Bootstrap)
		if err := protojson.Unmarshal(text, m); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if err := m.ValidateAll(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, address := range []string{"agent", "agent:x", ""} {
		if text, err := (xdsserver.Bootstrap{Address: address}).Envoy(); err == nil {
			t.Errorf("%q: %s", address, text)
		}
	}
}

// TestTLS: with a client certificate and without one, and across a change of the server's certificate (E 25).
func TestTLS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port, _, _ := backend(t, "127.0.0.2:0")
	w.Play(t, fmt.Sprintf("service own shop/cart 127.0.0.2,ports=http:%s", port))
	dir := t.TempDir()
	ca, err := pki.NewCA("mesh")
	waittest.Must(t, err)
	write := func(name string, p pki.Pair, err error) (cert, key string) {
		t.Helper()
		if err == nil {
			cert, key, err = p.Write(dir, name)
		}
		waittest.Must(t, err)
		return cert, key
	}
	var files transport.TLSFiles
	issued, err := ca.Server([]string{"127.0.0.1"})
	files.Cert, files.Key = write("server", issued, err)
	if files.ClientCA, err = ca.Write(dir, "ca"); err != nil {
		t.Fatal(err)
	}
	s, err := xdsserver.New(xdsserver.Params{View: w.View, TLS: transport.NewTLS(files, slog.New(slog.DiscardHandler)), Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = s.Listen("127.0.0.1:0")
	}
	waittest.Must(t, err)
	t.Cleanup(running(t, s))
	b := xdsserver.Bootstrap{Address: s.Address(), Node: "test", TLS: true, CA: files.ClientCA}
	dial(t, b, "xds:///shop/cart:http").fails("")
	issued, err = ca.Client("shopper")
	b.Cert, b.Key = write("client", issued, err)
	dial(t, b, "xds:///shop/cart:http").until("a client with a certificate to be served", "127.0.0.2")
	issued, err = ca.Server([]string{"127.0.0.1"})
	write("server", issued, err)
	dial(t, b, "xds:///shop/cart").until("one to be served by a new certificate", "127.0.0.2")
}

// TestSecondServer: a client uses the second server of its bootstrap when it has no resources and the first one does
// not answer, and stays with it (E 25).
func TestSecondServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	port, _, _ := backend(t, "127.0.0.2:0")
	w.Play(t, fmt.Sprintf("service own shop/cart 127.0.0.2,ports=http:%s", port))
	var b map[string]any
	text, err := xdsserver.Bootstrap{Address: "unix:" + filepath.Join(t.TempDir(), "nobody"), Node: "test"}.GRPC()
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	var second map[string]any
	if err == nil {
		text, err = xdsserver.Bootstrap{Address: "unix:" + w.socket}.GRPC()
	}
	if err == nil {
		err = json.Unmarshal(text, &second)
	}
	waittest.Must(t, err)
	b["xds_servers"] = append(b["xds_servers"].([]any), second["xds_servers"].([]any)...)
	text, err = json.Marshal(b)
	waittest.Must(t, err)
	c := dialWith(t, text, "xds:///shop/cart:http")
	waittest.Until(t, "the second server to be taken", func() bool { ip, err := c.call(); return err == nil && ip == "127.0.0.2" })
}
