package agent_test

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
)

func TestLimitsOfTheAPI(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.ClustermeshConfig = t.TempDir()
	_, err := c.Typed()
	agenttest.Must(t, err)
	if got := c.Listening.Limits.OfServer(); got != transport.DefaultLimits() {
		t.Errorf("%+v", got)
	}
	for field, v := range reflect.ValueOf(&c.Listening.Limits).Elem().Fields() {
		name, value := field.Tag.Get("flag"), v.Uint()
		v.SetUint(0)
		if _, err := c.Typed(); err == nil || !strings.Contains(err.Error(), "--"+name+": 0 would refuse all clients") {
			t.Errorf("--%s=0: %v", name, err)
		}
		v.SetUint(value)
	}
}

// TestLimitsOfTheAPIAreKept: the flags set the limits of the server, and refusals are counted.
func TestLimitsOfTheAPIAreKept(t *testing.T) {
	t.Parallel()
	a := agenttest.StartAgent(t, t.TempDir(), "--listen-max-watches", "1")
	address := tcpAddress(a)
	tcp := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		resp, err := tcp.Get("http://" + address + "/v1/watch?resource=nodes")
		agenttest.Must(t, err)
		defer resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("%s, want %d", resp.Status, want)
		}
	}
	got := series(t, a, "mesh_agent_api_refused_total")
	if got[`mesh_agent_api_refused_total{limit="watches"}`] != "1" || len(got) != 2*reflect.TypeFor[transport.Limits]().NumField() {
		t.Errorf("%v", got)
	}
}

func TestWhereAnAgentMayListen(t *testing.T) {
	t.Parallel()
	secure := config.ListenConfig{TLSCert: "a.crt", TLSKey: "a.key", TLSClientCA: "ca.crt"}
	for _, test := range []struct {
		listen string
		config config.ListenConfig
		want   string // part of the mistake; empty for none
	}{
		{"127.0.0.1:9979", config.ListenConfig{}, ""},
		{"127.8.9.1:1", config.ListenConfig{}, ""},
		{"[::1]:9979", config.ListenConfig{}, ""},
		{"[::ffff:127.0.0.1]:9979", config.ListenConfig{}, ""},
		{"LocalHost:0", config.ListenConfig{}, ""},
		{"0.0.0.0:9979", config.ListenConfig{}, "--listen-insecure"},
		{":9979", config.ListenConfig{}, "--tls-client-ca-file"},
		{"[::]:9979", config.ListenConfig{}, api.DefaultListen},
		{"10.0.0.1:9979", config.ListenConfig{}, "--listen-insecure"},
		{"node-1:9979", config.ListenConfig{}, "--listen-insecure"},
		{"localhost.example:9979", config.ListenConfig{}, "--listen-insecure"},
		{"0.0.0.0:9979", config.ListenConfig{Insecure: true}, ""},
		{"0.0.0.0:9979", secure, ""},
		{"0.0.0.0:9979", config.ListenConfig{TLSCert: "a.crt", TLSKey: "a.key"}, ""},
		{"127.0.0.1:9979", secure, ""},
		{"127.0.0.1:9979", config.ListenConfig{TLSCert: "a.crt"}, "together"},
		{"127.0.0.1:9979", config.ListenConfig{TLSKey: "a.key"}, "together"},
		{"127.0.0.1:9979", config.ListenConfig{TLSClientCA: "ca.crt"}, "with TLS only"},
		{"127.0.0.1", config.ListenConfig{}, "no address with a port"},
	} {
		c := config.Default()
		c.ClustermeshConfig, c.Listen, c.Listening = t.TempDir(), test.listen, test.config
		c.Listening.Limits = config.DefaultListenLimits()
		_, err := c.Typed()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %+v: %v", test.listen, test.config, err)
		}
	}
}

// TestAskingAnAgentOverTLS: the command line presents its certificate. Without one it reports that the agent cannot be
// reached.
func TestAskingAnAgentOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, err := pki.NewCA("mesh")
	agenttest.Must(t, err)
	authority, err := ca.Write(dir, "ca")
	agenttest.Must(t, err)
	server, err := ca.Server([]string{"127.0.0.1"})
	agenttest.Must(t, err)
	cert, key, err := server.Write(dir, "server")
	agenttest.Must(t, err)
	me, err := ca.Client("me")
	agenttest.Must(t, err)
	myCert, myKey, err := me.Write(dir, "me")
	agenttest.Must(t, err)
	mesh := filepath.Join(dir, "mesh")
	agenttest.Must(t, os.Mkdir(mesh, 0o700))
	a := agenttest.StartAgent(t, mesh, "--listen", "0.0.0.0:0", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-client-ca-file", authority)
	if strings.Contains(a.Log.String(), "without authentication") {
		t.Error("it warns of clients that need a certificate")
	}
	_, port, err := net.SplitHostPort(tcpAddress(a))
	agenttest.Must(t, err)
	url := "https://127.0.0.1:" + port
	for _, test := range []struct {
		what string
		args []string
		code int
		says string // part of stderr
	}{
		{"with everything", []string{"--server", url, "--server-ca-file", authority, "--server-cert-file", myCert, "--server-key-file", myKey}, exit.OK, ""},
		{"without a certificate", []string{"--server", url, "--server-ca-file", authority}, exit.Usage, "certificate required"},
		{"without the authority", []string{"--server", url, "--server-cert-file", myCert, "--server-key-file", myKey}, exit.Usage, "unknown authority"},
		{"without the key", []string{"--server", url, "--server-cert-file", myCert}, exit.Usage, "together"},
		{"in plain text", []string{"--server", "http://127.0.0.1:" + port}, exit.Usage, "400 Bad Request"},
		{"plain with files", []string{"--server", "http://127.0.0.1:1", "--server-ca-file", authority}, exit.Usage, "certificates are for https://"},
	} {
		if _, errs, code := agenttest.Call(t, append([]string{"get", "clusters"}, test.args...)...); code != test.code || !strings.Contains(errs, test.says) {
			t.Errorf("%s: %d %s", test.what, code, errs)
		}
	}
}

// TestProbesWithoutACertificate: where the API needs a client certificate, a kubelet has a separate listener. It
// reports only whether the agent is alive and ready.
func TestProbesWithoutACertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, err := pki.NewCA("mesh")
	agenttest.Must(t, err)
	authority, err := ca.Write(dir, "ca")
	agenttest.Must(t, err)
	server, err := ca.Server([]string{"127.0.0.1"})
	agenttest.Must(t, err)
	cert, key, err := server.Write(dir, "server")
	agenttest.Must(t, err)
	mesh := filepath.Join(dir, "mesh")
	agenttest.Must(t, os.Mkdir(mesh, 0o700))
	agenttest.Must(t, os.WriteFile(filepath.Join(mesh, "away"), []byte("endpoints: [http://127.0.0.1:1]\n"), 0o600))
	a := agenttest.StartAgent(t, mesh, "--listen", "127.0.0.1:0", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-client-ca-file", authority,
		"--probe-listen", "0.0.0.0:0", "--clustermesh-sync-timeout=1h")
	if strings.Contains(a.Log.String(), "without authentication") {
		t.Error("it warns of clients that learn nothing")
	}
	var port string
	a.Until("the second address", func() bool {
		for line := range strings.Lines(a.Log.String()) {
			if _, after, found := strings.Cut(line, `address="[::]:`); found && strings.Contains(line, "Listening") {
				port, _, _ = strings.Cut(after, `"`)
			}
		}
		return port != ""
	})
	ask := func(method, path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:"+port+path, nil)
		agenttest.Must(t, err)
		resp, err := http.DefaultClient.Do(req)
		agenttest.Must(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		agenttest.Must(t, err)
		return resp.StatusCode, string(body)
	}
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/healthz", http.StatusOK},
		{"HEAD", "/healthz", http.StatusOK},
		{"GET", "/readyz", http.StatusServiceUnavailable},
		{"POST", "/healthz", http.StatusMethodNotAllowed},
		{"GET", "/v1/clusters", http.StatusNotFound},
		{"GET", "/metrics", http.StatusNotFound},
		{"GET", "/healthz/../v1/clusters", http.StatusNotFound},
	} {
		code, body := ask(c.method, c.path)
		if code != c.code || strings.Contains(body, "away") {
			t.Errorf("%s %s: %d %q, want %d and no name of a cluster", c.method, c.path, code, body, c.code)
		}
	}
	agenttest.Must(t, os.Remove(filepath.Join(mesh, "away")))
	a.Until("readiness", func() bool { code, _ := ask("GET", "/readyz"); return code == http.StatusOK })
}
