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
	"strconv"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// The contract (interface.md), as requests and their results. Each line of a table is a line of the contract; {words}
// stand for names of the simulated mesh, see [contract.names].

// contractPaths are the paths to read, with the status and the shape of their answers; without a shape if the answer is
// not JSON.
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

// contractFilters are filters of lists, each with a text that every item that passes contains; some items must not
// pass.
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

// contract is a running agent that is tested: two remote clusters at rest, one address claimed by both, a third cluster
// that does not answer, and the own one in its kvstore.
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
	t.Run("it", func(t *testing.T) { // ends when all subtests have
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
	m := meshtest.Run(t, meshtest.Clusters(3)...)
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
func (c *contract) name(t *testing.T, dir string, sample contents.Sample, claimed string) {
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

// Get sends a request to the agent, and validates the answer with its OpenAPI document, unless it is a request for that
// document.
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

// items asks for a list and returns each item as JSON on one line, and the cursor of the next page.
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

// testPages: the pages of a list together are the list.
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
			after, _ := c.items(t, "/v1/"+row[1]) // there may be new events meanwhile
			if len(paged) < len(all) || len(paged) > len(after) || len(all) == 0 {
				t.Errorf("%d items in pages, %d and then %d in all", len(paged), len(all), len(after))
			}
		})
	}
}

// testWatch: for each resource, the watch sends the state as upserts, then synced.
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
