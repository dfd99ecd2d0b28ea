package main

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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
)

// result is what a command line did.
type result struct {
	code     int
	out, err string
}

// command is a command line that is being put together.
type command struct {
	cli *cli
}

// began is when the heartbeats of the tests' clusters are written, and what time it
// is for those who judge them: a machine may be so busy that minutes pass in between.
var began = time.Now()

// with returns a command line in an environment; the places where an agent is
// looked for by default are the given ones.
func with(env map[string]string, socket, server string) command {
	return command{&cli{
		getenv:        func(name string) string { return env[name] },
		environ:       func() []string { return pairs(env) },
		defaultSocket: socket, defaultServer: server, poll: 5 * time.Millisecond, now: func() time.Time { return began },
	}}
}

func pairs(env map[string]string) []string {
	var list []string
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

func (c command) run(args ...string) result {
	var out, errs bytes.Buffer
	root := c.cli.root(&cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { return nil }})
	root.SetOut(&out)
	root.SetErr(&errs)
	code := execute(root, args)
	return result{code, out.String(), errs.String()}
}

// patient runs a command line, with twice the timeout as long as nobody had the time to answer.
func patient(run func(args ...string) result, args ...string) result {
	for {
		got := run(args...)
		i := slices.Index(args, "--timeout") + 1
		if i == 0 || !strings.Contains(got.err, "has not answered once") {
			return got
		}
		d, err := time.ParseDuration(args[i])
		if err != nil {
			return got
		}
		args[i] = (2 * d).String()
	}
}

// ask runs a command line against this agent.
func (a *agent) ask(args ...string) result {
	return with(nil, "/nonexistent", "127.0.0.1:1").run(append(args, "--server", a.server)...)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	a := newAgent(t, well("c2", 2), lost("c3"))
	empty := newAgent(t)
	tests := []struct {
		of       *agent
		args     string
		code     int
		out, err string // what they contain; empty: nothing at all
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
		{a, "get ip 10.9.9.9", 1, "", "nobody claims 10.9.9.9/32"},
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
		{a, "lookup 10.9.9.9", 1, "Nobody is known to claim 10.9.9.9.", ""},
		{a, "lookup 10.9.9.9 -o json", 1, `"match": null`, ""},
		{a, "lookup nonsense", 2, "", "want an IPv4 or IPv6 address"},
		{a, "lookup", 2, "", "want one ADDRESS"},

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
			got := patient(test.of.ask, strings.Fields(test.args)...)
			if got.code != test.code || !contains(got.out, test.out) || !contains(got.err, test.err) {
				// Progress is a message, too.
				if test.err == "" && strings.HasPrefix(got.err, "Waiting for") && got.code == test.code {
					return
				}
				t.Errorf("exit code %d, want %d\nstdout:\n%s\nstderr:\n%s", got.code, test.code, got.out, got.err)
			}
			if strings.HasPrefix(got.err, "Error: ") && strings.Count(got.err, "\n") != 1 {
				t.Errorf("the error is not one line:\n%s", got.err)
			}
		})
	}
}

// contains wants nothing when want is empty.
func contains(text, want string) bool {
	if want == "" {
		return text == ""
	}
	return strings.Contains(text, want)
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"status", "get nodes", "get nodes c2/n1", "lookup 10.0.0.1", "status --wait --timeout 20ms"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			got := patient(with(nil, "/nonexistent/agent.sock", "127.0.0.1:1").run, strings.Fields(args)...)
			if got.code != 2 || got.out != "" || !strings.Contains(got.err, "/nonexistent/agent.sock") || !strings.Contains(got.err, "is it running?") {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestWhichAgent(t *testing.T) {
	t.Parallel()
	flag, env, socket := newAgent(t, well("flag", 2)), newAgent(t, well("env", 2)), newAgent(t, well("socket", 2))
	tcp := newAgent(t, well("tcp", 2))
	list := []string{"get", "clusters", "-o", "name"}
	tests := map[string]struct {
		env            map[string]string
		socket, server string
		args           []string
		want           string
		code           int
	}{
		"--server":                      {nil, socket.socket, tcp.address, append(list, "--server", flag.server), "flag\n", 0},
		"--server before the command":   {nil, socket.socket, tcp.address, append([]string{"--server", flag.server}, list...), "flag\n", 0},
		"--server without a scheme":     {nil, socket.socket, tcp.address, append(list, "--server="+flag.address), "flag\n", 0},
		"--socket":                      {nil, socket.socket, tcp.address, append(list, "--socket", flag.socket), "flag\n", 0},
		"both":                          {nil, socket.socket, tcp.address, append(list, "--socket", flag.socket, "--server", flag.server), "", 2},
		"a flag wins over variables":    {map[string]string{"MESH_AGENT_SOCKET": env.socket, "MESH_AGENT_SERVER": env.server}, "", "", append(list, "--server", flag.server), "flag\n", 0},
		"the variable for the server":   {map[string]string{"MESH_AGENT_SERVER": env.server}, socket.socket, tcp.address, list, "env\n", 0},
		"the variable for the socket":   {map[string]string{"MESH_AGENT_SOCKET": env.socket}, socket.socket, tcp.address, list, "env\n", 0},
		"other flags have variables":    {map[string]string{"MESH_AGENT_OUTPUT": "name"}, socket.socket, tcp.address, list[:2], "socket\n", 0},
		"a variable with a bad value":   {map[string]string{"MESH_AGENT_OUTPUT": "xml"}, socket.socket, tcp.address, list[:2], "", 2},
		"a flag wins over its variable": {map[string]string{"MESH_AGENT_OUTPUT": "xml"}, socket.socket, tcp.address, list, "socket\n", 0},
		"the default socket":            {nil, socket.socket, tcp.address, list, "socket\n", 0},
		"the default address":           {nil, "/nonexistent", tcp.address, list, "tcp\n", 0},
		"no other than the one given":   {nil, socket.socket, tcp.address, append(list, "--socket", "/nonexistent"), "", 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := with(test.env, test.socket, test.server).run(test.args...)
			if got.out != test.want || got.code != test.code || (got.err == "") != (test.code == 0) {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestJSONIsTheAPIsOwn(t *testing.T) {
	t.Parallel()
	a := newAgent(t, well("c2", 2))
	got := a.ask("get", "ips", "-o", "json")
	var l api.List[api.IP]
	if err := json.Unmarshal([]byte(got.out), &l); err != nil || len(l.Items) != 1 || l.Revision == 0 || l.Items[0].Claims != 2 {
		t.Errorf("%+v %v", l, err)
	}
	got = a.ask("get", "ips", "10.2.1.10", "-o", "json")
	var one api.IP
	if err := json.Unmarshal([]byte(got.out), &one); err != nil || one != l.Items[0] {
		t.Errorf("%+v %v", one, err)
	}
}

// TestWaitEndsWhenTheGoalIsReached also wants each step reported once.
func TestWaitEndsWhenTheGoalIsReached(t *testing.T) {
	t.Parallel()
	a := newAgent(t, lost("c3"))
	var out bytes.Buffer
	said, errs := io.Pipe()
	root := with(nil, "/nonexistent", "127.0.0.1:1").cli.root(&cobra.Command{Use: "run"})
	root.SetOut(&out)
	root.SetErr(errs)
	code := make(chan int, 1)
	go func() {
		code <- execute(root, []string{"status", "--wait", "--for=fresh", "--timeout", "10m", "--server", a.server})
		errs.Close()
	}()
	lines := bufio.NewReader(said)
	line, err := lines.ReadString('\n')
	if err != nil || line != "Waiting for 1 of 1 cluster to be fresh: c3 (degraded)\n" {
		t.Errorf("does not say what it waits for: %q %v", line, err)
	}
	a.mesh.set(well("c3", 3))
	rest, err := io.ReadAll(lines)
	if got := <-code; got != exitOK || err != nil || len(rest) > 0 || !strings.Contains(out.String(), "ready") {
		t.Errorf("exit %d, %s, then %q %v", got, &out, rest, err)
	}
}

// TestWaitForTheAgent: an agent that comes back is waited for.
func TestWaitForTheAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "agent.sock")
	said, errs := io.Pipe()
	root := with(nil, "", "").cli.root(&cobra.Command{Use: "run"})
	root.SetOut(io.Discard)
	root.SetErr(errs)
	code := make(chan int, 1)
	go func() {
		code <- execute(root, []string{"status", "--wait", "--timeout", "10m", "--socket", path})
		errs.Close()
	}()
	lines := bufio.NewReader(said)
	if line, err := lines.ReadString('\n'); err != nil || line != "Waiting for the agent\n" {
		t.Errorf("does not say what it waits for: %q %v", line, err)
	}
	a := &agent{mesh: &testMesh{}}
	s, err := api.NewServer(a.sources(t), slog.New(slog.DiscardHandler))
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
	if got := <-code; got != exitOK || err != nil || len(rest) > 0 {
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
		"wrong usage":           {usagef("no"), 2},
		"wrong usage, wrapped":  {fmt.Errorf("run: %w", usageError{errors.New("no")}), 2},
		"a socket in use":       {fmt.Errorf("start: %w", &transport.ListenError{Place: "/x", Err: transport.ErrSocketInUse}), 2},
		"an unknown object":     {&api.Problem{Status: 404, Detail: "no"}, 1},
		"a bad request":         {&api.Problem{Status: 400, Detail: "no"}, 2},
		"an error of the agent": {&api.Problem{Status: 500, Detail: "no"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &cli{getenv: func(string) string { return "" }}
			var errs bytes.Buffer
			root := c.root(&cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { return test.err }})
			root.SetErr(&errs)
			if code := execute(root, []string{"run"}); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if (errs.Len() > 0) != (test.err != nil) {
				t.Errorf("stderr: %s", &errs)
			}
		})
	}
}

func TestEveryResourceIsInTheHelp(t *testing.T) {
	t.Parallel()
	var documented []string
	for line := range strings.Lines(resourceHelp()) {
		documented = append(documented, strings.Fields(line)[0])
	}
	if diff := cmp.Diff(resourceNames(), documented); diff != "" {
		t.Error(diff)
	}
}
