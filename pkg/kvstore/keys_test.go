package kvstore

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestNamesOfKeys compares the results with those of Cilium's functions with the same names.
func TestNamesOfKeys(t *testing.T) {
	t.Parallel()
	for file, f := range map[string]func(string) string{
		"state_to_cache_prefix.json": StateToCachePrefix, "metric_scope_from_key.json": GetScopeFromKey,
	} {
		b, err := os.ReadFile("../wire/testdata/golden/" + file)
		waittest.Must(t, err)
		var cases []struct{ Input, Output string }
		waittest.Must(t, json.Unmarshal(b, &cases))
		if len(cases) == 0 {
			t.Errorf("%s has no cases", file)
		}
		for _, c := range cases {
			if got := f(c.Input); got != c.Output {
				t.Errorf("%s: %q gives %q, want %q", file, c.Input, got, c.Output)
			}
		}
	}
	for _, r := range wire.Resources() {
		if got := StateToCachePrefix(r.StorePrefix(false)); got != r.StorePrefix(true) {
			t.Errorf("%s: %q, want %q", r, got, r.StorePrefix(true))
		}
	}
	for _, key := range []string{StatePrefix, CachePrefix, ClusterConfigPrefix, SyncedPrefix, HeartbeatPath, InitLockPath} {
		if !strings.HasPrefix(key, BaseKeyPrefix+"/") {
			t.Errorf("%s is not below %s", key, BaseKeyPrefix)
		}
	}
}
