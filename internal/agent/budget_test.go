package agent

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/base/version"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

// TestBudgetsOfUnknownClustersAreLogged: there is one line for the unknown cluster, and none for others.
func TestBudgetsOfUnknownClustersAreLogged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "east"), []byte("endpoints: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := budget.Parse(map[string]string{"east.ips.keys": "20", "esat.ips.keys": "20", "nodes.keys": "5"})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	warnOfBudgets(b, dir, slog.New(slog.NewTextHandler(&log, nil)))
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "cluster=esat") {
		t.Errorf("logged: %s", got)
	}
}

func TestTheBuildIsAMetric(t *testing.T) {
	t.Parallel()
	v := version.Of("v1.2.3")
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(buildInfo(v))
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "mesh_agent_build_info" {
		t.Fatalf("%v, %v", families, err)
	}
	labels := map[string]string{}
	for _, l := range families[0].GetMetric()[0].GetLabel() {
		labels[l.GetName()] = l.GetValue()
	}
	if len(labels) != 2 || labels["version"] != v.Version || labels["goversion"] != runtime.Version() || families[0].GetMetric()[0].GetGauge().GetValue() != 1 {
		t.Errorf("labels %v", labels)
	}
}
