package httpapi

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
)

// sse is one event as a client reads it.
type sse struct {
	id, event string
	data      struct {
		Resource string
		Object   json.RawMessage
		Revision uint64
		Reason   string
	}
}

// name is a short text for the subject of the event, to compare.
func (e sse) name() string {
	text := e.event
	if e.data.Resource != "" {
		text += " " + e.data.Resource
	}
	var o struct{ Prefix, Cluster, Name string }
	_ = json.Unmarshal(e.data.Object, &o) // some events have none
	return strings.TrimSpace(text + " " + cmp.Or(o.Prefix, o.Cluster, o.Name))
}

// watcher reads a watch over a real connection.
type watcher struct {
	t     testing.TB
	body  io.ReadCloser
	lines *bufio.Reader
	last  string // id of the last event
}

// readEvent reads an event or a sign of life.
func readEvent(lines *bufio.Reader) (e sse, err error) {
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return e, err
		}
		switch field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); field {
		case "id":
			e.id = value
		case "event":
			e.event = value
		case "data":
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				return e, fmt.Errorf("data %q: %w", value, err)
			}
		}
		if line == "\n" {
			return e, nil
		}
	}
}

// serving runs the fixture's server, with its feed.
func serving(t *testing.T, f *fixture) string {
	t.Helper()
	serve(t, f)
	return "http://" + f.Address()
}

func openWatch(t testing.TB, base, query, token string) *watcher {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/watch?"+query, nil)
	must(t, err)
	if token != "" {
		req.Header.Set("Last-Event-ID", token)
	}
	resp, err := http.DefaultClient.Do(req)
	must(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("%s, %s", resp.Status, kind)
	}
	return &watcher{t: t, body: resp.Body, lines: bufio.NewReader(resp.Body)}
}

// next reads one event.
func (w *watcher) next() sse {
	w.t.Helper()
	for {
		e, err := readEvent(w.lines)
		if err != nil {
			w.t.Fatalf("the watch ended: %v", err)
		}
		if e.event != "" {
			w.last = e.id
			return e
		}
	}
}

// expect reads events, in exactly this order.
func (w *watcher) expect(names ...string) {
	w.t.Helper()
	for _, want := range names {
		if got := w.next().name(); got != want {
			w.t.Fatalf("%q came, want %q", got, want)
		}
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	base := serving(t, f)
	w := openWatch(t, base, "resource=nodes&resource=clusters", "")
	w.expect("upsert clusters c2", "upsert clusters c3", "synced clusters",
		"upsert nodes c2", "upsert nodes c2", "upsert nodes c3", "synced nodes")
	f.services.Apply(created(&services.Service{Cluster: "c9", Namespace: "n", Name: "n", Shared: true})) // not one of the watched resources
	f.nodes.Apply(created(&nodes.Node{Cluster: "c9", Name: "n"}))
	w.expect("upsert nodes c9")
	f.nodes.Apply([]store.Change[nodes.Node]{{Old: &nodes.Node{Cluster: "c9", Name: "n"}}})
	w.expect("delete nodes c9")
	f.mesh.Set(func(is *fakemesh.Facts) { is.Clusters = is.Clusters[:1] })
	w.expect("delete clusters c3")

	// A client that reconnects continues at its last event, and misses nothing.
	w.body.Close()
	f.nodes.Apply(created(&nodes.Node{Cluster: "c8", Name: "n"}))
	again := openWatch(t, base, "resource=nodes", w.last)
	again.expect("upsert nodes c8")

	// Filters, also those that an object may stop passing.
	labelled := openWatch(t, base, "resource=nodes&labels=zone", "")
	labelled.expect("upsert nodes c2", "synced nodes")
	f.nodes.Apply(created(
		&nodes.Node{Cluster: "c3", Name: "x"},
		&nodes.Node{Cluster: "c2", ClusterID: 2, Name: "n1", Source: wire.SourceClusterMesh},
		&nodes.Node{Cluster: "c4", Name: "x", Labels: map[string]string{"zone": ""}},
	))
	labelled.expect("delete nodes c2", "upsert nodes c4")

	// A token of another process.
	other := openWatch(t, base, "resource=clusters", "abc-7")
	other.expect("reset", "upsert clusters c2", "synced clusters")
}

func TestWatchOfAddresses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base := serving(t, f)
	c2, c3 := &ipcache.Claimant{Name: "c2", ID: 2}, &ipcache.Claimant{Name: "c3", ID: 3}
	spec := func(text string, c *ipcache.Claimant) ipcache.Spec {
		return ipcache.Spec{Prefix: prefix(text), Cluster: c, Source: wire.SourceClusterMesh}
	}
	f.ips.Apply(claimed(spec("10.0.0.1/32", c3), spec("10.0.0.2/32", c3)))
	all, of3 := openWatch(t, base, "resource=ips", ""), openWatch(t, base, "resource=ips&cluster=c3&prefix=10.0.0.0/24", "")
	all.expect("upsert ips 10.0.0.1/32", "upsert ips 10.0.0.2/32", "synced ips")
	of3.expect("upsert ips 10.0.0.1/32", "upsert ips 10.0.0.2/32", "synced ips")
	f.ips.Apply(claimed(spec("10.0.0.1/32", c2), spec("10.1.0.1/32", c3), spec("10.0.0.2/32", c2)))
	f.ips.Apply([]ipcache.Op{{Old: ipcache.NewEntry(spec("10.0.0.2/32", c2))}})
	f.watch.Look(epoch)
	of3.expect("delete ips 10.0.0.1/32")
	f.ips.Apply(claimed(spec("10.0.0.3/32", c3)))
	seen := map[string]bool{}
	for !seen["upsert ips 10.0.0.3/32"] {
		seen[all.next().name()] = true
	}
	if !seen["upsert ips 10.0.0.1/32"] || !seen["upsert ips 10.1.0.1/32"] {
		t.Errorf("came: %v", seen)
	}
	for of3.next().name() != "upsert ips 10.0.0.3/32" { // 10.0.0.2 may have been sent again
	}
}

// TestWatchThatFallsBehind: it starts again with a reset, and its events are not buffered.
func TestWatchThatFallsBehind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base := serving(t, f)
	w := openWatch(t, base, "resource=ips", "")
	w.expect("synced ips")
	token := w.last
	w.body.Close()
	own := &ipcache.Claimant{Name: "c2", ID: 2}
	for i := range view.RingSize + 10 {
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i % 2)})
		f.ips.Apply(claimed(ipcache.Spec{Prefix: netip.PrefixFrom(a, 32), Cluster: own, Identity: uint32(i)}))
		if i%1000 == 0 {
			f.View.Position()
		}
	}
	again := openWatch(t, base, "resource=ips", token)
	again.expect("reset", "upsert ips 10.0.0.0/32", "upsert ips 10.0.0.1/32", "synced ips")
	// It did not ask for nodes, so it missed nothing of them.
	openWatch(t, base, "resource=nodes", again.last).body.Close()
}

func TestWatchRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for query, want := range map[string]string{
		"resource=pods":                          `resource "pods": want one of clusters, nodes, services`,
		"resource=ips&limit=3":                   "a watch has no pages",
		"resource=ips&kind=x":                    "ips cannot be filtered by it",
		"namespace=default":                      "clusters cannot be filtered by it",
		"resource=nodes&labels=a+b":              "is no requirement",
		"resource=nodes&prefix=::ffff:1.2.3.4/9": "at least 96 bits",
	} {
		w := f.get("/v1/watch?" + query)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) && !strings.Contains(w.Body.String(), strings.ReplaceAll(want, `"`, `\"`)) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}

// TestWatchEndsWithTheServer: it ends at once.
func TestWatchEndsWithTheServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base := serving(t, f)
	w := openWatch(t, base, "resource=ips", "")
	w.expect("synced ips")
	f.stop()
	if rest, err := io.ReadAll(w.lines); err != nil || len(rest) != 0 {
		t.Errorf("%q %v", rest, err)
	}
}

// TestAQuietWatchOnABusyAgentLives: a client that follows none of the changes still gets signs of life, and its
// position advances.
func TestAQuietWatchOnABusyAgentLives(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.heartbeat = 20 * time.Millisecond
	base := serving(t, f)
	w := openWatch(t, base, "resource=clusters", "")
	w.expect("synced clusters")
	before := f.View.Position()
	done := make(chan struct{})
	defer func() { <-done }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer close(done)
		for i := 0; ctx.Err() == nil; i++ {
			f.nodes.Apply(created(&nodes.Node{Cluster: "c9", Name: "n", BootID: fmt.Sprint(i)}))
			f.View.Position()
		}
	}()
	signs := 0
	for signs < 3 {
		line, err := w.lines.ReadString('\n')
		must(t, err)
		if id, is := strings.CutPrefix(strings.TrimSpace(line), "id: "); is {
			_, number, _ := strings.Cut(id, "-")
			position, err := strconv.ParseUint(number, 10, 64)
			if err != nil || id != f.View.Token(position) {
				t.Fatalf("a sign of life at %q", id)
			}
			if position > before { // the first ones may be sent before any change
				before, signs = position, signs+1
			}
		}
	}
}

// TestWhatIsNotThereMayBe: if an object is not found, a cluster that is not known as of now may have it.
func TestWhatIsNotThereMayBe(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.mesh.SetClusters(readyCluster("c2", 2), connectingCluster("c3"))
	for _, target := range []string{"/v1/nodes/c3/n", "/v1/services/a/b", "/v1/identities/77", "/v1/ips/10.0.0.1"} {
		w := f.get(target)
		if body := w.Body.String(); w.Code != http.StatusNotFound || !strings.Contains(body, "is not known as of now: c3") {
			t.Errorf("%s: %d %s", target, w.Code, body)
		}
	}
}

// TestFreshnessIsNoPartOfAnItem: freshness changes without an event, so a list has it once for all of its items, and a
// single service has it outside of the item.
func TestFreshnessIsNoPartOfAnItem(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	const doubt = "; the copy of c3's services is not complete yet"
	if text := f.get("/v1/services?namespace=db").Body.String(); strings.Contains(text, doubt) || !strings.Contains(text, `"c3":{"state":"unknown"`) {
		t.Errorf("the list says %s", text)
	}
	if text := f.get("/v1/services/db/empty").Body.String(); !strings.Contains(text, doubt) {
		t.Errorf("the service says %s", text)
	}
}
