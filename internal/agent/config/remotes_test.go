package config

import (
	"reflect"
	"regexp"
	"testing"
)

// TestHelpHasTheDefaults: the values in the help of a flag with options are its defaults.
func TestHelpHasTheDefaults(t *testing.T) {
	t.Parallel()
	want, err := Default().Typed()
	if err != nil {
		t.Fatal(err)
	}
	f := Default()
	help := NewSettings().flags
	given := func(flag string) map[string]string {
		options := make(map[string]string)
		for _, found := range regexp.MustCompile(`([a-zA-Z.]+)=(\w+)`).FindAllStringSubmatch(help.Lookup(flag).Usage, -1) {
			options[found[1]] = found[2]
		}
		return options
	}
	f.DisconnectPolicy, f.RemoteBudget = given(DisconnectPolicy), given(RemoteBudget)
	got, err := f.Typed()
	if err != nil || len(f.DisconnectPolicy) != 4 || len(f.RemoteBudget) != 5 {
		t.Fatalf("%v of %v and %v", err, f.DisconnectPolicy, f.RemoteBudget)
	}
	if !reflect.DeepEqual(got.DisconnectPolicy, want.DisconnectPolicy) || !reflect.DeepEqual(got.RemoteBudget, want.RemoteBudget) {
		t.Errorf("the defaults are %+v and %+v; the help has %+v and %+v", want.DisconnectPolicy, want.RemoteBudget, got.DisconnectPolicy, got.RemoteBudget)
	}
}

// TestEachMistakeSpoilsItsOwnValue: the other values can be used, as the commands do that need a part.
func TestEachMistakeSpoilsItsOwnValue(t *testing.T) {
	t.Parallel()
	f := Default()
	f.ClusterName, f.ClusterID, f.NodeIP, f.Claims.PodCIDR = "east", 3, "10.0.0.1", "x"
	c, err := f.Typed()
	if err == nil || c.Own.Name != "east" || c.NodeIP.String() != "10.0.0.1" || c.DisconnectPolicy.Of("west").Demote == 0 {
		t.Errorf("%v: %+v", err, c)
	}
}
