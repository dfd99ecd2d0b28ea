package api

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// TestEveryResourceHasAField, of the name in its description.
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
	want := ByResource[string]{"nodes", "services", "endpointslices", "serviceexports", "identities", "ips"}
	if fmt.Sprint(all) != fmt.Sprint(want) || all.Of("gateways") != nil {
		t.Errorf("%v", all)
	}
}
