package browser

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var pictures = flag.Bool("pictures", false, "write the pictures of docs/ui.md")

func TestMain(m *testing.M) { agenttest.Main(m) }

var must = agenttest.Must

const axeFile = "../../ui/node_modules/axe-core/axe.min.js"

// chromium returns the path of the browser, or skips the test.
func chromium(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(axeFile); err != nil {
		programtest.Missing(t, "there is no "+axeFile+": as root, run make browser, which installs it")
	}
	return programtest.Find(t, "browser", "chromium-headless-shell", "chromium", "google-chrome")
}

// page is a tab of a browser of its own.
type page struct {
	t    *testing.T
	ctx  context.Context
	base string // the address of the page, without a fragment
	end  func() // closes it
}

// openPage starts a browser, until the end of the test. Each error that the page reports fails the test. A browser that
// does not start is not the page's fault: another is started, and the log has the reason.
func openPage(t *testing.T, base string, more ...chromedp.ExecAllocatorOption) *page {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(chromium(t)), chromedp.Headless, chromedp.NoSandbox, chromedp.WindowSize(1280, 900)}
	for attempt := 1; ; attempt++ {
		ctx, cancelAllocator := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
		ctx, cancel := chromedp.NewContext(ctx)
		p := &page{t: t, ctx: ctx, base: base, end: cancel}
		err := p.listen()
		if err == nil {
			t.Cleanup(func() { cancel(); cancelAllocator() })
			return p
		}
		cancel()
		cancelAllocator()
		t.Logf("the browser does not start (attempt %d): %v", attempt, err)
		if attempt == 3 {
			t.FailNow()
		}
	}
}

// listen opens the tab, and notes its complaints.
func (p *page) listen() error {
	if err := chromedp.Do(p.ctx); err != nil {
		return err
	}
	if err := chromedp.Listen(p.ctx, p.complain); err != nil {
		return err
	}
	_, err := chromedp.Call(p.ctx, log.Enable, cdp.Empty{})
	return err
}

// complain notes errors of the page's scripts and breaches of its content security policy. Requests that fail while an
// agent is unreachable are no errors of the page.
func (p *page) complain(ev any) {
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		p.t.Errorf("the page threw: %s", e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if e.Entry.Source == log.EntrySourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") || strings.Contains(e.Entry.Text, "TrustedHTML") {
			p.t.Errorf("the page broke its policy: %s", e.Entry.Text)
		}
	}
}

// visit shows a view, by its fragment, and waits for its heading.
func (p *page) visit(fragment, heading string) {
	p.t.Helper()
	must(p.t, chromedp.Do(p.ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(p.base+fragment)))
	p.until("the heading "+heading, fmt.Sprintf(`document.querySelector("main h1")?.textContent === %s`, quoted(heading)))
}

// eval evaluates an expression in the page.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits for an expression to be true in the page.
func (p *page) until(what, expression string) {
	p.t.Helper()
	waittest.Until(p.t, what, func() bool {
		v, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](expression))
		return err == nil && v
	}, func() string {
		text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`location.href + " " + document.readyState + "\n" + document.body.innerText`))
		return fmt.Sprintf("%v\n%.4000s", err, text)
	})
}

// untilText waits until an element's text contains a part.
func (p *page) untilText(selector, part string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%q in %s", part, selector), fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.textContent.includes(%s))`, quoted(selector), quoted(part)))
}

// press presses keys, as a person without a mouse does.
func (p *page) press(keys string, options ...chromedp.KeyOption) {
	p.t.Helper()
	must(p.t, chromedp.Do(p.ctx, chromedp.KeyEvent(keys, options...)))
}

// search opens the search and types. The page suppresses the text of the real key, but not of one that the protocol
// sends.
func (p *page) search(text string) {
	p.t.Helper()
	p.press("/")
	p.until("the search", `document.querySelector("dialog").open`)
	eval[bool](p, `document.querySelector("dialog input").select(), true`)
	p.press(text)
	p.until("what was typed", `document.querySelector("dialog input").value === `+quoted(text))
}

// dark chooses the colour scheme.
func (p *page) dark(dark bool) {
	p.t.Helper()
	scheme := map[bool]string{false: "light", true: "dark"}[dark]
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	must(p.t, err)
}

// violation is a rule of axe-core that the page breaks.
type violation struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// audit fails the test when the page breaks a rule of WCAG 2.2 AA that axe-core knows, or one of its best practices.
func (p *page) audit(what string) {
	p.t.Helper()
	if !eval[bool](p, `typeof axe === "object"`) {
		axe, err := os.ReadFile(axeFile)
		must(p.t, err)
		eval[bool](p, string(axe)+";true")
	}
	found := eval[[]violation](p, `axe.run(document, {resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then((r) =>
		r.violations.map((v) => ({ID: v.id, Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => ({HTML: n.html.slice(0, 300), FailureSummary: n.failureSummary}))})))`)
	for _, v := range found {
		text, _ := json.MarshalIndent(v.Nodes, "", " ")
		p.t.Errorf("%s: %s: %s\n%s", what, v.ID, v.Help, text)
	}
}

// picture writes a screenshot to docs/ui if the flag -pictures is set.
func (p *page) picture(name string) {
	p.t.Helper()
	if !*pictures {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	must(p.t, err)
	must(p.t, os.MkdirAll("../../docs/ui", 0o755))
	must(p.t, os.WriteFile(filepath.Join("../../docs/ui", name+".png"), png, 0o644))
}

func quoted(text string) string {
	q, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can be encoded
	}
	return string(q)
}

func lower(text string) string { return strings.ToLower(text) }

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
