package browser

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
)

// publish lets a cluster share the service shop/fresh, with these backends.
func (w *world) publish(cluster, namespace, name string, ips ...string) {
	w.t.Helper()
	r := w.cluster(cluster)
	s := wire.Service{
		Cluster: cluster, ClusterID: r.Cluster().ID, Namespace: namespace, Name: name, Shared: true,
		Frontends: map[string]wire.Ports{"198.18.0.1": {"http": {Protocol: "TCP", Port: 80}}}, Backends: map[string]wire.Ports{},
	}
	for _, ip := range ips {
		s.Backends[ip] = wire.Ports{"http": {Protocol: "TCP", Port: 8080}}
	}
	must(w.t, r.Put(w.t.Context(), s.Key(), s.Encode()))
}

// TestLive: changes of the mesh are shown in the page without a reload.
func TestLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, three()...)
	p := w.open()
	p.visit("#/", "Mesh")
	p.untilText(".summary", "3 clusters are healthy")
	eval[bool](p, `globalThis.sameDocument = true`)

	must(t, w.cluster("paris").Kill())
	p.untilText(".summary", "1 of 3 clusters needs attention")
	p.untilText(".note.first", "degraded: nothing listens at an endpoint (paris)") // the text of the command status
	p.untilText(".glance .cards", "paris")
	p.untilText(".glance .cards", "since")
	p.untilText(".glance .cards", "Affected:")
	p.untilText(".summary .numbers", "1 lost")
	p.untilText(".summary .numbers", "2 ready")
	p.until("the tab says it", `document.title === "(1) ✕ Mesh - mesh-agent" && document.querySelector("link[rel=icon]").href.startsWith("data:image/svg+xml")`)
	p.until("the picture says it", `document.querySelector(".picture svg").getAttribute("aria-label").includes("3 clusters, 2 fresh, 1 not confirmed now")`)
	p.until("the message is there once", `[...document.querySelectorAll("main p, main td")].filter((e) => e.textContent.includes("connection refused")).length <= 1`)
	p.until("paris is first", `document.querySelector(".tiles a").textContent.includes("paris")`)
	p.untilText("main tr", "stale, as of")
	p.untilText("[aria-live]", "paris")
	p.audit("with a cluster away")
	p.picture("mesh-broken")
	p.until("its age grows", `(() => { const age = [...document.querySelectorAll("main > .scroll tr")].find((r) => r.textContent.includes("paris")).textContent.match(/as of (\d+) s ago/); return age && Number(age[1]) >= 2; })()`)
	p.untilCopied("Copy text", "Cluster paris: ")
	p.untilCopied("Copy link", p.base+"#/clusters/paris")
	eval[bool](p, `location.hash = "#/clusters/paris", true`)
	p.untilText("main", "What to do:")
	p.untilText("main h1", "Cluster paris")
	p.audit("a cluster that is away")
	p.picture("cluster-broken")
	must(t, w.cluster("paris").Start(t.Context()))
	p.untilText("main .title", "fresh")
	p.until("the tab says no more", `document.title === "Cluster paris - mesh-agent" && document.querySelector("link[rel=icon]").href.endsWith(".svg")`)
	p.untilText("main table", "cluster-ready")

	eval[bool](p, `location.hash = "#/services/shop/fresh", true`)
	p.untilText("main", "no cluster")
	w.publish("london", "shop", "fresh", "10.1.9.1", "10.1.9.2")
	p.untilText("main", "10.1.9.2")
	w.publish("tokyo", "shop", "fresh", "10.3.9.1")
	p.untilText("main tr.group", "tokyo")
	w.publish("london", "shop", "fresh", "10.1.9.1")
	p.until("a backend has gone", `!document.querySelector("main").textContent.includes("10.1.9.2")`)

	eval[bool](p, `location.hash = "#/conflicts", true`)
	p.untilText("main", "none")
	_, _, err := w.mesh.Claim(t.Context(), w.cluster("london"), firstPod(w, "tokyo"))
	must(t, err)
	p.untilText("main", "What to do:")
	eval[bool](p, `location.hash = "#/", true`)
	p.untilText(".summary .badge.warn", "3 clusters are ready") // and not "healthy"
	p.untilText(".first", "clusters disagree (")
	eval[bool](p, `location.hash = "#/conflicts", true`)
	p.untilText("main", "What to do:")
	if _, err := w.cluster("london").Mend(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.until("no conflict", `document.querySelector("main").textContent.includes("none")`)
	if !eval[bool](p, `globalThis.sameDocument === true`) {
		t.Error("the page was loaded again")
	}
}

// untilCopied presses a button, and waits until the copied text begins with this one.
func (p *page) untilCopied(button, text string) {
	p.t.Helper()
	eval[bool](p, `navigator.clipboard.writeText = async (text) => { globalThis.copied = text; }, [...document.querySelectorAll(".glance button")].find((b) => b.textContent === `+quoted(button)+`).click(), true`)
	p.until(text+" is copied", `globalThis.copied?.startsWith(`+quoted(text)+`)`)
}

// TestProgress: while clusters are copied for the first time, the page does not call them healthy.
func TestProgress(t *testing.T) {
	w := newWorld(t, three()...)
	p := w.open()
	must(t, w.cluster("tokyo").Kill())
	if code := w.agent.Stop(); code != 0 {
		t.Fatalf("the agent ended with %d", code)
	}
	w.agent = agenttest.StartAgent(t, w.mesh.Dir(), w.flags...)
	p.visit("#/", "Mesh")
	p.until("two are there, and one is not", `/2 of 3 clusters complete|1 of 3 clusters needs attention/.test(document.querySelector(".summary .badge").textContent)`)
	if eval[bool](p, `document.querySelector(".summary .badge").classList.contains("good")`) {
		t.Error("the page is green")
	}
	must(t, w.cluster("tokyo").Start(t.Context()))
	p.untilText(".summary .badge.good", "3 clusters are healthy")
}

// firstPod is the address of a pod of a cluster.
func firstPod(w *world, cluster string) netip.Addr {
	w.t.Helper()
	for _, ip := range agenttest.List[api.IP](w.agent, "ips", "-c", cluster) {
		if ip.Kind == "endpoint" {
			return netip.MustParsePrefix(ip.Prefix).Addr()
		}
	}
	w.t.Fatalf("%s has no pod", cluster)
	return netip.Addr{}
}

// TestStreamIsCut: the page shows that it is not live, its ages increase, and it continues from its last state.
func TestStreamIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, three()...)
	p := w.open()
	p.visit("#/", "Mesh")
	p.untilText(".live", "live")
	w.setCut(true)
	p.untilText(".banner", "Not live.")
	p.untilText(".live", "not live")
	p.until("the age grows", `Number(document.querySelector(".banner").textContent.match(/as of (\d+) s ago/)?.[1]) >= 3`)
	p.until("what was fresh ages, too", `[...document.querySelectorAll("main > .scroll tbody tr")].every((r) => /as of \d+ s ago/.test(r.textContent))`)
	p.audit("not live")
	p.picture("not-live")
	must(t, w.cluster("tokyo").Kill()) // the page does not see this at first
	w.agent.Until("tokyo to be away", func() bool { return len(w.agent.ReadyClusters()) < 3 || !w.agent.Status().Clusters[2].Connected })
	w.forget()
	w.setCut(false)
	p.until("it goes on", `!document.querySelector(".banner")`)
	p.untilText("main tr", "stale, as of")
	p.untilText(".picture", "share services; the most")
	watches := w.requests("/v1/watch")
	if len(watches) == 0 || !strings.Contains(watches[len(watches)-1], "&since=") {
		t.Errorf("the stream was not resumed: %v", watches)
	}
	must(t, w.cluster("tokyo").Start(t.Context()))
	p.untilText(".summary", "3 clusters are healthy")

	// Another process has no tokens of the first: everything is sent again, and removed objects disappear.
	w.publish("london", "shop", "old", "10.1.9.1")
	must(t, w.mesh.Remove(w.cluster("paris")))
	p.until("paris is gone", `!document.querySelector(".tiles").textContent.includes("paris")`)
	if code := w.agent.Stop(); code != 0 {
		t.Errorf("the agent ended with %d", code)
	}
	p.untilText(".banner", "Not live.")
	w.start()
	p.until("it goes on", `!document.querySelector(".banner")`)
	p.untilText(".summary", "2 clusters are healthy")
}
