package cli_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/internal/cli/bugreport"
	"github.com/mesh-agent/mesh-agent/internal/cli/resource"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/clitest"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
)

// plantedMesh is a mesh directory with secrets in every place that may have one.
func plantedMesh(t *testing.T) (dir string, secrets []string) {
	t.Helper()
	dir = t.TempDir()
	certs := filepath.Join(dir, "..", filepath.Base(dir)+"-certs")
	agenttest.Must(t, os.Mkdir(certs, 0o700))
	t.Cleanup(func() { _ = os.RemoveAll(certs) })
	ca, err := pki.NewCA("planted authority")
	agenttest.Must(t, err)
	pair, err := ca.Client("planted-client")
	agenttest.Must(t, err)
	certFile, keyFile, err := pair.Write(certs, "client")
	agenttest.Must(t, err)
	caFile, err := ca.Write(certs, "ca")
	agenttest.Must(t, err)
	both := filepath.Join(certs, "both.pem")
	write := func(path, content string) {
		agenttest.Must(t, os.WriteFile(path, []byte(content), 0o600))
	}
	write(both, string(pair.Cert)+string(pair.Key))
	key := string(pair.Key)
	const password, token, user = "hunter2-password", "hunter2-token", "hunter2-in-the-url"
	write(filepath.Join(dir, "c2"), fmt.Sprintf("endpoints:\n- http://admin:%s@127.0.0.1:1\ntrusted-ca-file: %s\ncert-file: %s\nkey-file: %s\nusername: reader\npassword: %s\n",
		user, caFile, certFile, keyFile, password))
	write(filepath.Join(dir, "c3"), fmt.Sprintf("endpoints: https://admin:%s@127.0.0.1:1\ntoken: %s\n", user, token))
	write(filepath.Join(dir, "c4"), "endpoints:\n- https://127.0.0.1:1\ncert-file: "+both+"\nkey-file: |\n  "+strings.ReplaceAll(key, "\n", "\n  ")+"\n")
	write(filepath.Join(dir, "c5"), "endpoints: [\npassword: "+password+"\n")
	write(filepath.Join(dir, "c6"), "endpoints:\n- http://127.0.0.1:1\npasswort: "+password+"\n")
	write(filepath.Join(dir, "tls"), key)
	write(filepath.Join(dir, "c2.key"), key)
	secrets = []string{password, token, user}
	for line := range strings.Lines(key) {
		if !strings.HasPrefix(line, "-----") && len(line) > 20 {
			secrets = append(secrets, strings.TrimSpace(line))
		}
	}
	return dir, secrets
}

// wantNoSecrets checks that no text has any of the secrets, plain or encoded.
func wantNoSecrets(t *testing.T, texts map[string]string, secrets []string) {
	t.Helper()
	for name, text := range texts {
		for _, secret := range secrets {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), fmt.Sprintf("%x", secret)} {
				if strings.Contains(text, form) || strings.Contains(name, form) {
					t.Errorf("%s shows %s", name, secret)
				}
			}
		}
		if strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("%s shows a private key", name)
		}
	}
}

// TestBugreportKnowsEveryFlag: it knows the flags of subcommands too.
func TestBugreportKnowsEveryFlag(t *testing.T) {
	t.Parallel()
	names := config.FlagNames(cli.New(""))
	for _, name := range []string{"server", "wait", "keys-only", "from-now", "strict", "clustermesh-config"} {
		if !names[name] {
			t.Errorf("--%s is not known", name)
		}
	}
	if names["token"] {
		t.Error("--token is no flag of ours")
	}
}

func TestBugreportHasNoSecrets(t *testing.T) {
	t.Parallel()
	dir, secrets := plantedMesh(t)
	a := agenttest.StartAgent(t, dir, "--kvstore-opt", "etcd.qps=77")
	a.Until("all clusters to be looked at", func() bool {
		clusters := agenttest.List[api.Cluster](a, "clusters")
		return len(clusters) == 5 && !slices.ContainsFunc(clusters, func(c api.Cluster) bool { return c.LastError == "" })
	})
	const variable = "hunter2-in-a-variable"
	secrets = append(secrets, variable)
	cmd := agenttest.Program(t, "bugreport", "-f", "-", "--socket", a.Socket)
	cmd.Env = append(cmd.Env, "MESH_AGENT_TOKEN="+variable, "ETCD_PASSWORD="+variable, "MESH_AGENT_CLUSTER_NAME=shown",
		"MESH_AGENT_SERVER=http://admin:"+variable+"@127.0.0.1:1", `MESH_AGENT_KVSTORE_OPT={"etcd.qps":"5","etcd.password":"`+variable+`"}`)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	files := clitest.Unpack(t, out.Bytes())
	wantNoSecrets(t, files, secrets)
	for name, part := range map[string]string{
		"manifest.txt":            "goroutines.txt",
		"errors.txt":              "mesh/c5: ",
		"version.json":            `"platform"`,
		"environment.txt":         "MESH_AGENT_CLUSTER_NAME=shown\n",
		"status.txt":              "clusters ready",
		"status.json":             `"name": "c6"`,
		"config.json":             `"kvstore-opt": "{\"etcd.qps\":\"77\"}"`,
		"metrics.txt":             "mesh_agent_",
		"goroutines.txt":          "goroutine ",
		"openapi.json":            `"openapi":"3.1.0"`,
		"lists/clusters-001.json": `"name": "c2"`,
		"lists/nodes-001.json":    `"items": []`,
		"lists/health-001.json":   `remote-cluster.c2`,
		"mesh/c2.yaml":            "password: (left out)",
		"mesh/c4.yaml":            "key-file: (left out)",
		"mesh/files.txt":          "c2.key: -rw-------",
		"mesh/certificates.txt":   "CN=planted-client",
	} {
		if !strings.Contains(files[name], part) {
			t.Errorf("%s lacks %q:\n%.2000s", name, part, files[name])
		}
	}
	if text := files["environment.txt"]; !strings.Contains(text, "MESH_AGENT_TOKEN=(left out)\n") || strings.Contains(text, "ETCD_PASSWORD") {
		t.Error(text)
	}
	// The answers of the agent itself, and its log.
	answers := map[string]string{"the log": a.Log.String()}
	for _, args := range []string{"status -o json", "status", "status c2", "get clusters -o yaml", "get health", "describe cluster c3"} {
		stdout, stderr, _ := a.Call(strings.Fields(args)...)
		answers[args] = stdout + stderr
	}
	wantNoSecrets(t, answers, secrets)
}

func TestBugreportIsAFile(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2))
	path := filepath.Join(t.TempDir(), "report.tar.gz")
	got := a.Ask("bugreport", "-f", path)
	if got.Code != 0 || got.Out != path+"\n" {
		t.Fatalf("%+v", got)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	content, err := os.ReadFile(path)
	agenttest.Must(t, err)
	files := clitest.Unpack(t, content)
	var names []string
	for name := range files {
		names = append(names, name)
		if name != bugreport.ManifestName && !strings.Contains(files[bugreport.ManifestName], name+" ") {
			t.Errorf("the manifest lacks %s", name)
		}
	}
	for _, resource := range resource.Names() {
		if !slices.Contains(names, "lists/"+resource+"-001.json") {
			t.Errorf("no %s in %v", resource, names)
		}
	}
	if !strings.Contains(files["lists/conflicts-001.json"], "10.2.1.10/32") || !strings.Contains(files["lists/events-001.json"], "MESH-3101") {
		t.Error(files["lists/conflicts-001.json"], files["lists/events-001.json"])
	}
	// An existing file is not overwritten.
	if got := a.Ask("bugreport", "-f", path); got.Code != 1 || got.Out != "" || !strings.Contains(got.Err, "-f names another place") {
		t.Errorf("%+v", got)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
		t.Errorf("overwritten: %v", err)
	}
}

func TestBugreportCutsLists(t *testing.T) {
	t.Parallel()
	a := clitest.NewAgent(t, clitest.Well("c2", 2), clitest.Well("c3", 3), clitest.Well("c4", 4))
	got := a.Ask("bugreport", "-f", "-", "--max-items", "2")
	files := clitest.Unpack(t, []byte(got.Out))
	var page api.List[api.Cluster]
	if err := json.Unmarshal([]byte(files["lists/clusters-001.json"]), &page); err != nil || len(page.Items) != 2 {
		t.Errorf("%v %v", page, err)
	}
	if !strings.Contains(files[bugreport.ManifestName], "2 items, cut: there are more (--max-items)") {
		t.Error(files[bugreport.ManifestName])
	}
}

// TestBugreportWithoutAnAgent: everything else is collected, and the exit code shows that the agent is missing.
func TestBugreportWithoutAnAgent(t *testing.T) {
	t.Parallel()
	got := clitest.With(map[string]string{"MESH_AGENT_OUTPUT": "name"}, "/nonexistent", "127.0.0.1:1").Run("bugreport", "-f", "-")
	files := clitest.Unpack(t, []byte(got.Out))
	if got.Code != 2 || !strings.Contains(got.Err, "could not be collected") || files["environment.txt"] != "MESH_AGENT_OUTPUT=name\n" ||
		!strings.Contains(files["errors.txt"], "status: the agent cannot be reached") || files["version.json"] == "" {
		t.Errorf("%d %s %v", got.Code, got.Err, files)
	}
	for _, args := range []string{"bugreport --max-items 0", "bugreport --timeout 0s", "bugreport x"} {
		if got := clitest.With(nil, "/nonexistent", "127.0.0.1:1").Run(strings.Fields(args)...); got.Code != 2 || got.Out != "" {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
