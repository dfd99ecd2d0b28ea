package disconnect

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParsePolicy(t *testing.T) {
	t.Parallel()
	want := DefaultPolicy()
	want.Demote, want.Restore = time.Minute, time.Second
	east := want.Delays
	east.Withdraw = 0
	north := want.Delays
	north.Silence, north.Demote = 0, 90*time.Second
	want.Clusters = map[string]Delays{"east": east, "north-1": north}
	got, err := ParsePolicy(map[string]string{
		"demote": "1m", "restore": "1s", "east.withdraw": "0", "north-1.silence": "0s", "north-1.demote": "90s",
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got.Of("east") != east || got.Of("west") != want.Delays {
		t.Error("the delays of a cluster are not its own, or not those of all")
	}
	if got, err := ParsePolicy(nil); err != nil || got.Delays != DefaultDelays() {
		t.Errorf("nothing given: %+v, %v", got, err)
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		options map[string]string
		want    []string
	}{
		"an unknown key":               {map[string]string{"demotes": "1m"}, []string{`demotes="1m": want demote, withdraw, silence or restore`}},
		"one of a cluster":             {map[string]string{"east.x": "1m"}, []string{`east.x="1m": want demote`}},
		"no cluster's name":            {map[string]string{"East.demote": "1m"}, []string{`East.demote="1m": "East" is no name of a cluster`}},
		"no duration":                  {map[string]string{"demote": "soon"}, []string{`demote="soon": want a duration with its unit`}},
		"no unit":                      {map[string]string{"demote": "5"}, []string{`demote="5": want a duration`}},
		"a negative one":               {map[string]string{"silence": "-1m"}, []string{`silence="-1m": want a duration`}},
		"no hysteresis":                {map[string]string{"east.restore": "0"}, []string{`east.restore="0": want more than 0`}},
		"withdrawn before demoted":     {map[string]string{"withdraw": "1m"}, []string{`withdraw="1m0s": want at least demote, which is 2m0s`}},
		"that in one cluster":          {map[string]string{"east.demote": "20m"}, []string{`east.withdraw="15m0s": want at least east.demote, which is 20m0s`}},
		"every mistake, not the first": {map[string]string{"a": "1", "b": "2"}, []string{`a="1": `, `b="2": `}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := maps.Clone(tc.options)
			_, err := ParsePolicy(tc.options)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %s", err, want)
				}
			}
			if !maps.Equal(given, tc.options) {
				t.Error("the options were changed")
			}
		})
	}
}
