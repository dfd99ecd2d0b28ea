package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
)

// brokenClusters are client files with one fault each; soon and well pass all checks.
func brokenClusters(t *testing.T) (files map[string]string) {
	t.Helper()
	certs, others := etcdtest.NewCerts(t), etcdtest.NewCerts(t)
	cert, key := certs.Client(t, "remote")
	foreign, foreignKey := others.Client(t, "remote")
	now := clitest.Began
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
	t.Cleanup(func() { _ = silent.Close() }) // the kernel accepts connections, the process does not
	poor := clitest.PlainCluster(t, "no-rights", "")
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
		"no-heartbeat":    file(clitest.PlainCluster(t, "no-heartbeat", wire.HeartbeatKey).Endpoint()),
		"no-config":       file(clitest.PlainCluster(t, "no-config", wire.ClusterConfigKey("no-config")).Endpoint()),
		"soon":            tls(secure.Endpoint(), certs.CAFile, soon, soonKey),
		"well":            file(clitest.PlainCluster(t, "well", "").Endpoint()),
	}
}

func TestTroubleshootFindsWhatIsBroken(t *testing.T) {
	t.Parallel()
	dir := clitest.MeshDirectory(t, brokenClusters(t))
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
		"no YAML":                  {remote("no-yaml"), "client-file", "yaml: line 1", "correct the named part", codes.ClientFileNoYAML},
		"no such name":             {remote("no-name"), "resolve", "lookup c2.mesh.invalid: no such host", "the name does not resolve; check DNS", codes.HostUnknown},
		"refused":                  {remote("refused"), "tcp", "connection refused", "nothing listens there", codes.ConnectionRefused},
		"silent":                   {remote("silent"), "tls", "no answer: nothing within", "accepts connections and does not answer", codes.ServerSilent},
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
			// One by one: the heartbeats were just written, and would grow old while a check waits in a queue.
			run := clitest.Troubleshooter()
			if name == "silent" {
				run.Cli.Troubleshooting.Timings.TLS = 300 * time.Millisecond
			}
			got := run.Run(append([]string{"troubleshoot", "-o", "json"}, c.args...)...)
			var found struct {
				Failed   int
				Clusters []struct {
					Name, ConfigFile, State string
					Steps                   []struct{ Name, Endpoint, State, Detail, Code, Cause, Remedy string }
				}
			}
			if err := json.Unmarshal([]byte(got.Out), &found); err != nil || got.Code != exit.Unwell || got.Err != "" || found.Failed != 1 || len(found.Clusters) != 1 {
				t.Fatalf("%v %+v", err, got)
			}
			r := found.Clusters[0]
			i := slices.IndexFunc(r.Steps, func(s struct{ Name, Endpoint, State, Detail, Code, Cause, Remedy string }) bool {
				return s.State == "failed"
			})
			if i < 0 || r.State != "failed" || r.ConfigFile == "" || r.Steps[i].Name != c.step || r.Steps[i].Code != string(c.code) || !strings.Contains(r.Steps[i].Cause, c.cause) || !strings.Contains(r.Steps[i].Remedy, c.remedy) {
				t.Errorf("%s", got.Out)
			}
			if strings.Contains(got.Out, "geheim") {
				t.Errorf("a password: %s", got.Out)
			}
		})
	}
}

func TestTroubleshoot(t *testing.T) {
	t.Parallel()
	all := brokenClusters(t)
	well := clitest.MeshDirectory(t, map[string]string{"well": all["well"], "own": "endpoints: [broken"})
	mixed := clitest.MeshDirectory(t, map[string]string{"well": all["well"], "soon": all["soon"], "refused": all["refused"]})
	own := clitest.PlainCluster(t, "own", "")
	ownFile := own.ConfigFile(t)
	for args, want := range map[string]clitest.Result{
		"--cluster-name own --clustermesh-config " + well:                         {Code: 0, Out: "1 configuration checked: all is well", Err: ""},
		"well well --clustermesh-config " + mixed:                                 {Code: 0, Out: "1 configuration checked: all is well", Err: ""},
		"soon well --clustermesh-config " + mixed:                                 {Code: 0, Out: "nothing fails, with warnings: soon (client-certificate)", Err: ""},
		"--clustermesh-config " + mixed:                                           {Code: 1, Out: "3 configurations checked: 1 fails: refused (tcp)", Err: ""},
		"own --cluster-name own --clustermesh-config " + well:                     {Code: 1, Out: "own (client-file)", Err: ""},
		"well nope --clustermesh-config " + mixed:                                 {Code: 1, Out: "", Err: `no client file of the cluster "nope" in ` + mixed + "; there are: refused, soon, well"},
		"well --cluster-name e --cluster-id 2 --clustermesh-config " + mixed:      {Code: 1, Out: `cluster ID 2 is already used by our own cluster "e"`, Err: ""},
		"--clustermesh-config " + t.TempDir():                                     {Code: 0, Out: "No client file in", Err: ""},
		"--clustermesh-config /nonexistent/mesh":                                  {Code: 2, Out: "", Err: "--clustermesh-config says where it is"},
		"--cluster-id 3":                                                          {Code: 2, Out: "", Err: "--cluster-id: cannot use default cluster name"},
		"-o table":                                                                {Code: 2, Out: "", Err: "text, json, yaml"},
		"--include-local --clustermesh-config " + mixed:                           {Code: 2, Out: "", Err: "--include-local: which kvstore?"},
		"--include-local --kvstore-opt etcd.nope=1 --clustermesh-config " + mixed: {Code: 2, Out: "", Err: `--kvstore-opt: kvstore option "etcd.nope": unknown`},
		"--include-local --cluster-name own --kvstore-opt etcd.config=" + ownFile + " --clustermesh-config " + well:  {Code: 0, Out: "local kvstore of own", Err: ""},
		"--include-local --kvstore-opt etcd.address=" + own.Endpoint() + " --clustermesh-config /nonexistent/mesh":   {Code: 0, Out: "local kvstore of default", Err: ""},
		"well --include-local --kvstore-opt etcd.address=" + own.Endpoint() + " --clustermesh-config /nonexistent/m": {Code: 2, Out: "", Err: "--clustermesh-config says where it is"},
	} {
		t.Run(args, func(t *testing.T) {
			// One by one: the heartbeats were just written, and would grow old while a check waits in a queue.
			got := clitest.Troubleshooter().Run(append([]string{"troubleshoot"}, strings.Fields(args)...)...)
			if got.Code != want.Code || !clitest.Has(got.Out, want.Out) || !clitest.Has(got.Err, want.Err) {
				t.Errorf("exit code %d, want %d\n%s%s", got.Code, want.Code, got.Out, got.Err)
			}
		})
	}
	if got := clitest.Troubleshooter().Run("troubleshoot", "well", "-o", "yaml", "--clustermesh-config", mixed); got.Code != exit.OK || !strings.Contains(got.Out, "name: cluster-configuration") {
		t.Errorf("%+v", got)
	}
	if got := clitest.Complete(clitest.Troubleshooter(), "troubleshoot", "--clustermesh-config", mixed, "soon", ""); !slices.Equal(got, []string{"refused", "well"}) {
		t.Errorf("offered %q", got)
	}
}

// TestTroubleshootIsInterrupted: then it prints nothing.
func TestTroubleshootIsInterrupted(t *testing.T) {
	t.Parallel()
	dir := clitest.MeshDirectory(t, map[string]string{"c2": "endpoints: ['http://127.0.0.1:1']"})
	c := clitest.Troubleshooter()
	root := cli.Root(c.Cli)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	root.SetContext(ctx)
	if code := command.Execute(root, []string{"troubleshoot", "--clustermesh-config", filepath.Join(dir, ".")}); code == exit.OK || strings.Contains(out.String(), "c2") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
}

// TestChecksTakeTheSettingsOfTheAgent: without flags the checks use the directory of the agent on this machine, and
// report this. Flags have priority. An agent that is asked over TCP provides no settings, and the directory of one in a
// container does not exist here.
func TestChecksTakeTheSettingsOfTheAgent(t *testing.T) {
	t.Parallel()
	own, far := clitest.PlainCluster(t, "own", ""), clitest.PlainCluster(t, "far", "")
	dir := clitest.MeshDirectory(t, map[string]string{"far": "endpoints: ['" + far.Endpoint() + "']\n"})
	empty := t.TempDir()
	agent := clitest.ServeWith(t, fakemesh.Facts{}, api.Settings{
		"clustermesh-config": dir, "cluster-name": "own", "cluster-id": "7", "kvstore-opt": `{"etcd.address":"` + own.Endpoint() + `"}`,
	})
	contained := clitest.ServeWith(t, fakemesh.Facts{}, api.Settings{"clustermesh-config": filepath.Join(empty, "in-a-container"), "cluster-name": "own", "cluster-id": "7"})
	hostile := clitest.ServeWith(t, fakemesh.Facts{}, api.Settings{"clustermesh-config": dir + "/../" + filepath.Base(dir), "cluster-name": "own\x1b[2J", "cluster-id": "no number"})
	from := "From the agent at " + agent.Socket + ": --clustermesh-config " + dir + ", --cluster-name own, --cluster-id 7"
	for args, want := range map[string]clitest.Result{
		"troubleshoot --socket " + agent.Socket:                                                      {Out: "1 configuration checked: all is well", Err: from},
		"troubleshoot far --socket " + agent.Socket:                                                  {Out: "1 configuration checked: all is well", Err: from},
		"troubleshoot --include-local --socket " + agent.Socket:                                      {Out: "2 configurations checked: all is well", Err: from},
		"troubleshoot --clustermesh-config " + empty + " --socket " + agent.Socket:                   {Out: "No client file in " + empty},
		"troubleshoot --cluster-name far --socket " + agent.Socket:                                   {Out: "No client file in " + dir, Err: "--clustermesh-config " + dir + ", --cluster-id 7"},
		"config check --socket " + agent.Socket:                                                      {Out: dir + ": 1 cluster would be connected", Err: from},
		"config check " + empty + " --socket " + agent.Socket:                                        {Out: empty + ": 0 clusters would be connected"},
		"troubleshoot --server " + agent.Server:                                                      {Code: exit.Usage, Err: "--clustermesh-config says where it is"},
		"troubleshoot --socket " + filepath.Join(empty, "none"):                                      {Code: exit.Usage, Err: "--clustermesh-config says where it is"},
		"troubleshoot --socket " + contained.Socket:                                                  {Code: exit.Usage, Err: "is not on this machine: " + filepath.Join(empty, "in-a-container")},
		"troubleshoot far --cluster-name own --cluster-id 7 --socket " + hostile.Socket + " -o json": {Out: `"state": "ok"`, Err: "From the agent"},
	} {
		got := clitest.Troubleshooter().Run(strings.Fields(args)...)
		if got.Code != want.Code || !strings.Contains(got.Out, want.Out) || !strings.Contains(got.Err, want.Err) || want.Err == "" && got.Err != "" || strings.Contains(got.Err, "\x1b") {
			t.Errorf("%s: %+v, want %+v", args, got, want)
		}
	}
}
