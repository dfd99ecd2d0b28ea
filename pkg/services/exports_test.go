package services

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/statedb"
	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

var created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// export returns an export of a cluster, without affinity.
func export(cluster, name string, change ...func(*wire.ServiceExport)) *wire.ServiceExport {
	w := &wire.ServiceExport{
		Cluster: cluster, Namespace: "ns", Name: name, ExportCreationTimestamp: wire.ExportTime{Time: created},
		Type: wire.ServiceExportClusterSetIP, SessionAffinity: wire.SessionAffinityNone,
	}
	for _, f := range change {
		f(w)
	}
	return w
}

func sticky(timeout *int32) func(*wire.ServiceExport) {
	return func(w *wire.ServiceExport) {
		w.SessionAffinity = wire.SessionAffinityClientIP
		w.SessionAffinityConfig = &wire.SessionAffinityConfig{ClientIP: &wire.ClientIPConfig{TimeoutSeconds: timeout}}
	}
}

func TestExportFromWire(t *testing.T) {
	t.Parallel()
	elsewhere := time.FixedZone("elsewhere", 3600)
	got := ExportFromWire(export("c2", "web", sticky(ptr[int32](60)), func(w *wire.ServiceExport) {
		w.Type, w.ExportCreationTimestamp.Time = wire.ServiceExportHeadless, created.In(elsewhere)
		w.Ports = []wire.ServiceExportPort{
			{Name: "web", Port: 443}, {Name: "dns", Protocol: "UDP", Port: 53}, {Name: "web", Protocol: "TCP", Port: 443}, {Port: -1}, {Port: 0}, {Port: 65536},
		}
	}))
	want := &Export{
		Cluster: "c2", Namespace: "ns", Name: "web", Type: wire.ServiceExportHeadless,
		Affinity: wire.SessionAffinityClientIP, Timeout: time.Minute, Created: created,
		Ports: []Port{{Name: "dns", Protocol: "UDP", Port: 53}, {Name: "web", Protocol: "TCP", Port: 443}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got.Key() != "c2/ns/web" || got.FullName() != "ns/web" {
		t.Errorf("%s, %s", got.Key(), got.FullName())
	}
}

func TestSessionAffinity(t *testing.T) {
	t.Parallel()
	without := func(w *wire.ServiceExport) { w.SessionAffinityConfig = nil }
	empty := func(w *wire.ServiceExport) { w.SessionAffinityConfig.ClientIP = nil }
	none := func(w *wire.ServiceExport) { w.SessionAffinity = wire.SessionAffinityNone }
	for _, test := range []struct {
		name   string
		export *wire.ServiceExport
		want   string
	}{
		{"none", export("c2", "web"), "None"},
		{"none with a timeout, which means nothing", export("c2", "web", sticky(ptr[int32](60)), none), "None"},
		{"client address", export("c2", "web", sticky(ptr[int32](60))), "ClientIP for 60 s"},
		{"without a timeout", export("c2", "web", sticky(nil)), "ClientIP for 10800 s"},
		{"with an empty configuration", export("c2", "web", sticky(nil), empty), "ClientIP for 10800 s"},
		{"without a configuration", export("c2", "web", sticky(nil), without), "ClientIP for 10800 s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := ExportFromWire(test.export).SessionAffinity(); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestAffinitiesDiffer(t *testing.T) {
	t.Parallel()
	headless := func(w *wire.ServiceExport) { w.Type = wire.ServiceExportHeadless }
	for _, test := range []struct {
		name  string
		of    []*wire.ServiceExport
		want  bool
		order string
	}{
		{"nobody", nil, false, ""},
		{"one", []*wire.ServiceExport{export("c2", "web", sticky(nil))}, false, "c2"},
		{"the same", []*wire.ServiceExport{export("c3", "web"), export("c2", "web", headless)}, false, "c2 c3"},
		{"default and its value", []*wire.ServiceExport{export("c3", "web", sticky(ptr[int32](10800))), export("c2", "web", sticky(nil))}, false, "c2 c3"},
		{"with and without", []*wire.ServiceExport{export("c3", "web", sticky(nil)), export("c2", "web"), export("c4", "web", older)}, true, "c4 c2 c3"},
		{"timeouts", []*wire.ServiceExport{export("c2", "web", sticky(ptr[int32](60))), export("c3", "web", sticky(nil), older)}, true, "c3 c2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var all []*Export
			for _, w := range test.of {
				all = append(all, ExportFromWire(w))
			}
			SortExports(all)
			if got := AffinitiesDiffer(all); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
			var order []string
			for _, e := range all {
				order = append(order, e.Cluster)
			}
			if got := strings.Join(order, " "); got != test.order {
				t.Errorf("in the order %q, want %q", got, test.order)
			}
		})
	}
}

func older(w *wire.ServiceExport) { w.ExportCreationTimestamp.Time = created.Add(-time.Second) }

func TestExportEqual(t *testing.T) {
	t.Parallel()
	one := ExportFromWire(export("c2", "web"))
	if !one.Equal(ExportFromWire(export("c2", "web"))) {
		t.Error("not equal to itself")
	}
	for name, o := range map[string]*wire.ServiceExport{
		"cluster": export("c3", "web"), "name": export("c2", "web-2"), "age": export("c2", "web", older), "affinity": export("c2", "web", sticky(nil)),
		"namespace": export("c2", "web", func(w *wire.ServiceExport) { w.Namespace = "other" }),
		"type":      export("c2", "web", func(w *wire.ServiceExport) { w.Type = wire.ServiceExportHeadless }),
		"ports":     export("c2", "web", func(w *wire.ServiceExport) { w.Ports = []wire.ServiceExportPort{{Port: 80}} }),
	} {
		if one.Equal(ExportFromWire(o)) {
			t.Errorf("equal to one with another %s", name)
		}
	}
	if ExportFromWire(export("c2", "web", sticky(nil))).Equal(ExportFromWire(export("c2", "web", sticky(ptr[int32](60))))) {
		t.Error("equal to one with another timeout")
	}
}

func TestApplyExports(t *testing.T) {
	t.Parallel()
	db, s := newServices(t)
	put := func(w *wire.ServiceExport) store.Change[Export] {
		return store.Change[Export]{Name: "ns/" + w.Name, New: ExportFromWire(w)}
	}
	expect := func(what string, query statedb.Query[*Export], want ...string) {
		t.Helper()
		var got []string
		for e := range s.ServiceExports().List(db.ReadTxn(), query) {
			got = append(got, e.Key()+" "+e.SessionAffinity())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	s.ApplyExports([]store.Change[Export]{put(export("c2", "web")), put(export("c3", "web", sticky(nil))), put(export("c2", "web-2"))})
	expect("all of a name", ExportsByName("ns", "web"),
		"c2/ns/web None", "c3/ns/web ClientIP for 10800 s")
	expect("one", ExportByKey("c2", "ns", "web-2"), "c2/ns/web-2 None")

	before := s.ServiceExports().Revision(db.ReadTxn())
	s.ApplyExports(nil)
	s.ApplyExports([]store.Change[Export]{put(export("c2", "web"))})
	if after := s.ServiceExports().Revision(db.ReadTxn()); after != before {
		t.Error("what was there already is written again")
	}
	s.ApplyExports([]store.Change[Export]{put(export("c2", "web", sticky(ptr[int32](9)))), {Name: "ns/web", Old: ExportFromWire(export("c3", "web"))}})
	expect("changed and gone", ExportsByName("ns", "web"), "c2/ns/web ClientIP for 9 s")
	s.ApplyExports([]store.Change[Export]{{Name: "ns/web", Old: ExportFromWire(export("c2", "web"))}, {Name: "ns/web-2", Old: ExportFromWire(export("c2", "web-2"))}})
	if n := s.ServiceExports().NumObjects(db.ReadTxn()); n > 0 {
		t.Errorf("%d are left", n)
	}
	if n := s.Global().NumObjects(db.ReadTxn()); n > 0 {
		t.Errorf("exports made %d global services", n)
	}
}

// TestExportDetails checks the fields of an export that are read only by importers of the service (wire.md §1.5, mcs.md
// B).
func TestExportDetails(t *testing.T) {
	t.Parallel()
	full := func(w *wire.ServiceExport) {
		w.Ports = []wire.ServiceExportPort{{Name: "a", Port: 1, AppProtocol: ptr("http")}, {Name: "b", Port: 2, AppProtocol: ptr("")}, {Name: "c", AppProtocol: ptr("x")}}
		w.IPFamilies = []string{"IPv6", "IPv5", "IPv4", "IPv6"}
		w.InternalTrafficPolicy, w.TrafficDistribution = ptr(wire.InternalTrafficLocal), ptr(wire.PreferClose)
		w.Labels, w.Annotations = map[string]string{"l": "1"}, map[string]string{"a": "2"}
	}
	want := ExportDetails{
		AppProtocols: map[Port]string{{Name: "a", Protocol: "TCP", Port: 1}: "http"}, Families: []string{IPv6, IPv4},
		InternalTraffic: wire.InternalTrafficLocal, TrafficDistribution: wire.PreferClose,
		Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"},
	}
	one := ExportFromWire(export("c2", "web", full))
	if d := cmp.Diff(want, one.Details); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(ExportDetails{}, ExportFromWire(export("c2", "web")).Details); d != "" {
		t.Error(d)
	}
	for name, change := range map[string]func(*wire.ServiceExport){
		"families":     func(w *wire.ServiceExport) { w.IPFamilies = nil },
		"appProtocol":  func(w *wire.ServiceExport) { w.Ports[0].AppProtocol = nil },
		"internal":     func(w *wire.ServiceExport) { w.InternalTrafficPolicy = nil },
		"distribution": func(w *wire.ServiceExport) { w.TrafficDistribution = nil },
		"labels":       func(w *wire.ServiceExport) { w.Labels = map[string]string{"l": "2"} },
		"annotations":  func(w *wire.ServiceExport) { w.Annotations = nil },
	} {
		other := ExportFromWire(export("c2", "web", full, change))
		if one.Equal(other) {
			t.Errorf("another %s is the same", name)
		}
	}
	if more, less := one.Cost(), ExportFromWire(export("c2", "web")).Cost(); more <= less {
		t.Errorf("with details it costs %d, without %d", more, less)
	}
}
