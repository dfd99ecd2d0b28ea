package program

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantRefused checks that a request was refused, and that the error contains the reason.
func wantRefused(t *testing.T, err error, usage bool, reason string) {
	t.Helper()
	var refused *sim.RefusedError
	if !errors.As(err, &refused) || refused.Usage != usage || !strings.Contains(refused.Reason, reason) {
		t.Errorf("refused with %v (usage %t), want %q", err, usage, reason)
	}
}

// served runs a mesh of two clusters with its control socket, and returns the socket.
func served(t *testing.T) (mesh, string) {
	t.Helper()
	m := mesh{meshtest.Mesh(t, sim.Options{Plain: true}, meshtest.Clusters(2)...)}
	socket, err := m.controlSocket("")
	must(t, err)
	l, err := listenControl(socket)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.serveControl(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(socket); err == nil {
			t.Error("the socket is left")
		}
	})
	return m, socket
}

func TestRequestsOverTheSocket(t *testing.T) {
	t.Parallel()
	m, socket := served(t)
	ctx := waittest.Context(t)
	info, err := os.Lstat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v: %v", info.Mode(), err)
	}
	a, err := Ask(ctx, socket, Request{Command: "list"})
	if err != nil || len(a.Clusters) != 2 || *a.Clusters[1].Keys != 293 || a.Clusters[1].ClientFile != m.ClientFile(m.Clusters()[1]) {
		t.Errorf("list: %+v, %v", a, err)
	}
	a, err = Ask(ctx, socket, Request{Command: "malform", Args: []string{"cluster2", "nodes"}})
	if err != nil || len(a.Keys) != 1 || m.Clusters()[1].Contents()[a.Keys[0]] != contents.Malformed || a.Clusters[0].Changed != 1 {
		t.Errorf("malform: %+v, %v", a, err)
	}
	if _, err := Ask(ctx, filepath.Join(t.TempDir(), "none"), Request{Command: "list"}); !errors.As(err, new(*NoSimulatorError)) {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestEveryCommand runs each command with valid arguments.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	m, socket := served(t)
	ctx := waittest.Context(t)
	untried := map[string]bool{}
	for _, c := range Commands() {
		untried[c.Name] = true
	}
	delete(untried, "certificate") // it needs TLS
	flag := func(name, value string) map[string][]string { return map[string][]string{name: {value}} }
	for _, tc := range []struct {
		command string
		args    []string
		flags   map[string][]string
		state   string // the state afterwards
	}{
		{"kill", nil, nil, "killed"},
		{"start", nil, nil, "running"},
		{"restart", nil, nil, "running"},
		{"freeze", nil, nil, "frozen"},
		{"freeze", nil, flag("for", "1h"), "frozen"},
		{"thaw", nil, nil, "running"},
		{"replace", nil, nil, "running"},
		{"replace", nil, flag("empty", ""), "empty"},
		{"mend", nil, nil, "running"},
		{"wipe", nil, nil, "empty"},
		{"mend", nil, nil, "running"},
		{"compact", nil, nil, "running"},
		{"heartbeat", []string{"off"}, nil, "running"},
		{"heartbeat", []string{"on"}, nil, "running"},
		{"put", []string{"k", "v"}, nil, "running"},
		{"delete", []string{"k"}, nil, "running"},
		{"malform", []string{"ips"}, nil, "running"},
		{"config", nil, flag("id", "7"), "running"},
		{"config", nil, map[string][]string{"capability": {"syncedCanaries=false", "cached=true"}}, "running"},
		{"config", nil, flag("delete", ""), "running"},
		{"claim", []string{m.Clusters()[1].Sample().Pod.String()}, nil, "running"},
		{"churn", []string{"2.5"}, nil, "running"},
		{"mend", nil, nil, "running"},
		{"remove", nil, nil, "running"},
		{"add", nil, nil, "running"},
		{"list", nil, nil, "running"},
	} {
		q := Request{Command: tc.command, Args: append([]string{"cluster1"}, tc.args...), Flags: tc.flags}
		if tc.command == "list" {
			q.Args = nil
		}
		a, err := Ask(ctx, socket, q)
		if err != nil {
			t.Fatalf("%s: %v", tc.command, err)
		}
		if s := a.Clusters[0]; s.State != tc.state || !strings.HasPrefix(a.Message, "cluster1: ") && tc.command != "list" {
			t.Errorf("%s: %q, then %+v", tc.command, a.Message, s)
		}
		if a.Clusters[0].State != "killed" {
			equal(t, m.Clusters()[0])
		}
		delete(untried, tc.command)
	}
	if len(untried) > 0 {
		t.Errorf("not tried: %v", untried)
	}
	equal(t, m.Clusters()[0])
}

// TestACertificateThatEnds: it replaces the agent's, and is accepted until it expires.
func TestACertificateThatEnds(t *testing.T) {
	t.Parallel()
	m := mesh{meshtest.Mesh(t, sim.Options{}, meshtest.Clusters(1)...)}
	ends := func(valid string) time.Time {
		t.Helper()
		a, err := m.do(waittest.Context(t), Request{Command: "certificate", Args: []string{"cluster1", valid}})
		if err != nil || !strings.HasPrefix(a.Message, "cluster1: ") {
			t.Fatalf("%+v, %v", a, err)
		}
		text, err := os.ReadFile(filepath.Join(m.Dir(), "cluster1.etcd-client.crt"))
		must(t, err)
		block, _ := pem.Decode(text)
		cert, err := x509.ParseCertificate(block.Bytes)
		must(t, err)
		return cert.NotAfter
	}
	if left := time.Until(ends("1h")); left < 59*time.Minute || left > time.Hour {
		t.Errorf("valid for %s", left)
	}
	if left := time.Until(ends("-1m")); left > 0 {
		t.Errorf("valid for %s", left)
	}
}

func TestWrongRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	m, socket := served(t)
	ctx := waittest.Context(t)
	before, err := m.State(ctx, m.Clusters()...)
	must(t, err)
	one := func(args ...string) []string { return append([]string{"cluster1"}, args...) }
	for _, tc := range []struct {
		q     Request
		usage bool
		want  string
	}{
		{Request{Command: "flee"}, true, "there are list, kill"},
		{Request{Command: "kill"}, true, "takes 1 arguments, not 0: kill CLUSTER"},
		{Request{Command: "kill", Args: one("x")}, true, "not 2"},
		{Request{Command: "kill", Args: []string{"cluster9"}}, false, "there are cluster1, cluster2"},
		{Request{Command: "kill", Args: one(), Flags: map[string][]string{"hard": {""}}}, true, "no flag --hard"},
		{Request{Command: "freeze", Args: one(), Flags: map[string][]string{"for": {"1s", "2s"}}}, true, "once"},
		{Request{Command: "freeze", Args: one(), Flags: map[string][]string{"for": {"-1s"}}}, true, "above zero"},
		{Request{Command: "start", Args: one()}, false, "runs already"},
		{Request{Command: "thaw", Args: one()}, false, "not frozen"},
		{Request{Command: "heartbeat", Args: one("maybe")}, true, "on or off"},
		{Request{Command: "heartbeat", Args: one("on")}, false, "on already"},
		{Request{Command: "malform", Args: one("pods")}, true, "use one of"},
		{Request{Command: "config", Args: one()}, true, "--delete alone"},
		{Request{Command: "config", Args: one(), Flags: map[string][]string{"id": {"0"}}}, true, "above zero"},
		{Request{Command: "config", Args: one(), Flags: map[string][]string{"capability": {"cached"}}}, true, "NAME=VALUE"},
		{Request{Command: "churn", Args: one("fast")}, true, "a number"},
		{Request{Command: "churn", Args: one("NaN")}, true, "NaN"},
		{Request{Command: "claim", Args: one("10.1")}, true, "no IP address"},
		{Request{Command: "claim", Args: one("192.0.2.1")}, false, "one that cluster2 has is"},
		{Request{Command: "delete", Args: one("k")}, false, "no key k"},
		{Request{Command: "add", Args: one()}, false, "already"},
	} {
		_, err := Ask(ctx, socket, tc.q)
		wantRefused(t, err, tc.usage, tc.want)
	}
	after, err := m.State(ctx, m.Clusters()...)
	must(t, err)
	for i := range before {
		if *before[i].Keys != *after[i].Keys || before[i].State != after[i].State || after[i].Changed != 0 {
			t.Errorf("before %+v, after %+v", before[i], after[i])
		}
	}
	equal(t, m.Clusters()[0])
}

func TestControlRefusesWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	var m mesh
	for _, tc := range []struct{ method, path, body string }{
		{http.MethodGet, "/", ""},
		{http.MethodPost, "/list", "{}"},
		{http.MethodPost, "/", "{"},
		{http.MethodPost, "/", `{"command":"list","extra":1}`},
		{http.MethodPost, "/", `{"command":["list"]}`},
	} {
		w := httptest.NewRecorder()
		m.control(w, httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body)))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `{"error":"`) {
			t.Errorf("%s %s %s: %d %s", tc.method, tc.path, tc.body, w.Code, w.Body)
		}
	}
}

func TestPathsOfSockets(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "sim") // short, as the path of a socket has a limit
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	dead, live, file := filepath.Join(dir, "dead"), filepath.Join(dir, "live"), filepath.Join(dir, "file")
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	old, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: dead})
	must(t, err)
	old.SetUnlinkOnClose(false)
	must(t, old.Close())
	// A child process that another test starts at this moment has the socket open until it executes its program.
	waittest.Until(t, "nobody to listen on the dead socket", func() bool { return !listens(dead) })
	for _, path := range []string{dead, live} {
		l, err := listenControl(path)
		must(t, err)
		defer func() { _ = l.Close() }()
		if !listens(path) {
			t.Errorf("nobody listens on %s", path)
		}
	}
	for path, want := range map[string]string{
		live:                            "another simulator uses it",
		file:                            "something else of that name",
		filepath.Join(file, "x"):        "control socket",
		filepath.Join(dir, "none", "x"): "control socket",
		filepath.Join(dir, strings.Repeat("x", 99)): "too long",
	} {
		_, err := listenControl(path)
		var unusable *sim.DirectoryError
		if !errors.As(err, &unusable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x" {
		t.Errorf("the file is changed: %q, %v", text, err)
	}
}

// equal compares a cluster's keys in etcd with those that the simulator reports.
func equal(t *testing.T, r *sim.Running) {
	t.Helper()
	resp, err := r.Client().Get(t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range resp.Kvs {
		if key := string(e.Key); key != wire.HeartbeatKey && !strings.HasPrefix(key, wire.SyncedPrefix+"/") { // their values are times
			got[key] = string(e.Value)
		}
	}
	if diff := cmp.Diff(r.Contents(), got); diff != "" {
		t.Errorf("etcd differs from what the simulator says (-simulator +etcd):\n%s", diff)
	}
}
