package remotecluster

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestGoldenCanaries checks the recorded canaries: each registered family starts once, regardless of later events.
func TestGoldenCanaries(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/golden/watch_traces.json")
	waittest.Must(t, err)
	var traces []struct {
		Name   string
		Phases []struct {
			Prefix string   `json:"watched_prefix"`
			In     []string `json:"events_in"`
			Calls  []string `json:"observer_calls"`
		}
	}
	waittest.Must(t, json.Unmarshal(data, &traces))
	seen := 0
	for _, tr := range traces {
		if !strings.HasPrefix(tr.Name, "sync canaries") {
			continue
		}
		seen++
		phase := tr.Phases[0]
		c := newCanaries("cluster2", false, slog.New(slog.DiscardHandler))
		if c.dir != phase.Prefix {
			t.Errorf("watching %s, recorded %s", c.dir, phase.Prefix)
		}
		var started []string
		registered := []wire.Resource{wire.IPs, wire.Nodes, wire.Services, wire.Identities}
		for _, event := range phase.In {
			op, rest, _ := strings.Cut(event, " ")
			key, _, _ := strings.Cut(rest, " ")
			ch := store.Change[struct{}]{Name: strings.TrimPrefix(key, phase.Prefix), New: new(struct{})}
			switch op {
			case "listDone":
				continue
			case "delete":
				ch.Old, ch.New = ch.New, nil
			}
			c.apply([]store.Change[struct{}]{ch})
		}
		for _, r := range registered {
			if c.facts().seen[r] {
				started = append(started, "start "+r.StorePrefix(false))
			}
		}
		if diff := cmp.Diff(phase.Calls, started); diff != "" {
			t.Errorf("started (-recorded +got):\n%s", diff)
		}
	}
	if seen != 1 {
		t.Errorf("%d traces of canaries, want 1", seen)
	}
}

func TestCanariesOfAMirror(t *testing.T) {
	t.Parallel()
	c := newCanaries("c2", true, slog.New(slog.DiscardHandler))
	c.apply([]store.Change[struct{}]{
		{Name: "cilium/cache/nodes/v1", New: new(struct{})},
		{Name: "cilium/state/ip/v1", New: new(struct{})}, // a canary of the state, which a mirror does not write
	})
	if !c.facts().seen[wire.Nodes] || c.facts().seen[wire.IPs] {
		t.Errorf("nodes %t, ips %t; want true, false", c.facts().seen[wire.Nodes], c.facts().seen[wire.IPs])
	}
	c.allow(wire.Resources()...)
	if !c.facts().seen[wire.IPs] {
		t.Error("all were allowed, ips does not start")
	}
}
