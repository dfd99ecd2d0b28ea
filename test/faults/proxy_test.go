package faults

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// proxy is a TCP proxy in front of a server, through which the mesh reaches it.
type proxy struct {
	t     testing.TB
	proxy *toxiproxy.Proxy
}

// newProxy opens a proxy. It is shut at the end of the test.
func newProxy(t testing.TB, upstream string) *proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	d := &proxy{t, toxiproxy.NewProxy(server, upstream, "127.0.0.1:0", upstream)}
	d.unlock()
	t.Cleanup(d.lock)
	return d
}

func (d *proxy) addr() string { return d.proxy.Listen }

// lock cuts all connections and accepts no new ones.
func (d *proxy) lock() { d.proxy.Stop() }

// unlock accepts connections again. Another process may have the port meanwhile, but not for long, since it is an
// ephemeral one.
func (d *proxy) unlock() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		err := d.proxy.Start()
		if err == nil {
			return
		}
		if waiting.Sleep(ctx, 50*time.Millisecond) != nil {
			d.t.Fatalf("opening %s: %v", d.proxy.Listen, err)
		}
	}
}

// spoil disturbs the traffic in both directions; each kind at most once.
func (d *proxy) spoil(kind string, attributes map[string]int) {
	d.t.Helper()
	for _, direction := range []string{"upstream", "downstream"} {
		text, err := json.Marshal(map[string]any{"type": kind, "stream": direction, "attributes": attributes})
		if err == nil {
			_, err = d.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
		}
		if err != nil {
			d.t.Fatalf("%s: %v", kind, err)
		}
	}
}

// relieve ends all disturbances. Connections that were only slowed down continue.
func (d *proxy) relieve() { d.proxy.Toxics.ResetToxics(context.Background()) }
