package agent_test

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
	"github.com/mesh-agent/mesh-agent/internal/agent/config"
	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
)

func TestLimitsOfTheAPI(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.ClustermeshConfig = t.TempDir()
	agenttest.Must(t, c.Validate())
	if got := c.Listening.Limits.OfServer(); got != transport.DefaultLimits() {
		t.Errorf("%+v", got)
	}
	for field, v := range reflect.ValueOf(&c.Listening.Limits).Elem().Fields() {
		name, value := field.Tag.Get("mapstructure"), v.Uint()
		v.SetUint(0)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--"+name+": 0 would refuse everybody") {
			t.Errorf("--%s=0: %v", name, err)
		}
		v.SetUint(value)
	}
}

// TestLimitsOfTheAPIAreKept: the flags reach the server, and what it refuses is counted.
func TestLimitsOfTheAPIAreKept(t *testing.T) {
	t.Parallel()
	a := agenttest.StartAgent(t, t.TempDir(), "--listen-max-watches", "1")
	address := a.Listening()
	tcp := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		resp, err := tcp.Get("http://" + address + "/v1/watch?resource=nodes")
		agenttest.Must(t, err)
		defer resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("%s, want %d", resp.Status, want)
		}
	}
	got := series(t, a, "mesh_agent_api_refused_total")
	if got[`mesh_agent_api_refused_total{limit="watches"}`] != "1" || len(got) != 2*reflect.TypeFor[transport.Limits]().NumField() {
		t.Errorf("%v", got)
	}
}
