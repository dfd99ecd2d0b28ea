package services

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func ptr[T any](v T) *T { return &v }

// conditions returns an endpoint's conditions from words: "ready" or "not ready", and so on. A condition without a word
// is unset.
func conditions(words ...string) (c wire.EndpointConditions) {
	for _, w := range words {
		word, no := strings.CutPrefix(w, "not ")
		switch word {
		case "ready":
			c.Ready = ptr(!no)
		case "serving":
			c.Serving = ptr(!no)
		case "terminating":
			c.Terminating = ptr(!no)
		}
	}
	return c
}

func TestConditions(t *testing.T) {
	t.Parallel()
	type state struct{ Ready, Serving, Terminating, Usable, Active bool }
	tests := map[string]struct {
		in   []string
		want state
	}{
		"unset is ready":                         {nil, state{true, true, false, true, true}},
		"unset serving is as ready":              {[]string{"ready"}, state{true, true, false, true, true}},
		"unset serving is as not ready":          {[]string{"not ready"}, state{}},
		"serving while it terminates":            {[]string{"not ready", "serving", "terminating"}, state{false, true, true, true, false}},
		"terminating and no longer serving":      {[]string{"not ready", "not serving", "terminating"}, state{false, false, true, false, false}},
		"ready although it is not said to serve": {[]string{"ready", "not serving", "not terminating"}, state{true, false, false, true, true}},
	}
	for name, tc := range tests {
		c := conditionsFromWire(conditions(tc.in...))
		if diff := cmp.Diff(tc.want, state{c.Ready(), c.Serving(), c.Terminating(), c.Usable(), c.Active()}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// goldenSlices returns the decoded vectors, by name.
func goldenSlices(t *testing.T) map[string]*Slice {
	t.Helper()
	var vectors []struct {
		Key   string
		Value string `json:"value_base64"`
	}
	readGolden(t, "endpointslices.json", &vectors)
	out := make(map[string]*Slice)
	for _, v := range vectors {
		key := strings.TrimPrefix(v.Key, "cilium/state/endpointslices/v1/")
		cluster, name, _ := strings.Cut(key, "/")
		id := uint32(2)
		if strings.HasPrefix(cluster, "ccc") {
			id = 255
		}
		value, err := base64.StdEncoding.DecodeString(v.Value)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		w, err := wire.DecodeEndpointSlice(name, value, wire.Expect{Cluster: cluster, ClusterID: id, LocalID: 1})
		if r, refused := errors.AsType[*wire.RejectError](err); refused && r.Reason == wire.ReasonName {
			continue // it has a label that Kubernetes does not allow
		}
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		out[name] = SliceFromWire(w, wire.SourceClusterMesh)
	}
	return out
}

func TestGoldenSlicesAreConverted(t *testing.T) {
	t.Parallel()
	got := goldenSlices(t)
	want := map[string][]Backend{
		"default/web-abcde": {{IP: ip("10.2.0.11"), Ports: []Port{{"http", "TCP", 8080}}, Node: "node1", Zone: "eu-a"}},
		"default/web-v6": {
			{IP: ip("fd02::11"), Ports: []Port{{"", "UDP", 53}}},
			{IP: ip("fd02::12"), Ports: []Port{{"", "UDP", 53}}},
		},
		"default/empty":   nil,
		"default/hints":   {{IP: ip("10.2.0.12"), Zone: "eu-a", Hostname: "db-0"}},
		"default/nilport": nil,
		"default/topo":    {{IP: ip("10.2.0.13"), Conditions: NotReady | IsTerminating}},
	}
	for name, backends := range want {
		s, ok := got[name]
		if !ok {
			t.Errorf("no vector %s", name)
			continue
		}
		if diff := cmp.Diff(backends, slices.Collect(s.Endpoints()), netipTypes, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	web := got["default/web-abcde"]
	if web.Key() != "cluster2/default/web-abcde" || web.Service != "web" || web.ClusterID != 2 || web.NumEndpoints() != 1 || web.labels != (identities.Labels{}) {
		t.Errorf("the slice became %+v", web)
	}
	if got["default/empty"].Service != "" {
		t.Error("a slice without the label belongs to a service")
	}
	for name, s := range got { // also the vectors that are not listed above
		if !s.Equal(s) || !strings.HasSuffix(s.Key(), name) {
			t.Errorf("%s became %+v", name, s)
		}
	}
}

func TestSliceFromWire(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		in   wire.EndpointSlice
		want []Backend
	}{
		"addresses are sorted, with what their endpoint says": {
			wire.EndpointSlice{Endpoints: []wire.Endpoint{
				{Addresses: []string{"10.0.0.10", "10.0.0.9"}, NodeName: ptr("n1"), Conditions: conditions("not ready")},
				{Addresses: []string{"10.0.0.1"}, Hostname: ptr("db-0"), Zone: ptr("a")},
			}},
			[]Backend{
				{IP: ip("10.0.0.1"), Hostname: "db-0", Zone: "a"},
				{IP: ip("10.0.0.9"), Node: "n1", Conditions: NotReady | NotServing},
				{IP: ip("10.0.0.10"), Node: "n1", Conditions: NotReady | NotServing},
			},
		},
		"an address that was another pod's before": {
			wire.EndpointSlice{Endpoints: []wire.Endpoint{
				{Addresses: []string{"10.0.0.1"}, NodeName: ptr("old"), Zone: ptr("z"), Conditions: conditions("not ready", "terminating")},
				{Addresses: []string{"10.0.0.1"}, NodeName: ptr("new")},
			}},
			[]Backend{{IP: ip("10.0.0.1"), Node: "new"}},
		},
		"an address that is listed twice": {
			wire.EndpointSlice{Endpoints: []wire.Endpoint{
				{Addresses: []string{"fd00::1"}, Conditions: conditions("not ready", "serving", "terminating")},
				{Addresses: []string{"fd00:0::1"}, NodeName: ptr("n1")},
			}},
			[]Backend{{IP: ip("fd00::1"), Node: "n1"}},
		},
		"a mapped address is an IPv4 address": {
			wire.EndpointSlice{Endpoints: []wire.Endpoint{{Addresses: []string{"::ffff:10.0.0.1"}}}},
			[]Backend{{IP: ip("10.0.0.1")}},
		},
		"ports that lack what a backend needs are left out": {
			wire.EndpointSlice{
				Endpoints: []wire.Endpoint{{Addresses: []string{"10.0.0.1"}}},
				Ports: []wire.EndpointPort{
					{},
					{Port: ptr[int32](0)},
					{Port: ptr[int32](-1)},
					{Port: ptr[int32](65536)},
					{Port: ptr[int32](1), Protocol: ptr("ANY")},
					{Port: ptr[int32](1), Protocol: ptr("")},
					{Port: ptr[int32](443), Name: ptr("https")},
					{Port: ptr[int32](443)},
					{Port: ptr[int32](443), Name: ptr("https"), Protocol: ptr("TCP")},
					{Port: ptr[int32](443), Name: ptr("quic"), Protocol: ptr("UDP")},
				},
			},
			[]Backend{{IP: ip("10.0.0.1"), Ports: []Port{{"", "TCP", 443}, {"https", "TCP", 443}, {"quic", "UDP", 443}}}},
		},
		"what is no address is left out": {
			wire.EndpointSlice{Endpoints: []wire.Endpoint{{Addresses: []string{"x"}}}},
			nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := SliceFromWire(&tc.in, wire.SourceClusterMesh)
			if diff := cmp.Diff(tc.want, slices.Collect(s.Endpoints()), netipTypes, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			for first := range s.Endpoints() { // the iteration may be stopped early
				if first.IP != tc.want[0].IP {
					t.Errorf("the first is %s", first.IP)
				}
				break
			}
		})
	}
}

// wireSlice returns a slice with a value in every field.
func wireSlice() *wire.EndpointSlice {
	return &wire.EndpointSlice{
		Cluster: "c2", ClusterID: 2, Namespace: "ns", Name: "svc-1", AddressType: wire.AddressTypeIPv4,
		Labels: map[string]string{
			wire.LabelServiceName: "svc", wire.LabelHeadless: "", "endpointslice.kubernetes.io/managed-by": "x",
			"app": "web", "none": "",
		},
		Endpoints: []wire.Endpoint{{Addresses: []string{"10.0.0.1"}, Hostname: ptr("h"), NodeName: ptr("n"), Zone: ptr("z")}},
		Ports:     []wire.EndpointPort{{Name: ptr("http"), Port: ptr[int32](80)}},
	}
}

// TestSliceEqual: a change of any field makes two slices unequal, except the fields that we do not keep.
func TestSliceEqual(t *testing.T) {
	t.Parallel()
	base := SliceFromWire(wireSlice(), wire.SourceClusterMesh)
	if !base.Equal(SliceFromWire(wireSlice(), wire.SourceClusterMesh)) {
		t.Error("two equal slices differ")
	}
	if base.Equal(SliceFromWire(wireSlice(), wire.SourceKVStore)) {
		t.Error("a change of the source was not noticed")
	}
	changes := map[string]func(*wire.EndpointSlice){
		"cluster":    func(s *wire.EndpointSlice) { s.Cluster = "x" },
		"cluster ID": func(s *wire.EndpointSlice) { s.ClusterID++ },
		"namespace":  func(s *wire.EndpointSlice) { s.Namespace = "x" },
		"name":       func(s *wire.EndpointSlice) { s.Name = "x" },
		"service":    func(s *wire.EndpointSlice) { s.Labels[wire.LabelServiceName] = "x" },
		"label":      func(s *wire.EndpointSlice) { s.Labels["app"] = "x" },
		"port":       func(s *wire.EndpointSlice) { s.Ports[0].Port = ptr[int32](81) },
		"address":    func(s *wire.EndpointSlice) { s.Endpoints[0].Addresses[0] = "10.0.0.2" },
		"hostname":   func(s *wire.EndpointSlice) { s.Endpoints[0].Hostname = nil },
		"node":       func(s *wire.EndpointSlice) { s.Endpoints[0].NodeName = ptr("x") },
		"zone":       func(s *wire.EndpointSlice) { s.Endpoints[0].Zone = nil },
		"conditions": func(s *wire.EndpointSlice) { s.Endpoints[0].Conditions = conditions("terminating") },
	}
	for name, change := range changes {
		w := wireSlice()
		change(w)
		if s := SliceFromWire(w, wire.SourceClusterMesh); s.Equal(base) || base.Equal(s) {
			t.Errorf("a change of the %s was not noticed", name)
		}
	}
	w := wireSlice()
	w.Annotations = map[string]string{"x": "y"}
	w.Labels["endpointslice.kubernetes.io/managed-by"] = "y"
	w.Endpoints[0].Hints = &wire.EndpointHints{ForZones: []wire.ForZone{{Name: "z"}}}
	w.Endpoints[0].Conditions = conditions("ready", "serving", "not terminating")
	if !SliceFromWire(w, wire.SourceClusterMesh).Equal(base) {
		t.Error("what is not kept made a difference")
	}
}
