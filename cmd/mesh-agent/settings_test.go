package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/logging"
)

// settingsFile writes a settings file and returns its path.
func settingsFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// loadSettings is what run does with its command line before it starts.
func loadSettings(t *testing.T, env map[string]string, args ...string) (Config, error) {
	t.Helper()
	s := newSettings()
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.register(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	c, err := s.load(func(name string) string { return env[name] })
	if err == nil {
		err = s.validate(c)
	}
	return c, err
}

func TestSettingsComeFromThreePlaces(t *testing.T) {
	t.Parallel()
	file := settingsFile(t, `
cluster-name: file
cluster-id: 7
clustermesh-sync-timeout: 30s
debug-pprof: true
node-name: "1"
kvstore-opt: {etcd.qps: 100, etcd.keepaliveTimeout: 5s}
disconnect-policy:
  demote: 5m
  withdraw: 0
  east.silence: 1h
`)
	env := map[string]string{
		"MESH_AGENT_CONFIG": file, "MESH_AGENT_CLUSTER_NAME": "env", "MESH_AGENT_CLUSTER_ID": "8", "MESH_AGENT_LOG_LEVEL": "debug",
		"MESH_AGENT_LISTEN": "", // as good as none
	}
	got, err := loadSettings(t, env, "--cluster-name", "flag")
	if err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	want.ClusterName, want.ClusterID, want.NodeName, want.LogLevel, want.DebugPprof = "flag", 8, "1", "debug", true
	want.ClustermeshSyncTimeout = 30 * time.Second
	want.KVStoreOpt = map[string]string{"etcd.qps": "100", "etcd.keepaliveTimeout": "5s"}
	want.DisconnectPolicy = map[string]string{"demote": "5m", "withdraw": "0", "east.silence": "1h"}
	want.RemoteBudget = map[string]string{} // as of a flag with options that nobody gives
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestThePolicyComesFromFlagsAndVariablesToo(t *testing.T) {
	t.Parallel()
	env := map[string]string{"MESH_AGENT_DISCONNECT_POLICY": "demote=5m,east.withdraw=0"}
	got, err := loadSettings(t, env)
	if diff := cmp.Diff(map[string]string{"demote": "5m", "east.withdraw": "0"}, got.DisconnectPolicy); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	got, err = loadSettings(t, env, "--disconnect-policy=demote=1m", "--disconnect-policy", "east.demote=2m,restore=5s")
	if diff := cmp.Diff(map[string]string{"demote": "1m", "east.demote": "2m", "restore": "5s"}, got.DisconnectPolicy); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if shown := got.settings()["disconnect-policy"]; shown != `{"demote":"1m","east.demote":"2m","restore":"5s"}` {
		t.Errorf("shown as %s", shown)
	}
}

// TestOnePlaceSetsAMap: options of two places are never mixed.
func TestOnePlaceSetsAMap(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file string
		env  string
		args []string
		want map[string]string
	}{
		"a map":              {"{etcd.qps: 1, etcd.limit: 2}", "", nil, map[string]string{"etcd.qps": "1", "etcd.limit": "2"}},
		"a text":             {"etcd.qps=1,etcd.limit=2", "", nil, map[string]string{"etcd.qps": "1", "etcd.limit": "2"}},
		"a JSON map":         {`'{"etcd.qps":"1"}'`, "", nil, map[string]string{"etcd.qps": "1"}},
		"the variable wins":  {"{etcd.qps: 1}", "etcd.limit=2", nil, map[string]string{"etcd.limit": "2"}},
		"a JSON variable":    {"{}", `{"etcd.limit":"2"}`, nil, map[string]string{"etcd.limit": "2"}},
		"flags win":          {"{etcd.qps: 1}", "etcd.limit=2", []string{"--kvstore-opt=etcd.qps=3", "--kvstore-opt=etcd.limit=4"}, map[string]string{"etcd.qps": "3", "etcd.limit": "4"}},
		"values with commas": {"{etcd.address: 'http://127.0.0.1:1,http://127.0.0.1:2'}", "", nil, map[string]string{"etcd.address": "http://127.0.0.1:1,http://127.0.0.1:2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSettings()
			flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
			s.register(flags)
			if err := flags.Parse(append(test.args, "--config", settingsFile(t, "kvstore-opt: "+test.file))); err != nil {
				t.Fatal(err)
			}
			got, err := s.load(func(name string) string { return map[string]string{"MESH_AGENT_KVSTORE_OPT": test.env}[name] })
			if diff := cmp.Diff(test.want, got.KVStoreOpt); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// TestMistakesNameTheirPlace: a person knows where to mend it.
func TestMistakesNameTheirPlace(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file string
		env  map[string]string
		args []string
		want []string
	}{
		"an unknown key":                    {"cluster-names: x", nil, nil, []string{"FILE: cluster-names: unknown setting"}},
		"a key in another spelling":         {"clusterName: x", nil, nil, []string{"FILE: clusterName: unknown setting"}},
		"the file in the file":              {"config: x", nil, nil, []string{"FILE: config: unknown setting"}},
		"a number for a text":               {"cluster-name: 5", nil, nil, []string{"FILE: cluster-name: 5 is not text; put it in quotes"}},
		"a text for a number":               {"cluster-id: '5'", nil, nil, []string{`FILE: cluster-id: "5" is not a whole number`}},
		"a broken number":                   {"cluster-id: 1.5", nil, nil, []string{"FILE: cluster-id: 1.5: want a whole number"}},
		"a negative number":                 {"cluster-id: -1", nil, nil, []string{"FILE: cluster-id: -1: want a whole number"}},
		"a duration without its unit":       {"clustermesh-sync-timeout: 5", nil, nil, []string{"FILE: clustermesh-sync-timeout: 5: want a duration with its unit"}},
		"a text for a truth":                {"debug-pprof: 'yes'", nil, nil, []string{`FILE: debug-pprof: "yes" is not true or false`}},
		"no value":                          {"cluster-name:", nil, nil, []string{"FILE: cluster-name: null is not text"}},
		"a list":                            {"listen: [a, b]", nil, nil, []string{`FILE: listen: ["a","b"] is not text`}},
		"a list for a map":                  {"kvstore-opt: [a]", nil, nil, []string{"FILE: kvstore-opt: "}},
		"a map in a map":                    {"kvstore-opt: {a: {b: c}}", nil, nil, []string{"FILE: kvstore-opt: a: its value"}},
		"a text that is no map":             {"kvstore-opt: a", nil, nil, []string{"FILE: kvstore-opt: (left out): option 1 of 1 is not key=value"}},
		"an unknown option":                 {"kvstore-opt: {etcd.nope: 1}", nil, nil, []string{"FILE: kvstore-opt: ", "etcd.nope"}},
		"a policy that is none":             {"disconnect-policy: {demote: soon}", nil, nil, []string{`FILE: disconnect-policy: demote="soon": want a duration`}},
		"a policy of one cluster":           {"", nil, []string{"--disconnect-policy=east.demote=1h"}, []string{`--disconnect-policy: east.withdraw="15m0s": want at least east.demote`}},
		"no mapping":                        {"- a", nil, nil, []string{"FILE: it is not a mapping"}},
		"no YAML":                           {"a: [", nil, nil, []string{"FILE: no valid YAML: "}},
		"a key twice":                       {"listen: a:1\nlisten: b:1", nil, nil, []string{"FILE: no valid YAML: ", `"listen"`}},
		"several at once":                   {"a: 1\nb: 2", nil, nil, []string{"FILE: a: ", "FILE: b: "}},
		"out of range":                      {"cluster-name: x\ncluster-id: 300", nil, nil, []string{"FILE: cluster-name and FILE: cluster-id: invalid cluster id 300"}},
		"a level":                           {"log-level: loud", nil, nil, []string{`FILE: log-level: log level "loud" is unknown`}},
		"hidden by a flag":                  {"cluster-id: x", nil, []string{"--cluster-id=3"}, []string{"FILE: cluster-id: "}},
		"two places":                        {"cluster-name: x", map[string]string{"MESH_AGENT_CLUSTER_ID": "300"}, nil, []string{"FILE: cluster-name and MESH_AGENT_CLUSTER_ID: invalid"}},
		"a variable":                        {"", map[string]string{"MESH_AGENT_CLUSTER_ID": "many"}, nil, []string{`MESH_AGENT_CLUSTER_ID="many": want a whole number`}},
		"a variable's directory":            {"", map[string]string{"MESH_AGENT_CLUSTERMESH_CONFIG": "/dev/null"}, nil, []string{"MESH_AGENT_CLUSTERMESH_CONFIG: /dev/null is not a directory"}},
		"a flag":                            {"cluster-name: x", nil, []string{"--log-format=xml"}, []string{`--log-format: log format "xml" is unknown`}},
		"a state directory that is a file":  {"state-dir: /dev/null", nil, nil, []string{"FILE: state-dir: /dev/null is not a directory: give one in which the cluster IDs can be remembered"}},
		"a state directory that is missing": {"", nil, []string{"--state-dir=/nonexistent/x"}, []string{"--state-dir: /nonexistent/x is missing: make the directory"}},
		"a default route as own network":    {"", nil, []string{"--pod-cidr=10.0.0.0/8,0.0.0.0/0"}, []string{"--pod-cidr: 0.0.0.0/0 is larger than the network of a cluster can be"}},
		"most of IPv6 as own network":       {"service-cidr: fc00::/7", nil, nil, []string{"FILE: service-cidr: fc00::/7 is larger"}},
		"a list of a nanosecond":            {"", nil, []string{"--remote-budget=list=1ns"}, []string{`--remote-budget: list="1ns": want 1s to 24h0m0s, or 0 for no bound`}},
		"a policy file that is missing":     {"", nil, []string{"--claim-policy-file=/nonexistent/x"}, []string{"--claim-policy-file: /nonexistent/x is missing: there is no such file"}},
		"an empty policy file":              {"", nil, []string{"--claim-policy-file=" + settingsFile(t, "")}, []string{"--claim-policy-file: ", "yaml: it says nothing"}},
		"a device as policy file":           {"", nil, []string{"--claim-policy-file=/dev/null"}, []string{"--claim-policy-file: /dev/null is no regular file"}},
		"a flag and the rest":               {"log-level: loud", nil, []string{"--listen=x"}, []string{"--listen: ", "FILE: log-level: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := settingsFile(t, test.file)
			_, err := loadSettings(t, test.env, append(test.args, "--config", file)...)
			if err == nil {
				t.Fatal("accepted")
			}
			if code := exitCode(err); code != exitUsage || strings.Contains(err.Error(), "\n") {
				t.Errorf("exit code %d of %q", code, err)
			}
			for _, want := range test.want {
				if want = strings.ReplaceAll(want, "FILE", file); !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// TestMistakesTellNoSecrets: a value that cannot be taken may be a password with
// a slip beside it.
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
		"a flag of another kind":      {nil, []string{"--clustermesh-sync-timeout", url}, `--clustermesh-sync-timeout="https://host:2379"`},
		"options of the file":         {nil, []string{"--config", settingsFile(t, "kvstore-opt: "+secret)}, "kvstore-opt: (left out): option 1 of 1"},
		"a list of the file":          {nil, []string{"--config", settingsFile(t, "kvstore-opt: [etcd.password="+secret+"]")}, "kvstore-opt: (left out) is not a map"},
		"a value of the file":         {nil, []string{"--config", settingsFile(t, "cluster-id: '"+url+"'")}, `cluster-id: "https://host:2379" is not a whole number`},
		"a duration that is none":     {nil, []string{"--config", settingsFile(t, "clustermesh-sync-timeout: "+url)}, `"https://host:2379": want a duration`},
		"a map in a map of the file":  {nil, []string{"--config", settingsFile(t, "kvstore-opt: {a: {b: "+secret+"}}")}, "kvstore-opt: a: its value"},
		"a text that is for a number": {nil, []string{"--cluster-id", url}, `--cluster-id="https://host:2379"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := program(t, append([]string{"run"}, test.args...)...)
			for name, value := range test.env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			text, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(string(text), test.want) || strings.Contains(string(text), secret) {
				t.Errorf("exit %d, want %q without the secret: %s", code, test.want, text)
			}
		})
	}
}

// TestEverySettingIsInTheConfig: a flag of the agent that newSettings does not
// know could come from no file.
func TestEverySettingIsInTheConfig(t *testing.T) {
	t.Parallel()
	var known, agents []string
	newSettings().flags.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	flags := pflag.NewFlagSet("hive", pflag.ContinueOnError)
	newHive(modeRun, new(logging.Level)).RegisterFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) { agents = append(agents, f.Name) })
	if diff := cmp.Diff(agents, known); diff != "" || len(known) < 10 {
		t.Error(diff)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "nope.yaml"): "no such file",
		dir:                             "is a directory",
	} {
		out, errs, code := call(t, "run", "--config", path)
		if code != exitUsage || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "--config: ") || !strings.Contains(errs, path) || !strings.Contains(errs, want) {
			t.Errorf("exit %d: %s", code, errs)
		}
		cmd := program(t, "run")
		cmd.Env = append(cmd.Env, "MESH_AGENT_CONFIG="+path)
		text, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != exitUsage || !strings.HasPrefix(string(text), "Error: MESH_AGENT_CONFIG: ") {
			t.Errorf("exit %d: %s", cmd.ProcessState.ExitCode(), text)
		}
	}
}

func TestPrecedenceIsDocumented(t *testing.T) {
	t.Parallel()
	out, _, code := call(t, "run", "--help")
	if code != exitOK || !strings.Contains(out, "a flag wins over its variable, a variable over the file") || !strings.Contains(out, "--config") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestTheWholeProgramWithAFile runs the agent with settings from everywhere and
// a JSON log, and changes its level.
func TestTheWholeProgramWithAFile(t *testing.T) {
	t.Parallel()
	file := settingsFile(t, "cluster-name: from-file\ncluster-id: 9\nlog-format: json\ndebug-pprof: true\n")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "broken"), []byte("endpoints: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startProgram(t, dir, []string{
		"MESH_AGENT_CLUSTER_ID=10", "MESH_AGENT_CLUSTR_NAME=typo", "MESH_AGENT_PORT_9979_TCP=tcp://10.0.0.1:9979", "MESH_AGENT_OUTPUT=json",
	}, "--config", file)
	out, _, _ := a.call("status", "-o", "json")
	var st struct {
		Agent struct {
			Cluster   string
			ClusterID uint32
		}
	}
	if err := json.Unmarshal([]byte(out), &st); err != nil || st.Agent.Cluster != "from-file" || st.Agent.ClusterID != 10 {
		t.Errorf("%v: %s", err, out)
	}
	for _, step := range [][2]string{{"", "info\n"}, {"debug", "debug\n"}, {"", "debug\n"}} {
		args := append([]string{"log-level"}, strings.Fields(step[0])...)
		if out, errs, code := a.call(args...); code != exitOK || out != step[1] {
			t.Errorf("%v: exit %d, %q %s", args, code, out, errs)
		}
	}
	if _, errs, code := a.call("log-level", "loud"); code != exitUsage || !strings.Contains(errs, "use one of") {
		t.Errorf("exit %d: %s", code, errs)
	}
	over := unixClient(a.socket)
	resp, err := over.Get("http://agent/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("profiles: %d", resp.StatusCode)
	}
	if code := a.stop(); code != exitOK {
		t.Errorf("exit %d", code)
	}
	seen := map[string]bool{}
	var warned []any
	for line := range strings.Lines(a.log.String()) {
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
	if diff := cmp.Diff([]any{"MESH_AGENT_CLUSTR_NAME", asAgent}, warned); diff != "" {
		t.Error(diff)
	}
}

// TestAnAgentThatFailsInJSON: the last words of a log are a line of it, too.
func TestAnAgentThatFailsInJSON(t *testing.T) {
	t.Parallel()
	_, errs, code := call(t, "run", "--log-format=json", "--listen", "127.0.0.1:0", "--clustermesh-config", t.TempDir(), "--socket", settingsFile(t, "no socket"))
	if code != exitUsage || !strings.Contains(errs, "is not a socket") {
		t.Errorf("exit %d: %s", code, errs)
	}
	for line := range strings.Lines(errs) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// TestVariablesOfOthers: only what looks like a mistake is warned of.
func TestVariablesOfOthers(t *testing.T) {
	t.Parallel()
	root := newRootCommand(newRunCommand())
	got := strangers([]string{
		"HOME=/", "MESH_AGENT_CLUSTER_NAME=a", "MESH_AGENT_CONFIG=x", "MESH_AGENT_SERVER=y", "MESH_AGENT_WAIT=true",
		"MESH_AGENT_PORT=tcp://x", "MESH_AGENT_SERVICE_HOST=x", "MESH_AGENT_X=1", "MESH_AGENT_=2",
	}, root)
	if diff := cmp.Diff([]string{"MESH_AGENT_", "MESH_AGENT_X"}, got); diff != "" {
		t.Error(diff)
	}
}
