package remotecluster

import (
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func TestFreshnessOfSeveralResources(t *testing.T) {
	t.Parallel()
	at := func(minute int) time.Time { return time.Date(2026, 3, 1, 12, minute, 0, 0, time.UTC) }
	exported := func(s FreshnessState, asOf time.Time) FamilyStatus {
		return FamilyStatus{Exported: true, Freshness: Freshness{s, asOf}}
	}
	s := Status{Families: map[wire.Resource]FamilyStatus{
		wire.Nodes:          exported(FreshnessSynced, at(5)),
		wire.IPs:            exported(FreshnessStale, at(7)),
		wire.Identities:     exported(FreshnessUnknown, time.Time{}),
		wire.Services:       {Freshness: Freshness{FreshnessSynced, at(1)}},
		wire.EndpointSlices: {Count: 1, Freshness: Freshness{FreshnessStale, at(2)}}, // kept since it was exported
	}}
	for name, c := range map[string]struct {
		of       []wire.Resource
		want     Freshness
		exported bool
	}{
		"one":                                 {[]wire.Resource{wire.Nodes}, Freshness{FreshnessSynced, at(5)}, true},
		"the worse state, the earlier time":   {[]wire.Resource{wire.Nodes, wire.IPs}, Freshness{FreshnessStale, at(5)}, true},
		"in any order":                        {[]wire.Resource{wire.IPs, wire.Nodes}, Freshness{FreshnessStale, at(5)}, true},
		"never is the earliest":               {[]wire.Resource{wire.Nodes, wire.Identities}, Freshness{FreshnessUnknown, time.Time{}}, true},
		"what is not exported does not count": {[]wire.Resource{wire.Services, wire.Nodes}, Freshness{FreshnessSynced, at(5)}, true},
		"unless something of it is kept":      {[]wire.Resource{wire.Nodes, wire.EndpointSlices}, Freshness{FreshnessStale, at(2)}, true},
		"or nothing is exported":              {[]wire.Resource{wire.Services}, Freshness{FreshnessSynced, at(1)}, false},
		"what is not read does not count":     {[]wire.Resource{wire.ServiceExports, wire.Nodes}, Freshness{FreshnessSynced, at(5)}, true},
		"nothing is read":                     {[]wire.Resource{wire.ServiceExports}, Freshness{}, false},
	} {
		if f, exported := s.FreshnessOf(c.of...); f != c.want || exported != c.exported {
			t.Errorf("%s: %+v, %t; want %+v, %t", name, f, exported, c.want, c.exported)
		}
	}
}
