package main

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api/transport"
)

func TestLimitsOfTheAPI(t *testing.T) {
	t.Parallel()
	c := defaultConfig()
	c.ClustermeshConfig = t.TempDir()
	must(t, c.Validate())
	if got := c.Listening.Limits.limits(); got != transport.DefaultLimits() {
		t.Errorf("%+v", got)
	}
	limits := reflect.ValueOf(&c.Listening.Limits).Elem()
	for i, l := range c.Listening.Limits.all() { // in the order of the fields
		field := limits.Field(i)
		field.SetUint(0)
		if tag := limits.Type().Field(i).Tag.Get("mapstructure"); tag != l.name {
			t.Errorf("--%s sets %s", l.name, tag)
		}
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--"+l.name+": 0 would refuse everybody") {
			t.Errorf("--%s=0: %v", l.name, err)
		}
		field.SetUint(uint64(l.value))
	}
}

// TestLimitsOfTheAPIAreKept: the flags reach the server, and what it refuses is counted.
func TestLimitsOfTheAPIAreKept(t *testing.T) {
	t.Parallel()
	a := startAgent(t, t.TempDir(), "--listen-max-watches", "1")
	address := a.listening()
	tcp := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		resp, err := tcp.Get("http://" + address + "/v1/watch?resource=nodes")
		must(t, err)
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
