package consumers

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// prometheus is a running Prometheus.
type prometheus struct {
	*programtest.Prometheus
	w *world
}

// prometheus starts one with the configuration of docs/prometheus-discovery.md, except that it reads the lists each
// second.
func (w *world) prometheus() *prometheus {
	w.t.Helper()
	return &prometheus{programtest.StartPrometheus(w.t, w.t.TempDir(), "global: {scrape_interval: 1s}\n"+document(w.t, "prometheus-discovery.md", "scrape_configs:",
		"127.0.0.1:9979", w.api, "port=9100", "port="+strconv.Itoa(int(w.port)), "- url:", "- refresh_interval: 1s\n    url:")), w}
}

// series are the values of an expression, by the values of some labels.
func (p *prometheus) series(expression string, labels ...string) (map[string]float64, error) {
	var answer struct {
		Result []struct {
			Metric map[string]string
			Value  [2]any
		}
	}
	if err := p.Get("query?query="+url.QueryEscape(expression), &answer); err != nil {
		return nil, err
	}
	all := make(map[string]float64)
	for _, r := range answer.Result {
		var name []string
		for _, l := range labels {
			name = append(name, r.Metric[l])
		}
		all[strings.Join(name, " ")], _ = strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
	}
	return all, nil
}

// targets are its scraped targets, with their health, sorted.
func (p *prometheus) targets() (all []string, err error) {
	var answer struct {
		ActiveTargets []struct {
			Labels map[string]string
			Health string
		}
	}
	err = p.Get("targets?state=active", &answer)
	for _, t := range answer.ActiveTargets {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", t.Labels["job"], t.Health, t.Labels["cluster"], t.Labels["service"], strings.TrimSuffix(t.Labels["instance"], fmt.Sprint(":", p.w.port)))))
	}
	slices.Sort(all)
	return all, err
}

// await waits for exactly these targets.
func (p *prometheus) await(what string, want ...string) {
	p.w.t.Helper()
	slices.Sort(want)
	waittest.Try(p.w.t, what, func() error {
		got, err := p.targets()
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%q, want %q", got, want)
		}
		return err
	})
}

// failing waits until requests for both lists have failed several times.
func (p *prometheus) failing(what string) {
	p.w.t.Helper()
	failures := func() float64 {
		var text string
		waittest.Try(p.w.t, "metrics of Prometheus", func() error {
			resp, err := http.Get("http://" + p.Address + "/metrics")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			all, err := io.ReadAll(resp.Body)
			text = string(all)
			return err
		})
		_, after, _ := strings.Cut(text, "\nprometheus_sd_http_failures_total ")
		value, _, _ := strings.Cut(after, "\n")
		n, _ := strconv.ParseFloat(value, 64)
		return n
	}
	before := failures()
	waittest.Until(p.w.t, what, func() bool { return failures() >= before+6 })
}

// TestPrometheus: it scrapes the backends and nodes of all clusters, follows changes, and keeps its targets while the
// agent is down, or has not read everything yet.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "prometheus")
	w := newWorld(t, "--clustermesh-sync-timeout", "1h")
	var want []string
	for i, name := range names() {
		node, backend := address(i+1, 1, 1), address(i+1, 0, 1)
		w.serve(node)
		w.serve(backend)
		w.node(name, "n1", node)
		w.publish(name, "cart", backend)
		want = append(want, "mesh-nodes up   "+node, "mesh-endpoints up "+name+" shop/cart "+backend)
	}
	w.start()
	p := w.prometheus()
	p.await("all targets", want...)
	waittest.Try(t, "the metrics of each", func() error {
		got, err := p.series(`backend_requests{job="mesh-endpoints"} > 0`, "cluster", "service")
		if err == nil && len(got) != 3 {
			err = fmt.Errorf("%v", got)
		}
		return err
	})

	later := address(2, 0, 2)
	w.serve(later)
	w.publish("west", "cart", address(2, 0, 1), later)
	p.await("another backend", append(slices.Clone(want), "mesh-endpoints up west shop/cart "+later)...)
	w.publish("west", "cart", address(2, 0, 1))
	p.await("the backend to be gone", want...)

	w.kill()
	p.failing("an agent that is not there")
	p.await("the targets, without an agent", want...)
	w.killClusters()
	w.startUnready()
	p.failing("an agent that knows nothing")
	p.await("the targets, while the agent knows nothing", want...)
	w.startClusters()
	w.publish("east", "cart", address(1, 0, 1), later)
	p.await("what has changed meanwhile", append(want, "mesh-endpoints up east shop/cart "+later)...)
}
