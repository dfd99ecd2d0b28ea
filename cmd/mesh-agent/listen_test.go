package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/pki"
)

func TestWhereAnAgentMayListen(t *testing.T) {
	t.Parallel()
	secure := ListenConfig{TLSCert: "a.crt", TLSKey: "a.key", TLSClientCA: "ca.crt"}
	for _, test := range []struct {
		listen string
		config ListenConfig
		want   string // in the mistake; empty: none
	}{
		{"127.0.0.1:9979", ListenConfig{}, ""},
		{"127.8.9.1:1", ListenConfig{}, ""},
		{"[::1]:9979", ListenConfig{}, ""},
		{"[::ffff:127.0.0.1]:9979", ListenConfig{}, ""},
		{"LocalHost:0", ListenConfig{}, ""},
		{"0.0.0.0:9979", ListenConfig{}, "--listen-insecure"},
		{":9979", ListenConfig{}, "--tls-client-ca-file"},
		{"[::]:9979", ListenConfig{}, defaultListen},
		{"10.0.0.1:9979", ListenConfig{}, "--listen-insecure"},
		{"node-1:9979", ListenConfig{}, "--listen-insecure"},
		{"localhost.example:9979", ListenConfig{}, "--listen-insecure"},
		{"0.0.0.0:9979", ListenConfig{Insecure: true}, ""},
		{"0.0.0.0:9979", secure, ""},
		{"0.0.0.0:9979", ListenConfig{TLSCert: "a.crt", TLSKey: "a.key"}, ""},
		{"127.0.0.1:9979", secure, ""},
		{"127.0.0.1:9979", ListenConfig{TLSCert: "a.crt"}, "together"},
		{"127.0.0.1:9979", ListenConfig{TLSKey: "a.key"}, "together"},
		{"127.0.0.1:9979", ListenConfig{TLSClientCA: "ca.crt"}, "with TLS only"},
		{"127.0.0.1", ListenConfig{}, "no address with a port"},
	} {
		c := defaultConfig()
		c.ClustermeshConfig, c.Listen, c.Listening = t.TempDir(), test.listen, test.config
		c.Listening.Limits = defaultListenLimits()
		err := c.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %+v: %v", test.listen, test.config, err)
		}
	}
}

// TestAskingAnAgentOverTLS: the command line shows its certificate, and without one
// it is told that the agent cannot be reached.
func TestAskingAnAgentOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, err := pki.NewCA("mesh")
	must(t, err)
	authority, err := ca.Write(dir, "ca")
	must(t, err)
	server, err := ca.Server([]string{"127.0.0.1"})
	must(t, err)
	cert, key, err := server.Write(dir, "server")
	must(t, err)
	me, err := ca.Client("me")
	must(t, err)
	myCert, myKey, err := me.Write(dir, "me")
	must(t, err)
	mesh := filepath.Join(dir, "mesh")
	must(t, os.Mkdir(mesh, 0o700))
	a := startAgent(t, mesh, "--listen", "0.0.0.0:0", "--tls-cert-file", cert, "--tls-key-file", key, "--tls-client-ca-file", authority)
	if strings.Contains(a.log.String(), "nobody is authenticated") {
		t.Error("it warns of clients that need a certificate")
	}
	_, port, err := net.SplitHostPort(a.listening())
	must(t, err)
	url := "https://127.0.0.1:" + port
	for _, test := range []struct {
		what string
		args []string
		code int
		says string // on stderr
	}{
		{"with everything", []string{"--server", url, "--server-ca-file", authority, "--server-cert-file", myCert, "--server-key-file", myKey}, exitOK, ""},
		{"without a certificate", []string{"--server", url, "--server-ca-file", authority}, exitUsage, "certificate required"},
		{"without the authority", []string{"--server", url, "--server-cert-file", myCert, "--server-key-file", myKey}, exitUsage, "unknown authority"},
		{"without the key", []string{"--server", url, "--server-cert-file", myCert}, exitUsage, "together"},
		{"in plain text", []string{"--server", "http://127.0.0.1:" + port}, exitUsage, "400 Bad Request"},
		{"plain with files", []string{"--server", "http://127.0.0.1:1", "--server-ca-file", authority}, exitUsage, "certificates are for https://"},
	} {
		if _, errs, code := call(t, append([]string{"get", "clusters"}, test.args...)...); code != test.code || !strings.Contains(errs, test.says) {
			t.Errorf("%s: %d %s", test.what, code, errs)
		}
	}
}
