package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/internal/sim"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

// The contract (interface.md), as what is asked and what comes of it. A line in
// a table is a line of the contract; {words} stand for names of the simulated
// mesh, see [contract.names].

// contractShapes are the objects: their fields and the types of these.
const contractShapes = `
Status         agent:Agent state:starting|ready|degraded ready:bool summary:Summary clusters:[]Cluster kvstore:KVStore?
Agent          version:string cluster:string clusterID:number node:string started:time mode:run|operate|mirror
Summary        clusters:number clustersReady:number nodes:number services:number globalServices:number identities:number ips:number conflicts:number
KVStore        connected:bool endpoints:[]string lease:string heartbeatAgeSeconds:number? lastError:string
Cluster        name:string id:number state:connecting|syncing|ready|degraded|failed|removing ready:bool connected:bool cached:bool message:string
Cluster        endpoints:[]string etcdClusterID:string configFile:string capabilities:object synced:Synced counts:Counts rejected:Counts
Cluster        freshness:Freshnesses failures:number lastFailure:time? lastError:string connectedSince:time? lastEvent:time?
Synced         nodes:bool services:bool identities:bool ips:bool
Counts         nodes:number services:number identities:number ips:number
Freshnesses    nodes:Freshness services:Freshness identities:Freshness ips:Freshness
Freshness      state:string asOf:time? ageSeconds:number?
Node           cluster:string clusterID:number name:string addresses:[]NodeAddress podCIDRs:[]string healthIPs:[]string ingressIPs:[]string
Node           encryptionKey:number wireguardPublicKey:string identity:number bootID:string labels:texts annotations:texts
NodeAddress    type:string ip:string
Service        namespace:string name:string global:bool affinity:string clusters:[]ServiceCluster backends:[]Backend
ServiceCluster cluster:string shared:bool includeExternal:bool backends:number reason:string
Backend        ip:string cluster:string ports:[]Port hostname:string zone:string preferred:bool local:bool
Port           name:string protocol:string port:number
Identity       id:number cluster:string clusterID:number labels:texts
IP             prefix:string cluster:string clusterID:number identity:number hostIP:string encryptionKey:number namespace:string pod:string
IP             source:string kind:endpoint|node|pod-cidr|health|ingress claims:number
Lookup         ip:string match:IP? identity:Identity? node:Node? services:[]ServiceName candidates:[]Candidate
ServiceName    namespace:string name:string
Candidate      entry:IP won:bool reason:string
Conflict       kind:cluster-id|cluster-name|pod-cidr|ip|node-ip|claim|identity|service-port|service-affinity subject:string clusters:[]string message:string since:time
Event          time:time cluster:string kind:string code:string message:string resource:string name:string evidence:texts
Health         name:string cluster:string state:string message:string lastSuccess:time? lastFailure:time? consecutiveFailures:number
Problem        type:string title:string status:number detail:string
Ready          ready:bool reasons:texts
`

// contractPaths are the paths that are read, with the status and the shape of
// their answers; none for what is no JSON.
const contractPaths = `
GET  /                                    200
GET  /healthz                             200
GET  /readyz                              200 Ready
GET  /metrics                             200
GET  /openapi.json                        200
GET  /v1/status                           200 Status
GET  /v1/clusters                         200 List:Cluster
GET  /v1/clusters/cluster1                200 Cluster
GET  /v1/clusters/nope                    404 Problem
GET  /v1/nodes                            200 List:Node
GET  /v1/services                         200 List:Service
GET  /v1/services/{service}               200 Service
GET  /v1/services/default/nope            404 Problem
GET  /v1/identities                       200 List:Identity
GET  /v1/identities/{identity}            200 Identity
GET  /v1/identities/16777215              404 Problem
GET  /v1/ips                              200 List:IP
GET  /v1/ips?limit=1000000                200 List:IP
GET  /v1/conflicts                        200 List:Conflict
GET  /v1/events                           200 List:Event
GET  /v1/health                           200 List:Health
GET  /v1/lookup/{pod}                     200 Lookup
GET  /v1/lookup/{claimed}                 200 Lookup
GET  /v1/lookup/192.0.2.1                 200 Lookup
GET  /v1/lookup/nonsense                  400 Problem
GET  /v1/ips?limit=0                      400 Problem
GET  /v1/ips?cursor=nonsense              400 Problem
GET  /v1/ips?colour=blue                  400 Problem
GET  /v1/nothing                          404 Problem
POST /v1/nodes                            405 Problem
`

// contractFilters are filters of lists, each with what every item that passes
// holds; some items must not pass.
const contractFilters = `
/v1/clusters?cluster=cluster1             "name":"cluster1"
/v1/nodes?cluster=cluster1                "cluster":"cluster1"
/v1/nodes?name={nodename}                 "name":"{nodename}"
/v1/nodes?prefix={nodeaddress}            "name":"{nodename}"
/v1/nodes?labels=kubernetes.io/hostname={nodename} "name":"{nodename}"
/v1/services?namespace={namespace}        "namespace":"{namespace}"
/v1/services?name={servicename}           "name":"{servicename}"
/v1/services?cluster=cluster1             "cluster":"cluster1"
/v1/identities?cluster=cluster1           "cluster":"cluster1"
/v1/identities?identity={identity}        "id":{identity},
/v1/identities?namespace={namespace}      "k8s:io.kubernetes.pod.namespace":"{namespace}"
/v1/identities?labels=app={app}           "k8s:app":"{app}"
/v1/ips?cluster=cluster1                  "cluster":"cluster1"
/v1/ips?namespace={podnamespace}          "namespace":"{podnamespace}"
/v1/ips?identity={identity}               "identity":{identity},
/v1/ips?prefix={claimed}                  "prefix":"{claimed}/32"
/v1/conflicts?cluster=cluster1            "cluster1"
/v1/events?cluster=cluster1               "cluster":"cluster1"
/v1/health?cluster=cluster1               "cluster":"cluster1"
`

// contractCommands are command lines, with their exit codes and what they print:
// a shape (as JSON), or a text that is in stdout (after ~) or stderr (after !).
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

// contractFlags are the flags of run with their defaults; those that later
// modes bring are not among them.
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

// contractResources are what get and describe take, in the singular and the
// plural.
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

// contract is a running agent that is held to it: two remote clusters at rest,
// one address claimed by both, a third that does not answer, and the own one in
// its kvstore.
type contract struct {
	*agenttest.Process
	http   *http.Client
	shapes *shapes
	api    openAPI
	names  *strings.Replacer
}

func TestTheContract(t *testing.T) {
	t.Parallel()
	c := openContract(t)
	t.Run("it", func(t *testing.T) { // ends when all of them have
		t.Run("paths", c.testPaths)
		t.Run("filters", c.testFilters)
		t.Run("pages", c.testPages)
		t.Run("watch", c.testWatch)
		t.Run("commands", c.testCommands)
		t.Run("resources", c.testResources)
		t.Run("flags", c.testFlags)
	})
	if unseen := c.shapes.unseen(); len(unseen) > 0 {
		t.Errorf("no answer had %v: the contract was not compared with them", unseen)
	}
}

func openContract(t *testing.T) *contract {
	t.Helper()
	m := agenttest.Simulate(t, 3)
	first, second, own := m.Clusters()[0], m.Clusters()[1], m.Clusters()[2]
	claimed := second.Sample().Pod
	for _, claim := range []struct {
		by *sim.Running
		of netip.Addr
	}{{first, claimed}, {second, own.Sample().Pod}} {
		if _, _, err := m.Claim(t.Context(), claim.by, claim.of); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "etcd.config")
	agenttest.Must(t, os.Rename(filepath.Join(m.Dir(), "cluster3"), file))
	agenttest.Must(t, os.WriteFile(filepath.Join(m.Dir(), "away"), []byte(`endpoints: ["https://127.0.0.1:1"]`), 0o600))
	a := agenttest.StartAgent(t, m.Dir(), "--cluster-name", "cluster3", "--cluster-id", "3", "--kvstore-opt", "etcd.config="+file, "--clustermesh-sync-timeout", "1s")
	a.Until("all but one cluster", func() bool {
		s := a.Status()
		return s.Ready && s.Summary.ClustersReady == 2 && s.KVStore.Ready && len(agenttest.List[api.Conflict](a, "conflicts")) == 3
	})
	c := &contract{Process: a, http: agenttest.UnixClient(a.Socket), shapes: readShapes(contractShapes)}
	c.Get(t, "GET", "/openapi.json", &c.api)
	c.name(t, m.Dir(), first.Sample(), claimed.String())
	return c
}

// name finds names for the words in the tables.
func (c *contract) name(t *testing.T, dir string, sample sim.Sample, claimed string) {
	t.Helper()
	namespace, service, _ := strings.Cut(sample.Service, "/")
	podNamespace, _, _ := strings.Cut(sample.PodName, "/")
	pod := c.Lookup(sample.Pod.String())
	if pod.Identity == nil {
		t.Fatalf("%+v has no identity", pod)
	}
	hostname, err := os.Hostname()
	agenttest.Must(t, err)
	c.names = strings.NewReplacer(
		"{dir}", dir, "{hostname}", hostname, "{claimed}", claimed,
		"{service}", sample.Service, "{namespace}", namespace, "{servicename}", service,
		"{nodename}", sample.NodeName, "{nodeaddress}", sample.Node.String(), "{podnamespace}", podNamespace,
		"{identity}", strconv.Itoa(int(pod.Identity.ID)), "{app}", pod.Identity.Labels["k8s:app"], "{pod}", sample.Pod.String(),
	)
}

// rows are the lines of a table, as words, with the names in them.
func (c *contract) rows(table string) (rows [][]string) {
	for line := range strings.Lines(strings.TrimSpace(table)) {
		rows = append(rows, strings.Fields(c.names.Replace(line)))
	}
	return rows
}

// Get asks the agent, and holds the answer to its OpenAPI document unless that
// is what is asked for.
func (c *contract) Get(t *testing.T, method, path string, into any) (status int, media string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://agent"+path, nil)
	agenttest.Must(t, err)
	resp, err := c.http.Do(r)
	agenttest.Must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	agenttest.Must(t, err)
	media, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if c.api.Paths != nil {
		if err := c.api.validate(method, r.URL.Path, resp.StatusCode, media, body); err != nil {
			t.Errorf("%s %s is not as /openapi.json says: %v", method, path, err)
		}
	}
	if into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatalf("%s: %d, %v in %.200s", path, resp.StatusCode, err, body)
		}
	}
	return resp.StatusCode, media
}

// items asks for a list and returns each item as JSON on one line, and the
// cursor of the next page.
func (c *contract) items(t *testing.T, path string) (items []string, next string) {
	t.Helper()
	var page struct {
		Items []json.RawMessage
		Next  string
	}
	if status, _ := c.Get(t, http.MethodGet, path, &page); status != http.StatusOK {
		t.Fatalf("%s: %d", path, status)
	}
	for _, item := range page.Items {
		items = append(items, string(item))
	}
	return items, page.Next
}

func (c *contract) testPaths(t *testing.T) {
	t.Parallel()
	for _, row := range c.rows(contractPaths) {
		t.Run(strings.Join(row[:2], " "), func(t *testing.T) {
			t.Parallel()
			shape, media := "", ""
			if len(row) > 3 {
				shape, media = row[3], "application/json"
			}
			if shape == "Problem" {
				media = api.MediaTypeProblem
			}
			var answer, into any
			if shape != "" {
				into = &answer
			}
			status, kind := c.Get(t, row[0], row[1], into)
			if strconv.Itoa(status) != row[2] || media != "" && kind != media {
				t.Fatalf("%d %s", status, kind)
			}
			if shape != "" {
				c.hold(t, shape, answer)
			}
		})
	}
}

// hold compares an answer with a shape.
func (c *contract) hold(t *testing.T, shape string, answer any) {
	t.Helper()
	if err := c.shapes.check(shape, answer); err != nil {
		t.Errorf("it is no %s: %v", shape, err)
	}
}

func (c *contract) testFilters(t *testing.T) {
	t.Parallel()
	for _, row := range c.rows(contractFilters) {
		t.Run(row[0], func(t *testing.T) {
			t.Parallel()
			path, _, _ := strings.Cut(row[0], "?")
			all, _ := c.items(t, path)
			some, _ := c.items(t, row[0])
			if len(some) == 0 || len(some) >= len(all) {
				t.Fatalf("%d of %d pass", len(some), len(all))
			}
			for _, item := range some {
				if !strings.Contains(item, row[1]) {
					t.Errorf("%s is not in %s", row[1], item)
				}
			}
		})
	}
}

// testPages: the pages of a list are the list.
func (c *contract) testPages(t *testing.T) {
	t.Parallel()
	for _, row := range c.rows(contractResources) {
		t.Run(row[1], func(t *testing.T) {
			t.Parallel()
			all, next := c.items(t, "/v1/"+row[1])
			if next != "" {
				t.Errorf("the whole list goes on with %q", next)
			}
			var paged []string
			for cursor, size := "", max(1, len(all)/7); ; {
				page, next := c.items(t, fmt.Sprintf("/v1/%s?limit=%d&cursor=%s", row[1], size, url.QueryEscape(cursor)))
				paged = append(paged, page...)
				if cursor = next; cursor == "" {
					break
				}
				if len(page) != size {
					t.Fatalf("a page of %d, not %d", len(page), size)
				}
			}
			after, _ := c.items(t, "/v1/"+row[1]) // events may have come meanwhile
			if len(paged) < len(all) || len(paged) > len(after) || len(all) == 0 {
				t.Errorf("%d items in pages, %d and then %d in all", len(paged), len(all), len(after))
			}
		})
	}
}

// testWatch: the state comes as upserts, then synced, for each resource.
func (c *contract) testWatch(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/v1/watch?resource=ips&resource=services", nil)
	agenttest.Must(t, err)
	resp, err := c.http.Do(r)
	agenttest.Must(t, err)
	defer resp.Body.Close()
	shape := map[string]string{"ips": "IP", "services": "Service"}
	seen, synced, event, id := map[string]int{}, 0, "", ""
	for lines := bufio.NewScanner(resp.Body); synced < 2 && lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "event":
			event = value
		case "id":
			id = value
		case "data":
			var data struct {
				Resource string
				Object   any
				Revision *uint64
			}
			if err := json.Unmarshal([]byte(value), &data); err != nil || data.Revision == nil {
				t.Fatalf("%v in %s", err, value)
			}
			switch event {
			case "synced":
				synced++
			case "upsert":
				seen[data.Resource]++
				c.hold(t, shape[data.Resource], data.Object)
			default:
				t.Fatalf("event %q", event)
			}
		}
	}
	if seen["ips"] == 0 || seen["services"] == 0 || synced != 2 || id == "" {
		t.Errorf("saw %v, %d times synced, last id %q", seen, synced, id)
	}
}

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
				out, errs, code := c.Execute(args...)
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
