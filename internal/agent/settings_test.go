package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

// TestMistakesTellNoSecrets: a value that is refused may be a password with a typing error, so it is not shown.
func TestMistakesTellNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	const url = "https://user:" + secret + "@host:2379"
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"a variable of options":       {map[string]string{"MESH_AGENT_KVSTORE_OPT": "etcd.qps=5,etcd.address " + url}, nil, `MESH_AGENT_KVSTORE_OPT="(left out)": option 2 of 2`},
		"a variable with a password":  {map[string]string{"MESH_AGENT_KVSTORE_OPT": "=" + secret}, nil, "option 1 of 1"},
		"a variable of broken JSON":   {map[string]string{"MESH_AGENT_KVSTORE_OPT": `{"etcd.password":"` + secret + `"`}, nil, "not a JSON map"},
		"a variable of another kind":  {map[string]string{"MESH_AGENT_CLUSTERMESH_SYNC_TIMEOUT": url}, nil, `MESH_AGENT_CLUSTERMESH_SYNC_TIMEOUT="https://host:2379"`},
		"a flag of options":           {nil, []string{"--kvstore-opt", secret}, `--kvstore-opt="(left out)": option 1 of 1`},
		"an address without a port":   {nil, []string{"--kvstore-opt", "etcd.address=https://user:" + secret + "@host"}, `etcd.address="(left out)": it must be a URL with host and port`},
		"an address without a scheme": {nil, []string{"--kvstore-opt", "etcd.address=user:" + secret + "@host:2379"}, `etcd.address="(left out)": it must be a URL`},
		"an address with a space":     {nil, []string{"--kvstore-opt", "etcd.address=https://user:" + secret + "@ho st:2379"}, `etcd.address="(left out)": invalid character`},
		"a flag of another kind":      {nil, []string{"--clustermesh-sync-timeout", url}, `--clustermesh-sync-timeout="https://host:2379"`},
		"options of the file":         {nil, []string{"--config", samples.SettingsFile(t, "kvstore-opt: "+secret)}, "kvstore-opt: (left out): option 1 of 1"},
		"a list of the file":          {nil, []string{"--config", samples.SettingsFile(t, "kvstore-opt: [etcd.password="+secret+"]")}, "kvstore-opt: (left out) is not a map"},
		"a value of the file":         {nil, []string{"--config", samples.SettingsFile(t, "cluster-id: '"+url+"'")}, `cluster-id: "https://host:2379" is not a whole number`},
		"a duration that is none":     {nil, []string{"--config", samples.SettingsFile(t, "clustermesh-sync-timeout: "+url)}, `"https://host:2379": want a duration`},
		"a map in a map of the file":  {nil, []string{"--config", samples.SettingsFile(t, "kvstore-opt: {a: {b: "+secret+"}}")}, "kvstore-opt: a: its value"},
		"a text that is for a number": {nil, []string{"--cluster-id", url}, `--cluster-id="https://host:2379"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := agenttest.Program(t, append([]string{"run"}, test.args...)...)
			for name, value := range test.env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			text, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != exit.Usage || !strings.Contains(string(text), test.want) || strings.Contains(string(text), secret) {
				t.Errorf("exit %d, want %q without the secret: %s", code, test.want, text)
			}
		})
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "nope.yaml"): "no such file",
		dir:                             "is a directory",
	} {
		out, errs, code := agenttest.Call(t, "run", "--config", path)
		if code != exit.Usage || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "--config: ") || !strings.Contains(errs, path) || !strings.Contains(errs, want) {
			t.Errorf("exit %d: %s", code, errs)
		}
		cmd := agenttest.Program(t, "run")
		cmd.Env = append(cmd.Env, "MESH_AGENT_CONFIG="+path)
		text, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != exit.Usage || !strings.HasPrefix(string(text), "Error: MESH_AGENT_CONFIG: ") {
			t.Errorf("exit %d: %s", cmd.ProcessState.ExitCode(), text)
		}
	}
}

func TestPrecedenceIsDocumented(t *testing.T) {
	t.Parallel()
	out, _, code := agenttest.Call(t, "run", "--help")
	if code != exit.OK || !strings.Contains(out, "A flag has priority over its variable, and a variable over the file") || !strings.Contains(out, "--config") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestFlagsOfAMode: the help of each mode lists the flags that it uses, by subject. The mode warns of other flags only
// if they are on the command line.
func TestFlagsOfAMode(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]struct{ subject, shown, hidden string }{
		"run": {"DNS server", "dns", "drain-delay"}, "operate": {"Publishing", "mcs-api", "dns"}, "mirror": {"Mirror", "drain-delay", "mcs-api"},
	} {
		out, _, code := agenttest.Call(t, mode, "--help")
		_, of, found := strings.Cut(out, "\n  "+want.subject+":\n")
		of, _, _ = strings.Cut(of, "\n\n")
		if code != exit.OK || !found || !strings.Contains(of, "--"+want.shown+" ") || strings.Contains(out, "--"+want.hidden+" ") || !strings.Contains(out, "--config ") {
			t.Errorf("%s: exit %d: %s", mode, code, out)
		}
	}
	const unused = "This mode does not use the setting"
	given := agenttest.StartAgent(t, t.TempDir(), "--drain-delay", "1m")
	elsewhere := agenttest.StartMode(t, config.ModeRun, []string{"MESH_AGENT_DRAIN_DELAY=1m"}, "--clustermesh-config", t.TempDir())
	if lines := given.Log.Lines(unused, "level=warning", "setting=drain-delay"); len(lines) != 1 || elsewhere.Log.Count(unused) != 0 {
		t.Errorf("it warned %q, and %s", lines, elsewhere.Log)
	}
}

// TestTheWholeProgramWithAFile runs the agent with settings from all places and a JSON log, and changes the log level.
func TestTheWholeProgramWithAFile(t *testing.T) {
	t.Parallel()
	file := samples.SettingsFile(t, "cluster-name: from-file\ncluster-id: 9\nlog-format: json\ndebug-pprof: true\n")
	dir := t.TempDir()
	agenttest.Must(t, os.WriteFile(filepath.Join(dir, "broken"), []byte("endpoints: [\n"), 0o600))
	a := agenttest.StartMode(t, config.ModeRun, []string{
		"MESH_AGENT_CLUSTER_ID=10", "MESH_AGENT_CLUSTR_NAME=typo", "MESH_AGENT_PORT_9979_TCP=tcp://10.0.0.1:9979", "MESH_AGENT_OUTPUT=json",
	}, "--clustermesh-config", dir, "--config", file)
	if st := a.Status(); st.Agent.Cluster != "from-file" || st.Agent.ClusterID != 10 {
		t.Errorf("%+v", st.Agent)
	}
	for _, step := range [][2]string{{"", "info\n"}, {"debug", "debug\n"}, {"", "debug\n"}} {
		args := append([]string{"log-level"}, strings.Fields(step[0])...)
		if out, errs, code := a.Call(args...); code != exit.OK || out != step[1] {
			t.Errorf("%v: exit %d, %q %s", args, code, out, errs)
		}
	}
	if _, errs, code := a.Call("log-level", "loud"); code != exit.Usage || !strings.Contains(errs, "use one of") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if got := get(t, a, "/debug/pprof/goroutine?debug=1"); !strings.HasPrefix(got, "200 ") {
		t.Errorf("profiles: %.300s", got)
	}
	if code := a.Stop(); code != exit.OK {
		t.Errorf("exit %d", code)
	}
	seen := map[string]bool{}
	var warned []any
	for line := range strings.Lines(a.Log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil || m["msg"] == "" || m["time"] == nil {
			t.Errorf("%v: %s", err, line)
		}
		seen[m["level"].(string)] = true
		if m["variable"] != nil {
			warned = append(warned, m["variable"])
		}
	}
	if !seen["info"] || !seen["debug"] {
		t.Errorf("levels: %v", seen)
	}
	if diff := cmp.Diff([]any{"MESH_AGENT_CLUSTR_NAME", agenttest.AsAgent}, warned); diff != "" {
		t.Error(diff)
	}
}

// TestAnAgentThatFailsInJSON: the error that ends the agent is also a line of JSON.
func TestAnAgentThatFailsInJSON(t *testing.T) {
	t.Parallel()
	_, errs, code := agenttest.Call(t, "run", "--log-format=json", "--listen", "127.0.0.1:0", "--clustermesh-config", t.TempDir(), "--socket", samples.SettingsFile(t, "no socket"))
	if code != exit.Usage || !strings.Contains(errs, "is not a socket") {
		t.Errorf("exit %d: %s", code, errs)
	}
	for line := range strings.Lines(errs) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}
