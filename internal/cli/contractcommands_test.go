package cli_test

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
)

// contractCommands are command lines, with their exit codes and output: a shape (as JSON), or a text that is in stdout
// (after ~) or stderr (after !).
const contractCommands = `
status                                    1 ~cluster1
status cluster1                           0 ~cluster1
status -o json                            1 Status
status cluster1 -o json                   0 Cluster
status nope                               1 !nope
status --wait --timeout 100ms             1 ~cluster1
status cluster1 --wait --for=ready        0 ~cluster1
status cluster1 --wait --for=fresh        0 ~cluster1
status --for=never --wait                 2 !never
get service {service} -o json             0 Service
get node -c cluster1 {nodename} -o json   0 Node
get services -n {namespace} -o json       0 List:Service
get identities -l app={app} -o json       0 List:Identity
get nodes -c nope                         0 !No_nodes
get node cluster1/nope                    1 !nope
get nodes -o xml                          2 !table
get gremlins                              2 !gremlins
lookup {claimed}                          0 ~cluster1
lookup {claimed} -o json                  0 Lookup
lookup 192.0.2.1                          1 ~192.0.2.1
lookup nonsense                           2 !nonsense
describe service {service}                0 ~{servicename}
describe ip {claimed}                     0 ~{claimed}
describe node cluster1/nope               1 !nope
top --once --interval 100ms               0 ~cluster1
top cluster1 --once --interval 100ms -o json 0 ~eventsPerSecond
top nope --once                           1 !nope
top --interval 1ms                        2 !100ms
status --watch --wait                     2 !either
status --interval 1s                      2 !needs_--watch
lookup nonsense --watch                   2 !nonsense
describe node cluster1/nope --watch       1 !nope
demo nonsense                             2 !nonsense
config check {dir}                        0 ~cluster1
config check {dir}/nope                   2 !nope
troubleshoot cluster1 --clustermesh-config {dir}                                          0 ~cluster1
troubleshoot --clustermesh-config {dir}                                                   1 ~away
troubleshoot nope --clustermesh-config {dir}                                              1 !nope
kvstore status --cluster cluster1 --clustermesh-config {dir}                              0 ~cluster1
kvstore list --cluster cluster1 --clustermesh-config {dir} cilium/cluster-config/cluster1 0 ~cilium/cluster-config/cluster1
kvstore get --cluster cluster1 --clustermesh-config {dir} cilium/cluster-config/cluster1  0 ~maxConnectedClusters
identity list --cluster cluster1 --clustermesh-config {dir}                                0 ~k8s:io.cilium.k8s.policy.cluster=cluster1
identity check --cluster cluster1 --clustermesh-config {dir}                               0 ~cluster_cluster1:_0_errors
identity gc --cluster cluster1 --clustermesh-config {dir}                                  2 !only_read
kvstore get --cluster cluster1 --clustermesh-config {dir} cilium/state/nope               1 !nope
hive                                      0 ~clustermesh
version                                   0 ~mesh-agent
version -o json                           0 ~version
completion bash                           0 ~mesh-agent
completion zsh                            0 ~mesh-agent
completion fish                           0 ~mesh-agent
completion powershell                     0 ~mesh-agent
bugreport -f -                            0 ~
frobnicate                                2 !frobnicate
run --frobnicate                          2 !frobnicate
`

// contractFlags are the flags of run with their defaults, without the flags of later modes.
const contractFlags = `
cluster-name             "default"
cluster-id
max-connected-clusters   255
node-name                "{hostname}"
clustermesh-config       "/var/lib/cilium/clustermesh/"
clustermesh-sync-timeout 1m0s
clustermesh-cache-ttl
kvstore-opt
kvstore-connectivity-timeout 2m0s
kvstore-lease-ttl        15m0s
kvstore-periodic-sync    5m0s
kvstore-max-consecutive-quorum-errors 2
node-ip
listen                   "127.0.0.1:9979"
socket                   "/var/run/mesh-agent/mesh-agent.sock"
debug-pprof
log-level                "info"
log-format               "text"
config
`

// contractResources are the arguments of get and describe, in the singular and the plural.
const contractResources = `
cluster  clusters   Cluster
node     nodes      Node
service  services   Service
identity identities Identity
ip       ips        IP
conflict conflicts  Conflict
event    events     Event
health   health     Health
`

func (c *contract) testCommands(t *testing.T) {
	t.Parallel()
	for _, row := range c.rows(contractCommands) {
		args, code, says := row[:len(row)-2], row[len(row)-2], strings.ReplaceAll(row[len(row)-1], "_", " ")
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			out, errs, got := c.Patiently(c.Execute, args...)
			if strconv.Itoa(got) != code {
				t.Errorf("exit %d, not %s", got, code)
			}
			if text, ok := strings.CutPrefix(says, "~"); ok {
				if out == "" || !strings.Contains(out, text) {
					t.Errorf("%q is not in stdout: %.2000s\nstderr: %s", text, out, errs)
				}
			} else if text, ok := strings.CutPrefix(says, "!"); ok {
				if !strings.Contains(errs, text) || out != "" {
					t.Errorf("%q is not in stderr: %s\nstdout: %.2000s", text, errs, out)
				}
			} else {
				c.holdText(t, says, []byte(out))
			}
			if strings.Contains(out+errs, "\x1b[") && args[0] != "completion" && args[0] != "bugreport" {
				t.Error("colours off a terminal")
			}
		})
	}
}

// holdText compares JSON text with a shape.
func (c *contract) holdText(t *testing.T, shape string, text []byte) {
	t.Helper()
	var answer any
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("no JSON: %v in %.2000s", err, text)
	}
	c.hold(t, shape, answer)
}

// testResources gets and describes every kind of object in every form.
func (c *contract) testResources(t *testing.T) {
	t.Parallel()
	for _, row := range c.rows(contractResources) {
		singular, plural, shape := row[0], row[1], row[2]
		t.Run(plural, func(t *testing.T) {
			t.Parallel()
			ok := func(args ...string) string {
				out, errs, code := c.Call(args...)
				if code != exit.OK || out == "" {
					t.Errorf("%v: exit %d, %s", args, code, errs)
				}
				return out
			}
			table, wide := ok("get", plural), ok("get", plural, "-o", "wide")
			head, _, _ := strings.Cut(table, "\n")
			if wideHead, _, _ := strings.Cut(wide, "\n"); head != strings.ToUpper(head) || len(strings.Fields(wideHead)) < len(strings.Fields(head)) {
				t.Errorf("the table begins with %q, the wide one with %q", head, wideHead)
			}
			c.holdText(t, "List:"+shape, []byte(ok("get", singular, "-o", "json")))
			asJSON, err := yaml.YAMLToJSON([]byte(ok("get", plural, "-o", "yaml")))
			agenttest.Must(t, err)
			c.holdText(t, "List:"+shape, asJSON)
			names := strings.Fields(ok("get", plural, "-o", "name"))
			if rows := strings.Count(table, "\n") - 1; rows == 0 || len(names) < rows || len(names) > rows && plural != "events" {
				t.Fatalf("%d names, %d rows", len(names), rows)
			}
			c.holdText(t, shape, []byte(ok("get", singular, names[0], "-o", "json")))
			ok("describe", singular, names[0])
		})
	}
}

// testFlags compares the flags of run with the contract's.
func (c *contract) testFlags(t *testing.T) {
	t.Parallel()
	help, _, _ := agenttest.Call(t, "run", "--help")
	_, help, _ = strings.Cut(help, "Flags:\n")
	for _, row := range c.rows(contractFlags) {
		line := regexp.MustCompile(`(?m)^ +--` + row[0] + ` .*$`).FindString(help)
		value := ""
		if at := strings.Index(line, "(default "); at >= 0 {
			value = strings.TrimSuffix(line[at+len("(default "):], ")")
		}
		if want := strings.Join(row[1:], " "); line == "" || value != want {
			t.Errorf("--%s: want the default %s: %q", row[0], want, line)
		}
	}
}
