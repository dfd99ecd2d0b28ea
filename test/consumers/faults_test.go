package consumers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/internal/serve/discovery"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// sampler asks repeatedly for existing backends, until the end of the test.
type sampler struct {
	w     *world
	of    string
	asked atomic.Int64 // right answers
	no    atomic.Int64 // refusals, and no answer at all
}

// sample asks, and fails the test when an answer is wrong. A permitted failure without an answer is a refusal.
func (w *world) sample(of string, ask func() (refused bool, wrong error)) *sampler {
	w.t.Helper()
	s := &sampler{w: w, of: of}
	ctx, done := w.t.Context(), make(chan struct{})
	go func() {
		defer close(done)
		for waiting.Sleep(ctx, 2*time.Millisecond) == nil {
			refused, wrong := ask()
			switch {
			case ctx.Err() != nil:
			case wrong != nil:
				w.t.Errorf("%s: %v", of, wrong)
				return
			case refused:
				s.no.Add(1)
			default:
				s.asked.Add(1)
			}
		}
	}()
	w.t.Cleanup(func() { <-done })
	return s
}

// answers waits for more answers, and refuses for more refusals.
func (s *sampler) answers(what string) { s.more(&s.asked, "answers of "+s.of+" "+what) }
func (s *sampler) refuses(what string) { s.more(&s.no, "refusals of "+s.of+" "+what) }

func (s *sampler) more(of *atomic.Int64, what string) {
	s.w.t.Helper()
	const some = 20
	until := of.Load() + some
	waittest.Until(s.w.t, what, func() bool { return of.Load() >= until })
}

// question sends a DNS question. A failure of the server is a refusal; an answer without records is wrong.
func (w *world) question(name string, kind uint16) func() (bool, error) {
	q := new(dns.Msg)
	q.SetQuestion(name+".", kind)
	q.SetEdns0(1232, false)
	return func() (refused bool, wrong error) {
		m, _, err := new(dns.Client).Exchange(q.Copy(), w.dns)
		if err != nil || m.Rcode == dns.RcodeServerFailure {
			return true, nil
		}
		if m.Rcode != dns.RcodeSuccess || len(m.Answer) == 0 {
			return false, fmt.Errorf("%s", m)
		}
		return false, nil
	}
}

// discovery requests the targets of Prometheus. An empty list is wrong.
func (w *world) discovery(path string) func() (bool, error) {
	return func() (refused bool, wrong error) {
		resp, err := http.Get("http://" + w.api + "/v1/discovery/prometheus/" + path)
		if err != nil {
			return true, nil
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable {
			return true, nil
		}
		var all []discovery.Group
		if err := json.NewDecoder(resp.Body).Decode(&all); err != nil { // it was cut off when the agent was killed
			return true, nil
		}
		if resp.StatusCode != http.StatusOK || len(all) == 0 {
			return false, fmt.Errorf("%s: %v", resp.Status, all)
		}
		return false, nil
	}
}

// TestFaults: with killed agents and unreachable clusters, no answer reports that an existing service does not exist.
// That also holds after the sync timeout, when an agent is ready although it could read nothing.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--clustermesh-sync-timeout", "1s")
	for i, name := range names() {
		w.publish(name, "cart", address(i+1, 0, 1))
		w.node(name, "n1", address(i+1, 1, 1))
	}
	w.start()
	dir := t.TempDir()
	file, template := filepath.Join(dir, "backends"), programtest.Write(t, dir, "template", "{{range (backends \"shop/cart\").Now}}{{.IP}}\n{{end}}{{range nodes}}{{.Name}}.{{.Cluster}}\n{{end}}")
	programtest.Start(t, agenttest.Program(t, "render", "--server", "http://"+w.api, "-t", template+"="+file), syscall.SIGTERM)
	waittest.Try(t, "the rendered file", func() error { _, err := os.Stat(file); return err })
	rendered := w.sample("the rendered file", func() (bool, error) {
		text, err := os.ReadFile(file)
		if err == nil && (!strings.Contains(string(text), "127.") || !strings.Contains(string(text), "n1.")) {
			err = fmt.Errorf("it has %q", text)
		}
		return false, err
	})
	asking := []*sampler{
		w.sample("A", w.question(cartName, dns.TypeA)),
		w.sample("SRV", w.question("_http._tcp."+cartName, dns.TypeSRV)),
		w.sample("endpoints", w.discovery("endpoints?namespace=shop")),
		w.sample("services", w.discovery("services")),
		w.sample("nodes", w.discovery("nodes?port=9100")),
	}
	all := func(ask func(*sampler, string), what string) {
		t.Helper()
		for _, s := range asking {
			ask(s, what)
		}
		rendered.answers(what)
	}
	all((*sampler).answers, "in the beginning")
	w.kill()
	all((*sampler).refuses, "without an agent")
	w.start()
	all((*sampler).answers, "of an agent that was started again")
	w.killClusters()
	all((*sampler).answers, "when all clusters are away")
	w.kill()
	w.startUnready()
	w.until("the end of the sync timeout", func() bool { return w.agent.Status().Ready })
	all((*sampler).refuses, "after the sync timeout, while nothing is known")
	w.startClusters()
	all((*sampler).answers, "in the end")
	waittest.Until(t, "all backends and nodes in the file", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Count(string(text), "\n") == 6
	})
}
