package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"

	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// busiest is the intended maximum share of a core for the main thread of a tab under busyChanges a second. busyBound is
// the maximum on a machine with other work: caches are shared, and also the clock of the processor.
const (
	busyChanges = 500
	busiest     = 0.10
	busyBound   = 0.30
)

// TestCPU: a visible tab takes little processor time while much changes, in the views that show the changes, with few
// clusters that change a lot, and with many that change a little.
func TestCPU(t *testing.T) {
	t.Run("3 clusters", func(t *testing.T) { busy(t, three()) })
	t.Run("100 clusters", func(t *testing.T) {
		var all []contents.Cluster
		for i := range 100 {
			c := contents.Default(fmt.Sprint("cluster", i+1), uint32(i+1))
			c.Mode = contents.Cached
			c.Nodes, c.Services, c.Identities, c.Addresses = 4, 20, 20, 50
			all = append(all, c)
		}
		busy(t, all)
	})
}

func busy(t *testing.T, all []contents.Cluster) {
	w := newWorld(t, all...)
	p := w.open()
	for _, c := range all {
		must(t, w.cluster(c.Name).SetChurn(busyChanges/float64(len(all))))
	}
	_, err := chromedp.Call(p.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	must(t, err)
	one := all[1].Name
	for _, v := range [][2]string{{"#/", "Mesh"}, {"#/clusters/" + one, "Cluster " + one}, {"#/services", "Services"}, {"#/events", "Events"}} {
		p.visit(v[0], v[1])
		p.untilText(".live", "live")
		opened := p.clock() + 2000 // the measurement excludes the opening
		p.until("two seconds", "performance.now() > "+number(opened))
		begun, before := p.clock(), p.worked()
		p.until("six seconds", "performance.now() > "+number(begun+6000))
		seconds, after := (p.clock()-begun)/1000, p.worked()
		share := func(what string) float64 { return (after[what] - before[what]) / seconds }
		t.Logf("%-20s %5.1f %% of a core under %d changes a second (meant: %.0f %%), of it scripts %.1f, style %.1f, layout %.1f; the tab's process with all its threads %.1f, drawing without a graphics card %.1f",
			v[0], 100*share("TaskDuration"), busyChanges, 100*busiest, 100*share("ScriptDuration"), 100*share("RecalcStyleDuration"), 100*share("LayoutDuration"), 100*share("renderer"), 100*share("GPU"))
		if share("TaskDuration") > busyBound {
			t.Errorf("%s takes %.0f %% of a core", v[0], 100*share("TaskDuration"))
		}
	}
}

func (p *page) clock() float64 { return eval[float64](p, "performance.now()") }

// worked returns how many seconds the page's thread has worked, by the processor's clock, by kind of work.
func (p *page) worked() map[string]float64 {
	p.t.Helper()
	got, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
	must(p.t, err)
	all := map[string]float64{}
	for _, m := range got.Metrics {
		all[m.Name] = m.Value
	}
	if _, there := all["TaskDuration"]; !there {
		p.t.Fatal("the browser does not say how long the page has worked")
	}
	processes, err := chromedp.CallBrowser(p.ctx, systeminfo.GetProcessInfo, cdp.Empty{})
	must(p.t, err)
	for _, one := range processes.ProcessInfo {
		all[one.Type] += one.CPUTime
	}
	return all
}
