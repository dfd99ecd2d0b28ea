package agent

import (
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/version"
)

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
