package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/serve/httpapi"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Lost("c3"))
	empty := clitest.NewAgent(t)
	tests := []struct {
		of       *clitest.Agent
		args     string
		code     int
		out, err string // expected parts; empty for no output
	}{
		{a, "status", 1, "degraded", ""},
		{a, "status c2", 0, "Cluster c2 (ID 2): ready", ""},
		{a, "status c3", 1, "not connected: connection refused", ""},
		{a, "status nope", 1, "", `there is no cluster "nope"`},
		{a, "status c2 c3", 2, "", "at most one CLUSTER"},
		{a, "status -o json", 1, `"state": "degraded"`, ""},
		{a, "status c2 -o json", 0, `"name": "c2"`, ""},
		{a, "status -o wide", 1, "MESSAGE", ""},
		{a, "status --all", 1, "degraded", ""},
		{a, "status -o xml", 2, "", "must be one of text, wide, json, yaml"},
		{a, "status --for=ready", 2, "", "--for needs --wait"},
		{a, "status --timeout 1s", 2, "", "--timeout needs --wait"},
		{a, "status --wait --for=nothing", 2, "", "must be one of fresh, ready, synced"},
		{a, "status --wait --timeout 3s", 1, "degraded", " waiting for 1 of 2 clusters to be fresh: c3 (degraded)"},
		{a, "status --wait --for=synced", 0, "degraded", ""},
		{a, "status c2 --wait", 0, "Cluster c2", ""},
		{a, "status nope --wait --timeout 50ms", 1, "", `there is no cluster "nope"`},
		{empty, "status", 1, "\nConflicts (2)\n", ""},
		{empty, "status", 1, "\nexit 1: conflicts (--fail-on chooses what counts)\n", ""},
		{a, "status", 1, "\nexit 1: conflicts, degraded (--fail-on chooses what counts)\n", ""},
		{a, "status c3", 1, "\nexit 1: degraded (--fail-on chooses what counts)\n", ""},
		{empty, "status --fail-on=refusals,degraded", 0, "No remote clusters.", ""},
		{a, "status --fail-on=none", 0, "degraded", ""},
		{empty, "status --fail-on=everything", 2, "", "want some of conflicts,refusals,degraded"},
		{empty, "status --wait", 0, "No remote clusters.", ""},
		{empty, "get clusters", 0, "", "No clusters found."},
		{empty, "get clusters -o json", 0, `"items": []`, ""},
		{empty, "get clusters -o name", 0, "", ""},

		{a, "get clusters", 0, "CLUSTER", ""},
		{a, "get cluster c2", 0, "c2", ""},
		{a, "get Cluster c2 -o name", 0, "c2\n", ""},
		{a, "get clusters nope", 1, "", `there is no cluster "nope"`},
		{a, "get nodes c2/n1", 0, "192.168.2.1", ""},
		{a, "get node n1 -c c2", 0, "192.168.2.1", ""},
		{a, "get node c2/n1 -c c2", 0, "192.168.2.1", ""},
		{a, "get node c2/n1 -c c3", 2, "", "give either the NAME of one of the nodes or filters"},
		{a, "get nodes n1", 1, "", "named CLUSTER/NAME"},
		{a, "get nodes c2/nope", 1, "", `there is no node "nope" in cluster "c2"`},
		{a, "get nodes -c nope", 0, "", "No nodes found."},
		{a, "get nodes -n default", 2, "", "nodes cannot be filtered by it"},
		{a, "get services -n default", 0, "web", ""},
		{a, "get svc default/web -o yaml", 0, "name: web", ""},
		{a, "get service web -n default", 0, "web", ""},
		{a, "get services nope", 1, "", "named NAMESPACE/NAME"},
		{a, "get services default/nope", 1, "", "no cluster shares"},
		{a, "get identities 131072", 0, "k8s:app=web,k8s:tier=front", ""},
		{a, "get identity 7", 1, "", "there is no identity 7"},
		{a, "get identity web", 1, "", "want a number"},
		{a, "get ips", 0, "10.2.1.10/32", ""},
		{a, "get ips -c c3", 0, "", "No ips found."},
		{a, "get ip 10.2.1.10", 0, "default/web-0", ""},
		{a, "get ip 10.2.1.10/32 -o name", 0, "10.2.1.10/32\n", ""},
		{a, "get ip 10.9.9.9", 1, "", "no cluster claims 10.9.9.9/32"},
		{a, "get ip nope", 1, "", "want an address"},
		{a, "get ip 10.2.1.10 -c c2", 2, "", "give either the NAME"},
		{a, "get health", 0, "remote-cluster.c3", ""},
		{a, "get health remote-cluster.c2", 0, "ok", ""},
		{a, "get health nope", 1, "", "nothing with the name"},
		{a, "get", 2, "", "want RESOURCE [NAME]"},
		{a, "get nodes a b", 2, "", "want RESOURCE [NAME]"},
		{a, "get gremlins", 2, "", "want one of clusters, nodes, services, serviceexports, identities, ips, conflicts, events, health"},
		{a, "get nodes -o xml", 2, "", "must be one of table, wide, json, yaml, name"},
		{a, "get nodes --frobnicate", 2, "", "unknown flag: --frobnicate"},

		{a, "lookup 10.2.1.10", 0, "pod default/web-0 in cluster c2", ""},
		{a, "lookup 10.9.9.9", 1, "No cluster is known to claim 10.9.9.9.", ""},
		{a, "lookup 10.9.9.9 -o json", 1, `"match": null`, ""},
		{a, "lookup nonsense", 2, "", "want an IPv4 or IPv6 address, or the name of a pod that has one"},
		{a, "lookup web-0", 0, "10.2.1.10 is pod default/web-0 in cluster c2", ""},
		{a, "lookup default/web-0", 0, "10.2.1.10 is pod default/web-0 in cluster c2", ""},
		{a, "lookup web-", 2, "", "see 'mesh-agent get ips --contains web-'"}, // not a part of any name
		{a, "lookup other/web-0", 2, "", "the name of a pod"},
		{a, "get ips --contains eb-0", 0, "10.2.1.10/32", ""},
		{a, "get ips --contains eb-1", 0, "", "No ips found."},
		{a, "lookup", 2, "", "want one ADDRESS"},

		{empty, "render", 2, "", "give at least one template"},
		{empty, "render --once -t x", 2, "", "want TEMPLATE=FILE"},
		{empty, "render --once -t nope=nope", 1, "", "no such file"},
		{empty, "render --dry-run -t ../../docs/templates/hosts.tmpl=hosts", 0, "127.0.0.1 localhost", ""},

		{a, "version", 0, "mesh-agent ", ""},
		{a, "version -o json", 0, `"version": `, ""},
		{a, "version --notices", 0, "Apache License", ""},
		{a, "version --notices -o json", 2, "", "--notices is a text: -o does not go with it"},
		{empty, "status --fail-on=conflicts,none", 2, "", "none goes with nothing else"},
		{a, "version -o yaml", 0, "version: ", ""},
		{a, "version x", 2, "", "unexpected argument"},
		{a, "stauts", 2, "", `unknown command "stauts"; did you mean status?`},
		{a, "", 0, "Usage:", ""},
		{a, "help get", 0, "NAMESPACE/NAME", ""},
		{a, "completion bash", 0, "mesh-agent", ""},
	}
	for _, test := range tests {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			got := clitest.Patient(test.of.Ask, strings.Fields(test.args)...)
			if got.Code != test.code || !clitest.Has(got.Out, test.out) || !clitest.Has(got.Err, test.err) {
				// Progress is also a message.
				if test.err == "" && strings.HasPrefix(got.Err, "Waiting for") && got.Code == test.code {
					return
				}
				t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got.Code, test.code, got.Out, got.Err)
			}
			if strings.HasPrefix(got.Err, "Error: ") && strings.Count(got.Err, "\n") != 1 {
				t.Errorf("the error is not one line:\n%s", got.Err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"status", "get nodes", "get nodes c2/n1", "lookup 10.0.0.1", "status --wait --timeout 20ms"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := clitest.Patient(clitest.With(nil, "/nonexistent/agent.sock", "127.0.0.1:1").Run, strings.Fields(args)...)
			if got.Code != 2 || got.Out != "" || !strings.Contains(got.Err, "/nonexistent/agent.sock") || !strings.Contains(got.Err, "is it running?") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestWhichAgent(t *testing.T) {
	t.Parallel()
	flag, env, socket := clitest.NewAgent(t, clitest.Well("flag", 2)), clitest.NewAgent(t, clitest.Well("env", 2)), clitest.NewAgent(t, clitest.Well("socket", 2))
	tcp := clitest.NewAgent(t, clitest.Well("tcp", 2))
	list := []string{"get", "clusters", "-o", "name"}
	tests := map[string]struct {
		env            map[string]string
		socket, server string
		args           []string
		want           string
		code           int
	}{
		"--server":                      {nil, socket.Socket, tcp.Address, append(list, "--server", flag.Server), "flag\n", 0},
		"--server before the command":   {nil, socket.Socket, tcp.Address, append([]string{"--server", flag.Server}, list...), "flag\n", 0},
		"--server without a scheme":     {nil, socket.Socket, tcp.Address, append(list, "--server="+flag.Address), "flag\n", 0},
		"--socket":                      {nil, socket.Socket, tcp.Address, append(list, "--socket", flag.Socket), "flag\n", 0},
		"both":                          {nil, socket.Socket, tcp.Address, append(list, "--socket", flag.Socket, "--server", flag.Server), "", 2},
		"a flag wins over variables":    {map[string]string{"MESH_AGENT_SOCKET": env.Socket, "MESH_AGENT_SERVER": env.Server}, "", "", append(list, "--server", flag.Server), "flag\n", 0},
		"the variable for the server":   {map[string]string{"MESH_AGENT_SERVER": env.Server}, socket.Socket, tcp.Address, list, "env\n", 0},
		"the variable for the socket":   {map[string]string{"MESH_AGENT_SOCKET": env.Socket}, socket.Socket, tcp.Address, list, "env\n", 0},
		"other flags have variables":    {map[string]string{"MESH_AGENT_OUTPUT": "name"}, socket.Socket, tcp.Address, list[:2], "socket\n", 0},
		"a variable with a bad value":   {map[string]string{"MESH_AGENT_OUTPUT": "xml"}, socket.Socket, tcp.Address, list[:2], "", 2},
		"a flag wins over its variable": {map[string]string{"MESH_AGENT_OUTPUT": "xml"}, socket.Socket, tcp.Address, list, "socket\n", 0},
		"the default socket":            {nil, socket.Socket, tcp.Address, list, "socket\n", 0},
		"the default address":           {nil, "/nonexistent", tcp.Address, list, "tcp\n", 0},
		"no other than the one given":   {nil, socket.Socket, tcp.Address, append(list, "--socket", "/nonexistent"), "", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clitest.With(test.env, test.socket, test.server).Run(test.args...)
			if got.Out != test.want || got.Code != test.code || (got.Err == "") != (test.code == 0) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestJSONIsTheAPIsOwn(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2))
	got := a.Ask("get", "ips", "-o", "json")
	var l api.List[api.IP]
	if err := json.Unmarshal([]byte(got.Out), &l); err != nil || len(l.Items) != 1 || l.Revision == 0 || l.Items[0].Claims != 2 {
		t.Errorf("%+v %v", l, err)
	}
	got = a.Ask("get", "ips", "10.2.1.10", "-o", "json")
	var one api.IP
	if err := json.Unmarshal([]byte(got.Out), &one); err != nil || one != l.Items[0] {
		t.Errorf("%+v %v", one, err)
	}
}

// waiting runs status with --wait until it has printed what it waits for. It returns the lines after that one, and the
// exit code.
func waiting(t *testing.T, out io.Writer, first string, args ...string) (lines *bufio.Reader, code <-chan int) {
	t.Helper()
	said, errs := io.Pipe()
	root := cli.Root(clitest.With(nil, "/nonexistent", "127.0.0.1:1").Cli, &cobra.Command{Use: "run"})
	root.SetOut(out)
	root.SetErr(errs)
	ended := make(chan int, 1)
	go func() {
		ended <- command.Execute(root, append([]string{"status", "--wait", "--timeout", "10m"}, args...))
		errs.Close()
	}()
	lines = bufio.NewReader(said)
	if line, err := lines.ReadString('\n'); err != nil || line != first {
		t.Errorf("does not say what it waits for: %q %v", line, err)
	}
	return lines, ended
}

// TestWaitEndsWhenTheGoalIsReached also wants each step to be reported once.
func TestWaitEndsWhenTheGoalIsReached(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Lost("c3"))
	var out bytes.Buffer
	lines, code := waiting(t, &out, "Waiting for 1 of 1 cluster to be fresh: c3 (degraded)\n", "--for=fresh", "--server", a.Server)
	a.Mesh.SetClusters(clitest.Well("c3", 3))
	rest, err := io.ReadAll(lines)
	if got := <-code; got != exit.OK || err != nil || len(rest) > 0 || !strings.Contains(out.String(), "ready") {
		t.Errorf("exit %d, %s, then %q %v", got, &out, rest, err)
	}
}

// TestWaitForTheAgent: the command waits for an agent that is not there yet.
func TestWaitForTheAgent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agent.sock")
	lines, code := waiting(t, io.Discard, "Waiting for the agent\n", "--socket", path)
	a := &clitest.Agent{Mesh: new(fakemesh.Mesh)}
	s, err := httpapi.NewServer(a.Params(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("", path, false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- s.Serve(ctx) }()
	rest, err := io.ReadAll(lines)
	if got := <-code; got != exit.OK || err != nil || len(rest) > 0 {
		t.Errorf("exit %d, then %q %v", got, rest, err)
	}
	cancel()
	<-served
}

func TestErrorsToExitCodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err  error
		code int
	}{
		"nothing":               {nil, 0},
		"a failure":             {errors.New("no"), 1},
		"wrong usage":           {exit.Usagef("no"), 2},
		"wrong usage, wrapped":  {fmt.Errorf("run: %w", exit.UsageError{Err: errors.New("no")}), 2},
		"a socket in use":       {fmt.Errorf("start: %w", &transport.ListenError{Place: "/x", Err: transport.ErrSocketInUse}), 2},
		"an unknown object":     {&api.Problem{Status: 404, Detail: "no"}, 1},
		"a bad request":         {&api.Problem{Status: 400, Detail: "no"}, 2},
		"an error of the agent": {&api.Problem{Status: 500, Detail: "no"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &command.Env{Getenv: func(string) string { return "" }}
			var errs bytes.Buffer
			root := cli.Root(c, &cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { return test.err }})
			root.SetErr(&errs)
			if code := command.Execute(root, []string{"run"}); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if (errs.Len() > 0) != (test.err != nil) {
				t.Errorf("stderr: %s", &errs)
			}
		})
	}
}

func TestGroupsOfCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]clitest.Result{
		"config":       {Code: 0, Out: "check", Err: ""},
		"config chekc": {Code: 2, Out: "", Err: `unknown command "chekc"; did you mean check?`},
		"completion x": {Code: 2, Out: "", Err: "unknown command"},
	} {
		got := clitest.With(nil, "", "").Run(strings.Fields(line)...)
		if got.Code != want.Code || !clitest.Has(got.Out, want.Out) || !clitest.Has(got.Err, want.Err) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
