package budget

import (
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestParse(t *testing.T) {
	t.Parallel()
	b, err := Parse(map[string]string{
		"east.ips.keys": "10", "ips.keys": "100", "ips.bytes": "2Mi", "west.value": "1Ki",
		"events": "50", "list": "90s", "east.events": "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cluster string
		ips     Share
		value   int64
		events  int
	}{
		{"north", Share{100, 2 << 20}, Default().Value, 50},
		{"east", Share{10, 2 << 20}, Default().Value, 0},
		{"west", Share{100, 2 << 20}, 1024, 50},
	} {
		of := b.Of(c.cluster)
		if of.Share(wire.IPs) != c.ips || of.Value != c.value || of.Events != c.events || of.List != 90*time.Second {
			t.Errorf("%s: %+v", c.cluster, of)
		}
		if of.Share(wire.Nodes) != Default().Share(wire.Nodes) {
			t.Errorf("%s: nodes are %+v", c.cluster, of.Share(wire.Nodes))
		}
	}
}

func TestParseNamesEveryMistake(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]string{
		"pods.keys": "1", "ips.keys": "-1", "ips.bytes": "much", "events": "1.5", "list": "10", "size": "1",
		"west.list": "1ns", "south.list": "25h", "south.value": "1", "north.value": "1Gi", "north.events": "10000001",
		"north.ips.keys": "1000000000", "north.ips.bytes": "7", "west.ips.bytes": "2Ti",
		"East.events": "1", "east.pods.keys": "1", "value": "-5Mi", "keys": "5",
	} {
		_, err := Parse(map[string]string{key: value, "nodes.keys": "x"})
		if err == nil || !strings.Contains(err.Error(), key+"=") || !strings.Contains(err.Error(), "nodes.keys=") {
			t.Errorf("%s=%s: %v", key, value, err)
		}
	}
}

func TestDefaultHasAShareOfEveryResource(t *testing.T) {
	t.Parallel()
	for _, r := range wire.Resources() {
		if s := Default().Share(r); s.Keys <= 0 || s.Bytes <= 0 {
			t.Errorf("%s: %+v", r, s)
		}
	}
}
