package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// window opens another window of the same browser.
func (p *page) window() *page {
	p.t.Helper()
	ctx, cancel := chromedp.NewContext(p.ctx)
	p.t.Cleanup(cancel)
	other := &page{t: p.t, ctx: ctx, base: p.base, end: cancel}
	must(p.t, other.listen())
	return other
}

// untilStreams waits until the agent serves the streams of these resources, and no others.
func (w *world) untilStreams(first ...string) {
	w.t.Helper()
	waittest.Until(w.t, fmt.Sprint("streams of ", first), func() bool {
		var are []string
		for _, one := range w.streams() {
			are = append(are, strings.Split(strings.Split(one, "resource=")[1], "&")[0])
		}
		slices.Sort(are)
		return slices.Equal(are, first)
	}, func() string { return strings.Join(w.streams(), "\n") })
}

// TestWindowsShareStreams: more windows than the browser's limit of connections show changes, by one stream. When a
// window is closed, or frozen by the browser, the others keep the stream; a frozen window continues from its last
// state.
func TestWindowsShareStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, three()...)
	first := w.open()
	all := []*page{first}
	for range 7 {
		all = append(all, first.window())
	}
	shown := func(some []*page, text string) {
		t.Helper()
		for _, p := range some {
			p.untilText(".summary", text)
			p.untilText(".live", "live")
		}
	}
	for _, p := range all {
		p.visit("#/", "Mesh")
	}
	shown(all, "3 clusters are healthy")
	w.untilStreams("clusters")

	w.forget()
	must(t, w.cluster("paris").Kill())
	shown(all, "1 of 3 clusters needs attention")
	second, frozen, rest := all[1], all[2], all[3:]
	second.end() // it was one of those for which the stream was opened
	_, err := chromedp.Call(frozen.ctx, cdppage.SetWebLifecycleState, cdppage.SetWebLifecycleStateParams{State: cdppage.SetWebLifecycleStateStateFrozen})
	must(t, err)
	must(t, w.cluster("paris").Start(t.Context()))
	shown(rest, "3 clusters are healthy")
	if asked := w.requests("/v1/watch"); len(asked) > 0 {
		t.Errorf("a stream was opened again: %v", asked)
	}

	// Lists of the same resource, which windows read at different times, follow one stream.
	w.publish("london", "shop", "fresh", "10.1.9.1")
	for i, p := range rest {
		p.visit("#/services?namespace=shop", "Services")
		p.untilText("main tbody", "shop/fresh")
		w.publish("london", "shop", "fresh", fmt.Sprintf("10.1.9.%d", i+2))
	}
	w.untilStreams("clusters", "services")
	w.publish("london", "shop", "fresh", "10.1.9.1", "10.1.9.2", "10.1.9.3", "10.1.9.4")
	for _, p := range rest {
		p.until("four backends", `document.querySelector("main tbody td.right")?.textContent === "4"`)
	}

	// With more views than connections, a view that waits shows that, and all can read.
	for i, p := range rest {
		p.visit(fmt.Sprintf("#/nodes?contains=%d", i), "Nodes")
	}
	waittest.Until(t, "a window that waits", func() bool {
		return slices.ContainsFunc(rest, func(p *page) bool {
			return eval[bool](p, `document.body.innerText.includes("other windows of this browser")`)
		})
	}, nil)
	for _, p := range rest {
		p.until("its contents", `document.querySelector("main table") !== null`)
	}
	if open := w.streams(); len(open) > 5 {
		t.Errorf("there are %d streams: %v", len(open), open)
	}
	for _, p := range rest {
		p.visit("#/", "Mesh")
	}
	w.untilStreams("clusters")

	must(t, w.cluster("tokyo").Kill())
	shown(append(rest, first), "1 of 3 clusters needs attention")
	thaw := first.clock() + 26_000 // the worker waits for a window for 20 seconds
	first.until("26 seconds", "performance.now() > "+number(thaw))
	if eval[bool](frozen, `document.querySelector(".glance")?.textContent.includes("tokyo") ?? false`) {
		t.Error("the window is not frozen")
	}
	w.forget()
	_, err = chromedp.Call(frozen.ctx, cdppage.SetWebLifecycleState, cdppage.SetWebLifecycleStateParams{State: cdppage.SetWebLifecycleStateStateActive})
	must(t, err)
	shown([]*page{frozen}, "1 of 3 clusters needs attention")
	frozen.untilText(".glance", "tokyo")
	if asked := w.requests("/v1/watch"); len(asked) != 1 || !strings.Contains(asked[0], "&since=") {
		t.Errorf("the window that was frozen did not go on where it was: %v", asked)
	}
	w.untilStreams("clusters")

	// The last window has its own stream, from its last state.
	for _, p := range append(rest, frozen) {
		p.end()
	}
	must(t, w.cluster("tokyo").Start(t.Context()))
	shown([]*page{first}, "3 clusters are healthy")
	w.untilStreams("clusters")
}

// TestWithoutWorker: a browser without shared workers, or whose worker does not answer, shows changes as well.
func TestWithoutWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, three()...)
	for name, script := range map[string]string{
		"no shared workers":       `delete globalThis.SharedWorker`,
		"a worker that is silent": `globalThis.SharedWorker = class { port = { postMessage() {} }; }`,
		"a worker that is barred": `globalThis.SharedWorker = class { port = { postMessage() {} }; constructor() { setTimeout(() => this.onerror?.()); } }`,
	} {
		t.Run(name, func(t *testing.T) {
			p := w.open()
			p.t = t
			_, err := chromedp.Call(p.ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
			must(t, err)
			p.visit("#/", "Mesh")
			p.untilText(".summary", "3 clusters are healthy")
			must(t, w.cluster("paris").Kill())
			p.untilText(".summary", "1 of 3 clusters needs attention")
			must(t, w.cluster("paris").Start(t.Context()))
			p.untilText(".summary", "3 clusters are healthy")
			w.untilStreams("clusters")
			must(t, chromedp.Do(p.ctx, chromedp.Navigate("about:blank")))
			w.untilStreams()
		})
	}
}
