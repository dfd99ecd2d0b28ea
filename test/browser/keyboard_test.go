package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestKeyboardAlone: everything can be reached without a mouse, and the focus is visible.
func TestKeyboardAlone(t *testing.T) {
	w := newWorld(t, three()...)
	p := w.open()
	p.visit("#/", "Mesh")
	p.untilText(".summary", "3 clusters are healthy")
	p.untilText(".picture", "share services; the most")

	p.press(kb.Tab)
	p.until("the way past the navigation is first", `document.activeElement.className === "skip"`)
	p.press(kb.Enter)
	p.until("the heading has the focus", `document.activeElement === document.querySelector("main h1")`)
	p.press(kb.Tab)
	p.until("a cluster is next", `document.activeElement.closest("main a") !== null`)

	// Once through all stops of the Tab key: the focus is visible at each, and each element that can be pressed is a
	// stop.
	eval[bool](p, `document.querySelector(".home").focus(), globalThis.stops = new Set(), true`)
	wanted := eval[int](p, `[...document.querySelectorAll("header a, header button, main a, main button, main input, main select, main summary, main [tabindex='0']")].filter((e) => e.matches("summary") || !e.closest("details:not([open])")).length`)
	for range wanted + 1 { // the document itself is between the last stop and the first
		seen := eval[bool](p, `(() => { const e = document.activeElement; if (e === document.body) return true; stops.add(e); return e.matches(".skip") || (e.matches(":focus-visible") && getComputedStyle(e).outlineStyle !== "none"); })()`)
		if !seen {
			t.Errorf("the focus cannot be seen on %s", eval[string](p, `document.activeElement.outerHTML.slice(0, 200)`))
		}
		p.press(kb.Tab)
	}
	if reached := eval[int](p, `stops.size`); reached < wanted {
		t.Errorf("%d of %d are reached", reached, wanted)
	}

	// Sort by the heading of a column.
	eval[bool](p, `[...document.querySelectorAll("th button")].find((b) => b.textContent === "Nodes").focus(), true`)
	p.press(kb.Enter)
	p.until("it is sorted", `document.querySelector("th[aria-sort=ascending]")?.textContent.includes("Nodes") && location.hash.includes("sort=nodes")`)

	// The search can be opened from everywhere.
	p.press("/")
	p.until("the search has the focus", `document.activeElement.matches("dialog input")`)
	eval[bool](p, `document.activeElement.select(), true`) // as in search
	p.press("tokyo")
	p.untilText(".hits", "Cluster")
	p.press(kb.ArrowDown)
	p.until("what was found has it", `document.activeElement.matches(".hits a")`)
	p.press(kb.ArrowUp)
	p.until("and the field again", `document.activeElement.matches("dialog input")`)
	p.press(kb.Escape)
	p.until("it is closed", `!document.querySelector("dialog").open`)
	p.press("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	p.until("it is open", `document.querySelector("dialog").open`)
	p.press(kb.ArrowDown)
	p.press(kb.Enter)
	p.until("the cluster's view has the focus on its heading", `document.activeElement.textContent === "Cluster tokyo" && document.activeElement.matches("h1")`)
	if title := eval[string](p, `document.title`); title != "Cluster tokyo - mesh-agent" {
		t.Errorf("the title is %q", title)
	}

	// Shortcuts of a single character can be turned off.
	p.visit("#/agent", "Agent")
	eval[bool](p, `document.querySelector("main input[type=checkbox]").focus(), true`)
	p.press(" ")
	eval[bool](p, `document.querySelector("main h1").focus(), true`)
	p.press("/")
	p.until("nothing happens", `!document.querySelector("dialog").open && localStorage.getItem("mesh-agent-shortcuts") === "off"`)
	p.press("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))
	p.until("the other key does", `document.querySelector("dialog").open`)
}
