package agent

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/internal/base/version"
)

// failing is a collector whose Collect panics.
type failing struct{ prometheus.Collector }

func (failing) Collect(chan<- prometheus.Metric) { panic("an object that nobody expected") }

// TestACollectorFailsAlone: the registry calls collectors in its own goroutines.
func TestACollectorFailsAlone(t *testing.T) {
	t.Parallel()
	_, reg, all, bounds := newRegistry(version.Info{}, nil)
	reg.MustRegister(failing{prometheus.NewGauge(prometheus.GaugeOpts{Name: "one"})})
	if err := reg.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "other"})); err != nil {
		t.Fatal(err)
	}
	families, err := all.Gather()
	if err != nil {
		t.Error(err)
	}
	found := false
	for _, f := range families {
		found = found || f.GetName() == "other"
	}
	if n := testutil.ToFloat64(bounds.WithLabelValues("metrics")); !found || n != 1 {
		t.Errorf("the other metric: %t; %v failures were counted", found, n)
	}
}
