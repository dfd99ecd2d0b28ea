package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/etcdserver"
	"github.com/mesh-agent/mesh-agent/internal/pki"
	"github.com/mesh-agent/mesh-agent/internal/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/troubleshoot"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// troubleshooter runs the command with deadlines that a busy machine meets, and
// without DNS.
func troubleshooter() command {
	c := with(nil, "/nonexistent/agent.sock", "127.0.0.1:1")
	c.cli.troubleshooting = troubleshoot.Options{
		Now: began,
		Timings: troubleshoot.Timings{
			Resolve: time.Hour, Dial: time.Hour, TLS: time.Hour,
			Etcd: time.Hour, Read: time.Hour, Total: time.Hour,
		},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
	}
	return c
}

// plainCluster is an etcd of this cluster, without the key if one is given.
func plainCluster(t *testing.T, name, without string) *etcdtest.Server {
	t.Helper()
	s := etcdtest.Start(t)
	s.Put(t, wire.HeartbeatKey, string(wire.EncodeTimestamp(began)), wire.ClusterConfigKey(name), `{"id":2,"capabilities":{}}`)
	if without != "" {
		s.Delete(t, without)
	}
	return s
}

// brokenClusters are client files with one thing wrong each; soon and well have
// nothing that fails.
func brokenClusters(t *testing.T) (files map[string]string) {
	t.Helper()
	certs, others := etcdtest.NewCerts(t), etcdtest.NewCerts(t)
	cert, key := certs.Client(t, "remote")
	foreign, foreignKey := others.Client(t, "remote")
	now := began
	soon, soonKey := certs.Client(t, "soon", pki.Valid(now.Add(-time.Hour), now.Add(9*24*time.Hour+time.Hour)))
	secure := etcdtest.Start(t, etcdtest.WithTLS(certs))
	secure.Put(t, wire.HeartbeatKey, string(wire.EncodeTimestamp(now)), wire.ClusterConfigKey("soon"), `{"id":2,"capabilities":{}}`)
	old := etcdtest.NewCerts(t)
	old.SetServer(t, []string{"127.0.0.1"}, pki.Expired())
	expired := etcdtest.Start(t, etcdtest.WithTLS(old))
	oldsCert, oldsKey := old.Client(t, "remote")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // it accepts nothing, the kernel does
	poor := plainCluster(t, "no-rights", "")
	poor.EnableAuth(t, etcdserver.User{Name: "remote", Password: "geheim"})

	file := func(endpoint string, lines ...string) string {
		return fmt.Sprintf("endpoints: ['%s']\n%s\n", endpoint, strings.Join(lines, "\n"))
	}
	tls := func(endpoint, ca, cert, key string) string {
		return file(endpoint, "trusted-ca-file: "+ca, "cert-file: "+cert, "key-file: "+key)
	}
	return map[string]string{
		"no-yaml":         "endpoints: [x",
		"no-name":         file("http://c2.mesh.invalid:2379"),
		"refused":         file("http://127.0.0.1:1"),
		"silent":          file("https://" + silent.Addr().String()),
		"wrong-ca":        tls(secure.Endpoint(), others.CAFile, cert, key),
		"wrong-name":      tls(strings.Replace(secure.Endpoint(), "127.0.0.1", "c2.mesh.cilium.io", 1), certs.CAFile, cert, key) + "cilium-host-aliases: [{hostname: c2.mesh.cilium.io, ips: [127.0.0.1]}]\n",
		"expired":         tls(expired.Endpoint(), old.CAFile, oldsCert, oldsKey),
		"no-certificate":  file(secure.Endpoint(), "trusted-ca-file: "+certs.CAFile),
		"bad-certificate": tls(secure.Endpoint(), certs.CAFile, foreign, foreignKey),
		"wrong-key":       tls(secure.Endpoint(), certs.CAFile, cert, foreignKey),
		"no-rights":       file(poor.Endpoint(), "username: remote", "password: geheim"),
		"no-heartbeat":    file(plainCluster(t, "no-heartbeat", wire.HeartbeatKey).Endpoint()),
		"no-config":       file(plainCluster(t, "no-config", wire.ClusterConfigKey("no-config")).Endpoint()),
		"soon":            tls(secure.Endpoint(), certs.CAFile, soon, soonKey),
		"well":            file(plainCluster(t, "well", "").Endpoint()),
	}
}

func TestTroubleshootFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	dir := meshDirectory(t, brokenClusters(t))
	local := func(path string) []string {
		return []string{"--include-local", "--clustermesh-config", "/nonexistent/mesh", "--kvstore-opt", "etcd.config=" + path}
	}
	remote := func(name string) []string { return []string{name, "--clustermesh-config", dir} }
	for name, c := range map[string]struct {
		args                []string
		step, cause, remedy string
		code                codes.Code
	}{
		"a file that is missing":   {local("/nonexistent/etcd.config"), "client-file", "no such file or directory", "put the file there, or correct the path", codes.FileMissing},
		"a file that is none":      {local(t.TempDir()), "client-file", "is no regular file", "mesh-agent config check", codes.ClientFileUnreadable},
		"no YAML":                  {remote("no-yaml"), "client-file", "yaml: line 1", "correct what is named", codes.ClientFileNoYAML},
		"no such name":             {remote("no-name"), "resolve", "lookup c2.mesh.invalid: no such host", "the name does not resolve; check DNS", codes.HostUnknown},
		"refused":                  {remote("refused"), "tcp", "connection refused", "nothing listens there", codes.ConnectionRefused},
		"silent":                   {remote("silent"), "tls", "no answer: nothing within", "accepts connections there and says nothing", codes.ServerSilent},
		"another authority":        {remote("wrong-ca"), "server-certificate", "signed by unknown authority", "trusted-ca-file does not hold the authority", codes.ServerAuthorityUnknown},
		"another name":             {remote("wrong-name"), "server-certificate", "localhost, not c2.mesh.cilium.io", "the server's certificate is for other names", codes.ServerNameOther},
		"expired":                  {remote("expired"), "server-certificate", "it expired on ", "renew the server's certificate", codes.ServerCertificateInvalid},
		"no client certificate":    {remote("no-certificate"), "client-accepted", "the client file names none", "name a certificate that the server trusts", codes.ClientCertificateDemanded},
		"a certificate of others":  {remote("bad-certificate"), "client-accepted", "closed by the server", "the server refuses our client certificate", codes.ClientCertificateRefused},
		"a key of others":          {remote("wrong-key"), "client-certificate", "private key does not match", "must be of one pair", codes.CertificateOfOtherKey},
		"no rights":                {remote("no-rights"), "rights", "remote (password) may not read cilium/.heartbeat, cilium/cluster-config/no-rights", "role does not cover", codes.RightsMissing},
		"no heartbeat":             {remote("no-heartbeat"), "heartbeat", "there is no heartbeat cilium/.heartbeat", "does what writes it run: clustermesh-apiserver", codes.HeartbeatAbsent},
		"no cluster configuration": {remote("no-config"), "cluster-configuration", "there is no key cilium/cluster-config/no-config", "is this the etcd of that cluster", codes.ConfigurationMissing},
	} {
		t.Run(name, func(t *testing.T) {
			// One after the other: the heartbeats were just written, and grow old in a queue.
			run := troubleshooter()
			if name == "silent" {
				run.cli.troubleshooting.Timings.TLS = 300 * time.Millisecond
			}
			got := run.run(append([]string{"troubleshoot", "-o", "json"}, c.args...)...)
			var found struct {
				Failed   int
				Clusters []struct {
					Name, ConfigFile, State string
					Steps                   []struct{ Name, Endpoint, State, Detail, Code, Cause, Remedy string }
				}
			}
			if err := json.Unmarshal([]byte(got.out), &found); err != nil || got.code != exitUnwell || got.err != "" || found.Failed != 1 || len(found.Clusters) != 1 {
				t.Fatalf("%v %+v", err, got)
			}
			r := found.Clusters[0]
			i := slices.IndexFunc(r.Steps, func(s struct{ Name, Endpoint, State, Detail, Code, Cause, Remedy string }) bool {
				return s.State == "failed"
			})
			if i < 0 || r.State != "failed" || r.ConfigFile == "" || r.Steps[i].Name != c.step || r.Steps[i].Code != string(c.code) || !strings.Contains(r.Steps[i].Cause, c.cause) || !strings.Contains(r.Steps[i].Remedy, c.remedy) {
				t.Errorf("%s", got.out)
			}
			if strings.Contains(got.out, "geheim") {
				t.Errorf("a password: %s", got.out)
			}
		})
	}
}

func TestTroubleshoot(t *testing.T) {
	t.Parallel()
	all := brokenClusters(t)
	well := meshDirectory(t, map[string]string{"well": all["well"], "own": "endpoints: [broken"})
	mixed := meshDirectory(t, map[string]string{"well": all["well"], "soon": all["soon"], "refused": all["refused"]})
	own := plainCluster(t, "own", "")
	ownFile := own.ConfigFile(t)
	for args, want := range map[string]result{
		"--cluster-name own --clustermesh-config " + well:                         {0, "1 configuration checked: all is well", ""},
		"well well --clustermesh-config " + mixed:                                 {0, "1 configuration checked: all is well", ""},
		"soon well --clustermesh-config " + mixed:                                 {0, "nothing fails, with warnings: soon (client-certificate)", ""},
		"--clustermesh-config " + mixed:                                           {1, "3 configurations checked: 1 fails: refused (tcp)", ""},
		"own --cluster-name own --clustermesh-config " + well:                     {1, "own (client-file)", ""},
		"well nope --clustermesh-config " + mixed:                                 {1, "", `no client file of the cluster "nope" in ` + mixed + "; there are: refused, soon, well"},
		"well --cluster-name e --cluster-id 2 --clustermesh-config " + mixed:      {1, `cluster ID 2 is already used by our own cluster "e"`, ""},
		"--clustermesh-config " + t.TempDir():                                     {0, "No client file in", ""},
		"--clustermesh-config /nonexistent/mesh":                                  {2, "", "--clustermesh-config says where it is"},
		"--cluster-id 3":                                                          {2, "", "--cluster-id: cannot use default cluster name"},
		"-o table":                                                                {2, "", "text, json, yaml"},
		"--include-local --clustermesh-config " + mixed:                           {2, "", "--include-local: which kvstore?"},
		"--include-local --kvstore-opt etcd.nope=1 --clustermesh-config " + mixed: {2, "", `--kvstore-opt: kvstore option "etcd.nope": unknown`},
		"--include-local --cluster-name own --kvstore-opt etcd.config=" + ownFile + " --clustermesh-config " + well:  {0, "local kvstore of own", ""},
		"--include-local --kvstore-opt etcd.address=" + own.Endpoint() + " --clustermesh-config /nonexistent/mesh":   {0, "local kvstore of default", ""},
		"well --include-local --kvstore-opt etcd.address=" + own.Endpoint() + " --clustermesh-config /nonexistent/m": {2, "", "--clustermesh-config says where it is"},
	} {
		t.Run(args, func(t *testing.T) {
			// One after the other: the heartbeats were just written, and grow old in a queue.
			got := troubleshooter().run(append([]string{"troubleshoot"}, strings.Fields(args)...)...)
			if got.code != want.code || !contains(got.out, want.out) || !contains(got.err, want.err) {
				t.Errorf("exit code %d, want %d\n%s%s", got.code, want.code, got.out, got.err)
			}
		})
	}
	if got := troubleshooter().run("troubleshoot", "well", "-o", "yaml", "--clustermesh-config", mixed); got.code != exitOK || !strings.Contains(got.out, "name: cluster-configuration") {
		t.Errorf("%+v", got)
	}
	if got := completions(troubleshooter(), "troubleshoot", "--clustermesh-config", mixed, "soon", ""); !slices.Equal(got, []string{"refused", "well"}) {
		t.Errorf("offered %q", got)
	}
}

func TestTroubleshootText(t *testing.T) {
	t.Parallel()
	const url = "https://c2.mesh.cilium.io:2379"
	at := func(name string, state troubleshoot.State, detail string, findings ...codes.Finding) troubleshoot.Step {
		return troubleshoot.Step{Name: name, Endpoint: url, State: state, Detail: detail, Findings: findings}
	}
	file := troubleshoot.Step{Name: troubleshoot.StepFile, State: troubleshoot.OK, Detail: "/mesh/c2; 1 endpoint, as remote (certificate)"}
	soon := troubleshoot.Step{
		Name: troubleshoot.StepCertificate, State: troubleshoot.Warning,
		Findings: []codes.Finding{codes.CertificateExpiresSoon.Found("remote, signed by Cilium CA, expires on 2026-11-30, in 9 days", "renew it")},
	}
	resolved := at(troubleshoot.StepResolve, troubleshoot.OK, "192.0.2.10, 192.0.2.11 (by name)")
	good := troubleshoot.Report{Name: "c2", State: troubleshoot.OK, Steps: []troubleshoot.Step{file, resolved}}
	warned := troubleshoot.Report{Name: "c3", State: troubleshoot.Warning, Steps: []troubleshoot.Step{file, soon, resolved}}
	failed := troubleshoot.Report{Name: "own", Local: true, State: troubleshoot.Failed, Steps: []troubleshoot.Step{
		file, soon, resolved,
		at(troubleshoot.StepServerCertificate, troubleshoot.Failed, "for c2.mesh.cilium.io, signed by a\x1b[31mnother CA",
			codes.ServerCertificateInvalid.Found("it expired on 2026-11-01", "renew the server's certificate, or set the clock"),
			codes.ServerAuthorityUnknown.Found("x509: certificate signed by unknown authority", "trusted-ca-file does not hold the authority that signed the server's certificate")),
		at(troubleshoot.StepEtcd, troubleshoot.Skipped, "not tried: server-certificate failed"),
		{Name: troubleshoot.StepHeartbeat, State: troubleshoot.Skipped, Detail: "not tried: there is no session with etcd"},
	}}
	for name, c := range map[string]struct {
		style   printer.Style
		reports []troubleshoot.Report
	}{
		"troubleshoot-well":     {printer.Style{}, []troubleshoot.Report{good}},
		"troubleshoot-warning":  {printer.Style{}, []troubleshoot.Report{good, warned}},
		"troubleshoot-failed":   {printer.Style{}, []troubleshoot.Report{good, warned, failed}},
		"troubleshoot-terminal": {printer.Style{Width: 80}, []troubleshoot.Report{warned, failed}},
		"troubleshoot-colours":  {printer.Style{Color: true, Width: 80}, []troubleshoot.Report{warned, failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			found := newTroubles("/mesh", c.reports)
			if err := answer(&out, c.style, printer.NewFormat(printer.Text), found, found.page); err != nil {
				t.Fatal(err)
			}
			golden(t, name, out.String())
			fits(t, out.String(), c.style, false)
		})
	}
}

// TestTroubleshootIsInterrupted: it says nothing then.
func TestTroubleshootIsInterrupted(t *testing.T) {
	t.Parallel()
	dir := meshDirectory(t, map[string]string{"c2": "endpoints: ['http://127.0.0.1:1']"})
	c := troubleshooter()
	root := c.cli.root()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root.SetContext(ctx)
	if code := execute(root, []string{"troubleshoot", "--clustermesh-config", filepath.Join(dir, ".")}); code == exitOK || strings.Contains(out.String(), "c2") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}
