package services

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// with changes a slice of the usual shape and converts it.
func with(name string, change func(*wire.EndpointSlice)) *Slice {
	w := wireSlice()
	w.Name = name
	change(w)
	return SliceFromWire(w, wire.SourceClusterMesh)
}

func TestPart(t *testing.T) {
	t.Parallel()
	usual := func(*wire.EndpointSlice) {}
	port := []Port{{"http", "TCP", 80}}
	fromEntry := []Port{{"web", "TCP", 8080}}
	entry := func(b ...Backend) *Service {
		return &Service{
			Cluster: "c2", ClusterID: 2, Source: wire.SourceClusterMesh, Shared: true, Namespace: "ns", Name: "svc",
			Labels: map[string]string{"from": "entry"}, Backends: b,
		}
	}
	unshared := entry(Backend{IP: ip("10.0.0.1")})
	unshared.Shared = false
	tests := map[string]struct {
		entry *Service
		of    []*Slice
		want  []Backend
	}{
		"slices alone are the backends": {
			nil,
			[]*Slice{with("svc-1", usual)},
			[]Backend{{IP: ip("10.0.0.1"), Ports: port, Hostname: "h", Node: "n", Zone: "z"}},
		},
		"an endpoint that is neither ready nor serving is none": {
			nil,
			[]*Slice{with("svc-1", func(s *wire.EndpointSlice) {
				s.Endpoints[0].Conditions = conditions("not ready")
				s.Endpoints = append(s.Endpoints, wire.Endpoint{Addresses: []string{"10.0.0.2"}, Conditions: conditions("not ready", "serving", "terminating")})
			})},
			[]Backend{{IP: ip("10.0.0.2"), Ports: port, Conditions: NotReady | IsTerminating}},
		},
		"one address in several slices is one backend with the ports of all": {
			nil,
			[]*Slice{
				with("svc-2", func(s *wire.EndpointSlice) {
					s.Ports = []wire.EndpointPort{{Name: ptr("admin"), Port: ptr[int32](80)}, {Name: ptr("http"), Port: ptr[int32](80)}}
					s.Endpoints[0].NodeName = ptr("another")
					s.Labels["app"] = "another"
				}),
				with("svc-1", func(s *wire.EndpointSlice) { s.Endpoints[0].Zone = nil }),
			},
			[]Backend{{IP: ip("10.0.0.1"), Ports: []Port{{"admin", "TCP", 80}, {"http", "TCP", 80}}, Hostname: "h", Node: "n", Zone: "z"}},
		},
		"a slice in which the address is not ready does not spoil the other's ports": {
			nil,
			[]*Slice{
				with("svc-1", func(s *wire.EndpointSlice) { s.Endpoints[0].Conditions = conditions("not ready") }),
				with("svc-2", func(s *wire.EndpointSlice) {
					s.Ports = []wire.EndpointPort{{Port: ptr[int32](81)}}
					s.Endpoints[0].NodeName = ptr("n2")
				}),
			},
			[]Backend{{IP: ip("10.0.0.1"), Ports: []Port{{"", "TCP", 81}}, Hostname: "h", Node: "n2", Zone: "z"}},
		},
		"the entry decides which addresses there are, and their ports": {
			entry(Backend{IP: ip("10.0.0.1"), Ports: fromEntry}, Backend{IP: ip("10.0.0.3"), Ports: fromEntry}),
			[]*Slice{with("svc-1", func(s *wire.EndpointSlice) {
				s.Endpoints = append(s.Endpoints, wire.Endpoint{Addresses: []string{"10.0.0.2"}})
			})},
			[]Backend{
				{IP: ip("10.0.0.1"), Ports: fromEntry, Hostname: "h", Node: "n", Zone: "z"},
				{IP: ip("10.0.0.3"), Ports: fromEntry},
			},
		},
		"the entry's zone and hostname stand": {
			entry(Backend{IP: ip("10.0.0.1"), Zone: "own", Hostname: "web-0"}),
			[]*Slice{with("svc-1", usual)},
			[]Backend{{IP: ip("10.0.0.1"), Hostname: "web-0", Node: "n", Zone: "own"}},
		},
		"the slices tell the conditions, even that a backend is not usable": {
			entry(Backend{IP: ip("10.0.0.1")}),
			[]*Slice{with("svc-1", func(s *wire.EndpointSlice) {
				s.Endpoints[0] = wire.Endpoint{Addresses: []string{"10.0.0.1"}, Conditions: conditions("not ready", "terminating")}
			})},
			[]Backend{{IP: ip("10.0.0.1"), Conditions: NotReady | NotServing | IsTerminating}},
		},
		"an entry that is not shared stays that way": {
			unshared,
			[]*Slice{with("svc-1", usual)},
			[]Backend{{IP: ip("10.0.0.1"), Hostname: "h", Node: "n", Zone: "z"}},
		},
		"an entry without backends has none": {entry(), []*Slice{with("svc-1", usual)}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before Service
			if tc.entry != nil {
				before = *tc.entry
				before.Backends = slices.Clone(before.Backends)
			}
			p := part(tc.entry, tc.of, Full)
			if diff := cmp.Diff(tc.want, p.Backends, netipTypes, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			want := Service{
				Cluster: "c2", ClusterID: 2, Source: wire.SourceClusterMesh, Namespace: "ns", Name: "svc", Backends: p.Backends,
				Shared: true, IncludeExternal: true, Sliced: true, Labels: map[string]string{"app": "web", "none": ""},
			}
			if tc.entry != nil {
				want = *tc.entry
				want.Backends = p.Backends
				if !tc.entry.Equal(&before) {
					t.Error("the entry was changed")
				}
			}
			if !p.Equal(&want) {
				t.Errorf("the part is %+v, want %+v", p, want)
			}
			hidden := part(tc.entry, tc.of, Withheld)
			want.Use = Withheld
			if !hidden.Equal(&want) {
				t.Errorf("withheld, the part is %+v, want %+v", hidden, want)
			}
		})
	}
}

func TestPartIsTheEntryWhenSlicesAddNothing(t *testing.T) {
	t.Parallel()
	entry := svc("c2", true, "10.0.0.9")
	elsewhere := with("svc-1", func(*wire.EndpointSlice) {})
	if p := part(entry, nil, Full); p != entry {
		t.Error("a copy, although there are no slices")
	}
	if p := part(entry, []*Slice{elsewhere}, Full); p != entry {
		t.Error("a copy, although the slices are of other addresses")
	}
	if p := part(nil, nil, Withheld); p != nil {
		t.Errorf("the part of nothing is %+v", p)
	}
}
