package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
)

// view is one view of the page, with the texts that it must show.
type view struct {
	name, fragment, heading string
	texts                   []string
}

// allViews are every view of the page, in a world with a conflict about an address.
func allViews(w *world, contested string) []view {
	service := agenttest.List[api.Service](w.agent, "services")[0]
	node := agenttest.List[api.Node](w.agent, "nodes")[0]
	full := service.Namespace + "/" + service.Name
	return []view{
		{"mesh", "#/", "Mesh", []string{"london", "paris", "tokyo", "next step", "fresh", "the last hour", "cluster-ready"}},
		{"cluster", "#/clusters/london", "Cluster london", []string{"the last hour", "changes", "age of the data", "events", "service backends", "addresses", "etcd"}},
		{"services", "#/services", "Services", []string{full}},
		{"service", "#/services/" + full, "Service " + full, []string{"receives connections", "zone", "why they are used", service.Backends[0].IP}},
		{"nodes", "#/nodes?cluster=paris", "Nodes", []string{"paris"}},
		{"node", "#/nodes/" + node.Cluster + "/" + node.Name, "Node " + node.Cluster + "/" + node.Name, []string{"pod networks", node.Addresses[0].IP}},
		{"addresses", "#/addresses?cluster=tokyo", "Addresses", []string{"10.3.", "next page"}},
		{"address", "#/addresses/" + contested, "Owner of " + contested, []string{"lost", "won", "claims"}},
		{"identities", "#/identities", "Identities", []string{"k8s:"}},
		{"conflicts", "#/conflicts", "Conflicts", []string{contested, "what to do", "mesh-3"}},
		{"events", "#/events", "Events", []string{"events by minute", "cluster-ready"}},
		{"codes", "#/codes?contains=lost", "Codes", []string{"MESH-1004"}},
		{"code", "#/codes/MESH-1004", "Code MESH-1004", []string{"troubleshoot"}},
		{"servers", "#/servers", "Servers", []string{"DNS", "xDS", "no client is connected"}},
		{"agent", "#/agent", "Agent", []string{"mesh directory", "remote-cluster.london", "keys"}},
		{"nothing", "#/nope", "Not found", []string{"no such view"}},
	}
}

// TestViews: every view has an address that survives a reload, shows its contents, breaks no rule of axe-core in light
// and dark, and fits the width of a phone.
func TestViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t, three()...)
	address := firstPod(w, "tokyo")
	_, _, err := w.mesh.Claim(t.Context(), w.cluster("london"), address)
	must(t, err)
	w.agent.Until("the conflict", func() bool { return len(w.agent.Conflicts()) > 0 })
	p := w.open()
	for _, v := range allViews(w, address.String()) {
		p.dark(false)
		p.visit(v.fragment, v.heading)
		for _, text := range v.texts {
			p.until(text+" in "+v.name, `document.querySelector("main").innerText.toLowerCase().includes(`+quoted(lower(text))+`)`)
		}
		must(t, chromedp.Do(p.ctx, chromedp.Reload()))
		p.until("the heading again", `document.querySelector("main h1")?.textContent === `+quoted(v.heading))
		p.until("the text again", `document.querySelector("main").innerText.toLowerCase().includes(`+quoted(lower(v.texts[0]))+`)`)
		p.audit(v.name + ", light")
		if v.name != "nothing" {
			p.picture(v.name)
		}
		p.dark(true)
		p.audit(v.name + ", dark")
		if v.name == "mesh" || v.name == "service" {
			p.picture(v.name + "-dark")
		}
		must(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(360, 740)))
		p.until("the size of a phone", `innerWidth === 360`)
		// Charts have the new width in the next frame.
		p.until(v.name+" as wide as a phone", `document.scrollingElement.scrollWidth <= 360`)
		if v.name == "mesh" {
			p.until("a card for each cluster, and no table", `document.querySelectorAll(".cards.clusters > li").length === 3 && !document.querySelector("main > .scroll")`)
			p.audit("mesh, phone")
			p.picture("mesh-phone")
		}
		must(t, chromedp.Do(p.ctx, chromedp.EmulateViewport(1280, 900)))
	}
	p.dark(false)
	p.visit("#/", "Mesh")
	p.search("web")
	p.untilText("dialog .hits", "Service")
	p.audit("search, light")
	p.picture("search")
	p.dark(true)
	p.audit("search, dark")
}

// TestNoPolling: while nothing changes, the page sends no requests.
func TestNoPolling(t *testing.T) {
	t.Parallel()
	w := newWorld(t, three()...)
	p := w.open()
	for _, fragment := range []string{"#/", "#/services", "#/clusters/paris", "#/servers"} {
		p.visit(fragment, map[string]string{"#/": "Mesh", "#/services": "Services", "#/clusters/paris": "Cluster paris", "#/servers": "Servers"}[fragment])
		p.untilText(".live", "live")
		eval[bool](p, `globalThis.begun = performance.now() + 3000, true`) // the requests of the opening are sent by then
		p.until("three seconds", `performance.now() > begun`)
		w.forget()
		p.until("six seconds", `performance.now() > begun + 6000`)
		if asked := w.requests(""); len(asked) > 0 {
			t.Errorf("%s asked while nothing happened: %v", fragment, asked)
		}
	}
}

// TestNobodyLooks: a page that is hidden for a minute, which is shorter here, ends its stream, and continues it later
// at the same place.
func TestNobodyLooks(t *testing.T) {
	w := newWorld(t, three()...)
	p := w.open()
	p.visit("#/", "Mesh")
	p.untilText(".summary", "3 clusters are healthy")
	eval[bool](p, `(() => { const real = window.setTimeout; window.setTimeout = (f, ms) => real(f, ms === 60000 ? 100 : ms); return true; })()`)
	look := func(hidden string) {
		eval[bool](p, `Object.defineProperty(document, "hidden", {value: `+hidden+`, configurable: true}), document.dispatchEvent(new Event("visibilitychange")), true`)
	}
	w.forget()
	look("true")
	p.untilText(".live", "not live")
	if asked := w.requests("/v1/watch"); len(asked) > 0 {
		t.Errorf("a hidden page asked for %v", asked)
	}
	look("false")
	p.until("it is live", `!document.querySelector(".banner")`)
	if asked := w.requests("/v1/watch"); len(asked) != 1 || !strings.Contains(asked[0], "&since=") {
		t.Errorf("the stream was not resumed: %v", asked)
	}
}
