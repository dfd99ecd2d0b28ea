package servers

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
)

// TestKeys: an attacker writes texts of every kind into every field of every resource. Each output of the agent is
// valid for its reader, and the texts stay texts.
func TestKeys(t *testing.T) {
	w := newWorld(t, "--log-format", "text", "--log-level", "debug")
	w.befriend("Envoy delta", w.takesAll)
	w.now.Store(int32(attacked))
	keys, err := writeHostile(w.evil)
	must(t, err)
	w.read(time.Now())
	t.Logf("%d hostile keys, of which %d are refused", keys, w.refused())
	t.Run("API", func(t *testing.T) { w.judgeAPI(t) })
	t.Run("watch", func(t *testing.T) { w.judgeWatch(t) })
	t.Run("CLI", func(t *testing.T) { w.judgeCommands(t) })
	t.Run("DNS", func(t *testing.T) { w.judgeDNS(t) })
	t.Run("Prometheus", func(t *testing.T) { w.judgePrometheus(t) })
	t.Run("xDS", func(t *testing.T) { w.judgeReconnects(t) })
	t.Run("templates", func(t *testing.T) { w.judgeTemplates(t) })
	w.judge(*ratio)
	t.Run("log", func(t *testing.T) { w.judgeLog(t) })
}

// read waits until the agent has read the attacker's cluster as of a time.
func (w *world) read(at time.Time) {
	w.tb.Helper()
	w.until("the hostile keys to be read", func() error {
		c, err := agentapi.Get[api.Cluster](context.Background(), w.agent.socket, "clusters", "evil")
		if err != nil {
			return err
		}
		if asOf := c.Freshness.Worst.AsOf; asOf == nil || asOf.Before(at) {
			return fmt.Errorf("known as of %v, wanted %v; it is %s: %s", asOf, at, c.State, c.Message)
		}
		return nil
	})
}

// refused is the number of the attacker's keys that the agent refuses.
func (w *world) refused() (n int) {
	w.tb.Helper()
	c, err := agentapi.Get[api.Cluster](w.tb.Context(), w.agent.socket, "clusters", "evil")
	must(w.tb, err)
	for _, number := range c.Rejected.All() {
		n += *number
	}
	return n
}

// takesAll is an Envoy that follows all clusters and their endpoints.
func (w *world) takesAll(ctx context.Context, f *friend) error {
	c, conn, err := w.xdsClient()
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := c.DeltaAggregatedResources(ctx)
	if err == nil {
		err = s.Send(&discovery.DeltaDiscoveryRequest{Node: friendlyNode(), TypeUrl: resource.ClusterType, ResourceNamesSubscribe: []string{"*"}})
	}
	for err == nil {
		var a *discovery.DeltaDiscoveryResponse
		if a, err = s.Recv(); err != nil {
			break
		}
		follow := &discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType}
		for _, r := range a.GetResources() {
			if a.GetTypeUrl() == resource.ClusterType {
				follow.ResourceNamesSubscribe = append(follow.ResourceNamesSubscribe, r.GetName())
			} else if err = w.sawAssignment(f, r.GetResource()); err != nil {
				return err
			}
		}
		err = s.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: a.GetTypeUrl(), ResponseNonce: a.GetNonce()})
		if len(follow.ResourceNamesSubscribe) > 0 && err == nil {
			err = s.Send(follow)
		}
	}
	return err
}

// judgeReconnects: clients that connect after the hostile keys are served like those before.
func (w *world) judgeReconnects(t *testing.T) {
	for name, follow := range map[string]func(context.Context, *friend) error{"incremental": w.followsIncrementally, "state of the world": w.follows, "all": w.takesAll} {
		ctx, cancel := context.WithCancel(t.Context())
		f, ended := &friend{name: name, now: &w.now}, make(chan error, 1)
		go func() { ended <- follow(ctx, f) }()
		w.until(name+" to be served", func() error {
			select {
			case err := <-ended:
				ended <- err
				t.Errorf("%s: %v", name, err)
				return nil
			default:
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.waited[attacked]) < 3 {
				return fmt.Errorf("%d changes seen", len(f.waited[attacked]))
			}
			return nil
		})
		cancel()
		<-ended
	}
}

var logLine = regexp.MustCompile(`^time=\S+ level=\w+ msg=`)

// judgeLog: each line of the log was written by the agent.
func (w *world) judgeLog(t *testing.T) {
	text, err := os.ReadFile(w.agent.logFile)
	must(t, err)
	wrong, lines := 0, 0
	for line := range strings.Lines(string(text)) {
		lines++
		if line = strings.TrimSuffix(line, "\n"); !visible(line) || !logLine.MatchString(line) {
			if wrong++; wrong <= 3 {
				t.Errorf("a line of the log: %.300q", line)
			}
		}
	}
	t.Logf("%d lines, %d of them wrong", lines, wrong)
}
