package xds

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

func TestClients(t *testing.T) {
	t.Parallel()
	clients := []api.XDSClient{
		{Number: 1, Peer: "unix", Node: "shopper", Program: "gRPC Go 1.85.0", Variant: "state of the world", Since: samples.Now.Add(-time.Hour), Follows: []api.XDSFollowing{
			{Type: "listeners", Names: []string{"shop/cart:80"}, Sent: "a.1", Confirmed: "a.1"},
			{Type: "endpoints", Names: []string{"a/a:1", "shop/cart:80", "x/x:1"}, WithoutBackends: []string{"x/x:1"}, Sent: "a.3", Confirmed: "a.2", Rejected: 1, Reason: "no", RejectedAt: samples.Before(time.Minute)},
		}},
		{Number: 7, Peer: "10.0.0.1:5000", Node: "envoy\x1b[2J", Since: samples.Now, Follows: []api.XDSFollowing{{Type: "clusters", All: true, Sent: "b.1"}}},
		{Number: 8, Peer: "unix", Since: samples.Now},
	}
	gone := []api.XDSClient{
		{Number: 5, Peer: "10.0.0.2:5000", Node: "shopper-2", Gone: samples.Before(time.Minute), Follows: []api.XDSFollowing{{Type: "listeners", Names: []string{"shop/cart:80"}}, {Type: "endpoints", Names: []string{"shop/cart:80"}}}},
		{Number: 2, Peer: "unix", Gone: samples.Before(2 * time.Minute), Follows: []api.XDSFollowing{{Type: "clusters", All: true}}},
	}
	var out bytes.Buffer
	err := command.Answer(&out, printer.Style{}, printer.NewFormat(printer.Text), clients, func(p *printer.Page) {
		write(p, api.XDSClients{Items: clients, Gone: gone}, true, samples.Now)
	})
	if err != nil {
		t.Fatal(err)
	}
	samples.Golden(t, "clients", out.String())
	if strings.Contains(out.String(), "\x1b") {
		t.Error("a client moves the cursor")
	}
	out.Reset()
	if err := command.Answer(&out, printer.Style{}, printer.NewFormat(printer.Text), nil, func(p *printer.Page) { write(p, api.XDSClients{}, false, samples.Now) }); err != nil || out.String() != "No client follows this agent.\n" {
		t.Errorf("%v %q", err, out.String())
	}
}

func run(args ...string) (string, error) {
	c := &command.Env{Getenv: func(string) string { return "" }, Environ: func() []string { return nil }, Now: time.Now, DefaultSocket: "/nonexistent", DefaultServer: "127.0.0.1:1"}
	cmd := New(c)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	text, err := run("bootstrap", "--address", "agent.example:9980", "--node-id", "me", "--client-zone", "z", "--ca-file", "/ca")
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal([]byte(`{
		"xds_servers": [{
			"server_uri": "agent.example:9980",
			"channel_creds": [{"type": "tls", "config": {"ca_certificate_file": "/ca"}}],
			"server_features": ["xds_v3", "ignore_resource_deletion"]
		}],
		"node": {"id": "me", "locality": {"zone": "z"}}
	}`), &want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if text, err = run("bootstrap", "--for", "envoy", "--address", "unix:/x"); err != nil || !strings.Contains(text, `"path": "/x"`) {
		t.Errorf("%v %s", err, text)
	}
	for args, want := range map[string]string{
		"bootstrap --for nginx":                     `"nginx" is neither grpc nor envoy`,
		"bootstrap --address a:1 --cert-file c":     "given together",
		"bootstrap --for envoy --address a":         "--address",
		"bootstrap --node-id me --address a:1 more": "unexpected argument",
		"resolve --address a:1":                     "NAME",
		"resolve shop/cart:80 --address nowhere":    "neither HOST:PORT nor unix:PATH",
		"resolve shop/cart --key-file k":            "given together",
	} {
		if text, err := run(strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, new(exit.UsageError)) {
			t.Errorf("%s: %v %s", args, err, text)
		}
	}
	if _, err := run("bootstrap"); err == nil {
		t.Error("no agent was asked")
	}
	if _, err := run("resolve", "shop/cart", "--address", "unix:/nonexistent"); err == nil || !strings.Contains(err.Error(), "xDS at unix:/nonexistent") || !strings.Contains(err.Error(), "--xds") {
		t.Errorf("nobody answered: %v", err)
	}
}
