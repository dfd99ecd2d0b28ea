package browser

import (
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// gross is the factor above the intended time at which a slow action is an error, on a machine with other work.
const gross = 20

// TestScale: 254 clusters with 50,000 addresses. The goals are a first paint within a second, and answers to
// the user's actions within 100 ms; the measured times are printed.
func TestScale(t *testing.T) {
	var all []contents.Cluster
	for i := range 254 {
		c := contents.Default(fmt.Sprint("cluster", i+1), uint32(i+1))
		c.Mode = contents.Cached
		c.Nodes, c.Services, c.Backends, c.Identities, c.Addresses = 4, 20, 3, 20, 197
		all = append(all, c)
	}
	all[253].ID = 255 // 254 is the agent's ID
	w := newWorld(t, all...)
	p := w.open()
	report := func(what string, ms, meant float64) {
		t.Logf("%-60s %6.0f ms (meant: %.0f)", what, ms, meant)
		if ms > gross*meant {
			t.Errorf("%s took %.0f ms", what, ms)
		}
	}
	p.visit("#/", "Mesh")
	p.until("all clusters", `document.querySelectorAll("main caption ~ tbody tr").length === 254 && document.querySelectorAll(".tiles a").length === 254`)
	report("first paint", eval[float64](p, `performance.getEntriesByName("first-contentful-paint")[0].startTime`), 1000)
	report("the longest task while it was opened", p.longest(), 1000)
	p.picture("mesh-254")

	type step struct{ what, do, done string }
	for _, s := range []step{
		{"a key in the filter of 254 clusters", typed("main .filters input", "cluster25"), `document.querySelectorAll("main caption ~ tbody tr").length < 254`},
		{"the filter is empty again", typed("main .filters input", ""), `document.querySelectorAll("main caption ~ tbody tr").length === 254`},
		{"sorted by addresses", `[...document.querySelectorAll("th button")].find((b) => b.textContent === "Addresses").click()`, `document.querySelector("th[aria-sort]") !== null`},
		{"whom one of 254 shares services with", `document.querySelector(".picture select").value = "cluster77", document.querySelector(".picture select").dispatchEvent(new Event("change", {bubbles: true}))`, `document.querySelectorAll(".picture .arc").length > 0 && document.querySelector(".picture").innerText.includes("cluster77 shares 20 services: ")`},
		{"another view: a cluster", `location.hash = "#/clusters/cluster77"`, `document.querySelector("main h1").textContent === "Cluster cluster77"`},
		{"another view: the mesh", `location.hash = "#/"`, `document.querySelectorAll("main caption ~ tbody tr").length === 254`},
		{"the first 100 of 50,000 addresses", `location.hash = "#/addresses"`, `document.querySelectorAll("main tbody tr").length === 100`},
		{"the next 100", `document.querySelector("a[rel=next]").click()`, `location.hash.includes("cursor") && document.querySelectorAll("main tbody tr").length === 100 && document.querySelector("main").textContent.includes("First page")`},
		{"addresses filtered by a part of the pod's name", typed("main .filters input", "10.99.0.1"), `document.querySelectorAll("main tbody tr").length < 100 && document.querySelectorAll("main tbody tr").length > 0`},
		{"services", `location.hash = "#/services"`, `document.querySelector("main h1").textContent === "Services" && document.querySelectorAll("main tbody tr").length > 10`},
		{"the service that all clusters have", `document.querySelector("main tbody a").click()`, `document.querySelectorAll("main tbody tr").length > 100`},
		{"whose address", `location.hash = "#/addresses/10.99.0.4"`, `document.querySelector("main").textContent.includes("Claims")`},
	} {
		answered, done := p.interact(s.do, s.done)
		report(s.what+": the page is ready for more", answered, 100)
		report(s.what+": shown", done, 1000)
	}
}

// typed is a script that puts a text into a field.
func typed(selector, text string) string {
	return fmt.Sprintf(`(() => { const i = document.querySelector(%s); i.value = %s; i.dispatchEvent(new InputEvent("input", {bubbles: true})); })()`, quoted(selector), quoted(text))
}

// interact does an action, and measures until the next frame after it, and until its result is shown.
func (p *page) interact(do, done string) (answered, shown float64) {
	p.t.Helper()
	took := eval[[]float64](p, fmt.Sprintf(`(async () => {
		const begin = performance.now(), frame = () => new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
		%s;
		await frame();
		const answered = performance.now() - begin;
		while (!(%s) && performance.now() - begin < 60000) await frame();
		return [answered, performance.now() - begin];
	})()`, do, done))
	return took[0], took[1]
}

// longest is the duration of the page's longest task, during which it does not react to the user.
func (p *page) longest() float64 {
	p.t.Helper()
	return eval[float64](p, `new Promise((done) => { new PerformanceObserver((l) => done(Math.max(0, ...l.getEntries().map((e) => e.duration)))).observe({type: "longtask", buffered: true}); setTimeout(() => done(0), 500); })`)
}
