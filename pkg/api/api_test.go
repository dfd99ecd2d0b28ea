package api

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestEveryResourceHasAField: the field has the name in the resource's description.
func TestEveryResourceHasAField(t *testing.T) {
	t.Parallel()
	for _, r := range wire.Resources() {
		var all ByResource[int]
		*all.Of(r) = 7
		text, err := json.Marshal(all)
		var fields map[string]int
		if err == nil {
			err = json.Unmarshal(text, &fields)
		}
		if err != nil || fields[r.Describe().Field] != 7 || len(fields) != len(wire.Resources()) {
			t.Errorf("%s: %s, %v", r, text, err)
		}
	}
	var all ByResource[string]
	for r, text := range all.All() {
		*text = string(r)
	}
	want := ByResource[string]{
		Nodes: "nodes", Services: "services", EndpointSlices: "endpointslices", ServiceExports: "serviceexports", Identities: "identities", IPs: "ips",
	}
	if fmt.Sprint(all) != fmt.Sprint(want) || all.Of("gateways") != nil {
		t.Errorf("%v", all)
	}
}

// TestAnOlderAgentsClustersAreAssessed: an older agent does not send the fields that follow from the others; they are
// filled in.
func TestAnOlderAgentsClustersAreAssessed(t *testing.T) {
	t.Parallel()
	var older, newer Cluster
	if err := json.Unmarshal([]byte(`{"name": "c2", "state": "failed", "code": "MESH-1204"}`), &older); err != nil {
		t.Fatal(err)
	}
	if older.Trouble == nil || older.Trouble.Kind != "failed" || older.Remedy == "" || older.Freshness.Worst.State == "" {
		t.Errorf("%+v", older)
	}
	sent := `{"state": "failed", "trouble": {"kind": "new"}, "freshness": {"worst": {"state": "stale"}}}`
	if err := json.Unmarshal([]byte(sent), &newer); err != nil || newer.Trouble.Kind != "new" || newer.Remedy != "" {
		t.Errorf("%+v, %v", newer, err)
	}
}
