package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

// loadSettings does what run does with its command line before it starts.
func loadSettings(t *testing.T, env map[string]string, args ...string) (Config, error) {
	t.Helper()
	s := NewSettings()
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.Register(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	c, err := s.Load(func(name string) string { return env[name] })
	if err == nil {
		err = s.Check()
	}
	return c, err
}

func TestSettingsComeFromThreePlaces(t *testing.T) {
	t.Parallel()
	file := samples.SettingsFile(t, `
cluster-name: file
cluster-id: 7
clustermesh-sync-timeout: 30s
debug-pprof: true
node-name: "1"
identity-gc-rate-limit: 100
kvstore-opt: {etcd.qps: 100, etcd.keepaliveTimeout: 5s}
disconnect-policy:
  demote: 5m
  withdraw: 0
  east.silence: 1h
`)
	env := map[string]string{
		"MESH_AGENT_CONFIG": file, "MESH_AGENT_CLUSTER_NAME": "env", "MESH_AGENT_CLUSTER_ID": "8", "MESH_AGENT_LOG_LEVEL": "debug",
		"MESH_AGENT_LISTEN": "", // the same as not set
	}
	got, err := loadSettings(t, env, "--cluster-name", "flag")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.ClusterName, want.ClusterID, want.NodeName, want.LogLevel, want.DebugPprof = "flag", 8, "1", "debug", true
	want.ClustermeshSyncTimeout, want.Operate.GCPerMinute = 30*time.Second, 100
	want.KVStoreOpt = map[string]string{"etcd.qps": "100", "etcd.keepaliveTimeout": "5s"}
	want.DisconnectPolicy = map[string]string{"demote": "5m", "withdraw": "0", "east.silence": "1h"}
	if diff := cmp.Diff(want, got.Flags); diff != "" {
		t.Error(diff)
	}
}

func TestThePolicyComesFromFlagsAndVariablesToo(t *testing.T) {
	t.Parallel()
	env := map[string]string{"MESH_AGENT_DISCONNECT_POLICY": "demote=5m,east.withdraw=0"}
	got, err := loadSettings(t, env)
	if diff := cmp.Diff(map[string]string{"demote": "5m", "east.withdraw": "0"}, got.Flags.DisconnectPolicy); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	got, err = loadSettings(t, env, "--disconnect-policy=demote=1m", "--disconnect-policy", "east.demote=2m,restore=5s")
	if diff := cmp.Diff(map[string]string{"demote": "1m", "east.demote": "2m", "restore": "5s"}, got.Flags.DisconnectPolicy); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if shown := got.InForce()["disconnect-policy"]; shown != `{"demote":"1m","east.demote":"2m","restore":"5s"}` {
		t.Errorf("shown as %s", shown)
	}
}

// TestTheKindOfKVStore: the agent accepts the value of Cilium's own configuration.
func TestTheKindOfKVStore(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{"": "", "etcd": "", "consul": `--kvstore: "consul" is not a kvstore that the agent can use: give etcd, or leave the flag out`} {
		_, err := loadSettings(t, nil, "--kvstore", kind)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", kind, err)
		}
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
			s := NewSettings()
			flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
			s.Register(flags)
			if err := flags.Parse(append(test.args, "--config", samples.SettingsFile(t, "kvstore-opt: "+test.file))); err != nil {
				t.Fatal(err)
			}
			got, err := s.Load(func(name string) string { return map[string]string{"MESH_AGENT_KVSTORE_OPT": test.env}[name] })
			if diff := cmp.Diff(test.want, got.Flags.KVStoreOpt); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// TestWhatAModeDoesNotUse: the settings that only other modes use are named, in a file and on the command line.
func TestWhatAModeDoesNotUse(t *testing.T) {
	t.Parallel()
	file := samples.SettingsFile(t, "cluster-name: east\nremote-write-rate: 5\nidentity-allocation-mode: kvstore\n")
	for mode, want := range map[Mode][]string{
		ModeRun:     {"kvstore-ensure-users", "remote-write-rate"},
		ModeOperate: {"remote-write-rate"},
		ModeMirror:  {"identity-allocation-mode", "kvstore-ensure-users"},
	} {
		s := NewSettings()
		flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
		s.Register(flags)
		err := flags.Parse([]string{"--config", file, "--kvstore-ensure-users"})
		if err == nil {
			_, err = s.Load(func(string) string { return "" })
		}
		if diff := cmp.Diff(want, s.Unused(mode)); diff != "" || err != nil {
			t.Errorf("%s: %v %s", mode, err, diff)
		}
	}
}

// TestMistakesNameTheirPlace: an error names the file, variable or flag to correct.
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
		"an empty policy file":              {"", nil, []string{"--claim-policy-file=" + samples.SettingsFile(t, "")}, []string{"--claim-policy-file: ", "yaml: it is empty"}},
		"a device as policy file":           {"", nil, []string{"--claim-policy-file=/dev/null"}, []string{"--claim-policy-file: /dev/null is no regular file"}},
		"a flag and the rest":               {"log-level: loud", nil, []string{"--listen=x"}, []string{"--listen: ", "FILE: log-level: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := samples.SettingsFile(t, test.file)
			_, err := loadSettings(t, test.env, append(test.args, "--config", file)...)
			if err == nil {
				t.Fatal("accepted")
			}
			if _, usage := errors.AsType[exit.UsageError](err); !usage || strings.Contains(err.Error(), "\n") {
				t.Errorf("no wrong usage: %q", err)
			}
			for _, want := range test.want {
				if want = strings.ReplaceAll(want, "FILE", file); !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}
