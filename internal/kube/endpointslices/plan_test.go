package endpointslices

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Behaviour 23 of mcs.md: global x sync annotation x headless, with the alias.
func TestWhichServicesGetSlices(t *testing.T) {
	t.Parallel()
	for _, global := range []string{"", "true", "TRUE", "false"} {
		for _, sync := range []string{"absent", "true", "True", "false", "", "yes"} {
			for _, headless := range []bool{false, true} {
				for _, key := range []string{wire.AnnotationGlobal, wire.AnnotationGlobalAlias} {
					svc := serviceOf("web")
					svc.Annotations = make(map[string]string)
					if global != "" {
						svc.Annotations[key] = global
					}
					if sync != "absent" {
						svc.Annotations[AnnotationSync] = sync
					}
					if headless {
						svc.Spec.ClusterIP = "None"
					}
					want := strings.EqualFold(global, "true") && (strings.EqualFold(sync, "true") || sync == "absent" && headless)
					if got := Eligible(svc); got != want {
						t.Errorf("%s=%q sync=%q headless=%t: %t", key, global, sync, headless, got)
					}
				}
			}
		}
	}
	if external := serviceOf("web", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }); Eligible(external) {
		t.Error("ExternalName gets slices")
	}
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		annotation string
		own        []corev1.IPFamily
		want       string
	}{
		{"", nil, "IPv4 IPv6"},
		{"", []corev1.IPFamily{"IPv6"}, "IPv6"},
		{"IPv4,IPv6", []corev1.IPFamily{"IPv6"}, "IPv4 IPv6"},
		{"IPv4, IPv4", []corev1.IPFamily{"IPv6"}, "IPv4"},
		{"IPv4,IPX", []corev1.IPFamily{"IPv6"}, "IPv6"},
	} {
		svc := serviceOf("web", annotated(AnnotationFamilies, c.annotation), func(s *corev1.Service) { s.Spec.IPFamilies = c.own })
		var texts []string
		for _, f := range families(svc) {
			texts = append(texts, string(f))
		}
		if got := strings.Join(texts, " "); got != c.want {
			t.Errorf("%q with %v: %s", c.annotation, c.own, got)
		}
	}
}

// The contents of slices follow from the clusters' services.
func TestSlicesHoldTheChoice(t *testing.T) {
	t.Parallel()
	gone := func(b services.Backend) services.Backend { b.Conditions = services.IsTerminating; return b }
	named := func(b services.Backend, hostname string) services.Backend { b.Hostname = hostname; return b }
	used := func(p *services.Service, use services.BackendUse) *services.Service { p.Use = use; return p }
	for name, c := range map[string]struct {
		service *corev1.Service
		parts   []*services.Service
		want    []string
	}{
		"one cluster": {
			parts: []*services.Service{ownPart("web", ""), remotePart("west", "web", backend("10.2.0.1", http(80)))},
			want:  []string{"west IPv4 [http:80/TCP] 10.2.0.1"},
		},
		"a slice for each cluster, family and set of ports": {
			service: serviceOf("web", dual),
			parts: []*services.Service{
				ownPart("web", ""),
				remotePart("west", "web", backend("10.2.0.1", http(80)), backend("10.2.0.2", http(81)), backend("fd00::1", http(80))),
				remotePart("north", "web", backend("10.3.0.1", http(80), services.Port{Name: "dns", Protocol: "UDP", Port: 53})),
			},
			want: []string{
				"north IPv4 [http:80/TCP dns:53/UDP] 10.3.0.1", "north IPv6 [] ",
				"west IPv4 [http:80/TCP] 10.2.0.1", "west IPv4 [http:81/TCP] 10.2.0.2", "west IPv6 [http:80/TCP] fd00::1",
			},
		},
		"a placeholder for a cluster without backends": {
			parts: []*services.Service{ownPart("web", ""), remotePart("west", "web")},
			want:  []string{"west IPv4 [] "},
		},
		"not of a family that the service has not": {
			parts: []*services.Service{ownPart("web", ""), remotePart("west", "web", backend("fd00::1", http(80)))},
			want:  []string{"west IPv4 [] "},
		},
		"not of a cluster that does not share it": {
			parts: []*services.Service{ownPart("web", ""), func() *services.Service {
				p := remotePart("west", "web", backend("10.2.0.1", http(80)))
				p.Shared = false
				return p
			}()},
		},
		"standby while a local backend is preferred": {
			parts: []*services.Service{ownPart("web", wire.AffinityLocal, backend("10.1.0.1", http(80))), remotePart("west", "web", backend("10.2.0.1", http(80)))},
			want:  []string{"west IPv4 [http:80/TCP] 10.2.0.1 standby"},
		},
		"in use when the preferred local ones are gone": {
			parts: []*services.Service{ownPart("web", wire.AffinityLocal), remotePart("west", "web", backend("10.2.0.1", http(80)))},
			want:  []string{"west IPv4 [http:80/TCP] 10.2.0.1"},
		},
		"draining": {
			parts: []*services.Service{ownPart("web", ""), remotePart("west", "web", gone(backend("10.2.0.1", http(80))), backend("10.2.0.2", http(80)))},
			want:  []string{"west IPv4 [http:80/TCP] 10.2.0.1 draining, 10.2.0.2"},
		},
		"demoted by the disconnect policy": {
			parts: []*services.Service{
				ownPart("web", ""), used(remotePart("west", "web", backend("10.2.0.1", http(80))), services.Demoted), remotePart("north", "web", backend("10.3.0.1", http(80))),
			},
			want: []string{"north IPv4 [http:80/TCP] 10.3.0.1", "west IPv4 [http:80/TCP] 10.2.0.1 standby"},
		},
		"withheld": {
			parts: []*services.Service{ownPart("web", ""), used(remotePart("west", "web", backend("10.2.0.1", http(80))), services.Withheld)},
			want:  []string{"west IPv4 [] "},
		},
		"an address of the own cluster is not written again": {
			parts: []*services.Service{ownPart("web", "", backend("10.1.0.1", http(80))), remotePart("west", "web", backend("10.1.0.1", http(80)), backend("10.2.0.1", http(80)))},
			want:  []string{"west IPv4 [http:80/TCP] 10.2.0.1"},
		},
		"host names, but none that is none": {
			parts: []*services.Service{ownPart("web", ""), remotePart("west", "web", named(backend("10.2.0.1", http(80)), "web-0"), named(backend("10.2.0.2", http(80)), "Web_0."))},
			want:  []string{"west IPv4 [http:80/TCP] 10.2.0.1 web-0, 10.2.0.2"},
		},
		"addresses that the API server would refuse": {
			parts: []*services.Service{ownPart("web", ""), remotePart("west", "web", backend("127.0.0.1", http(80)), backend("0.0.0.0", http(80)), backend("169.254.1.1", http(80)), backend("224.0.0.1", http(80)), backend("10.2.0.1", http(80)))},
			want:  []string{"west IPv4 [http:80/TCP] 10.2.0.1"},
		},
		"ports that the API server would refuse": {
			parts: []*services.Service{ownPart("web", ""), remotePart("west", "web",
				backend("10.2.0.1", services.Port{Name: "UPPER", Protocol: "TCP", Port: 1}),
				backend("10.2.0.2", services.Port{Name: "a", Protocol: "TCP", Port: 1}, services.Port{Name: "a", Protocol: "TCP", Port: 2}, services.Port{Name: "b", Protocol: "ICMP", Port: 3}, services.Port{Name: "c", Protocol: "TCP"}),
				backend("10.2.0.3"))},
			want: []string{"west IPv4 [] 10.2.0.3", "west IPv4 [a:1/TCP] 10.2.0.2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svc := c.service
			if svc == nil {
				svc = serviceOf("web")
			}
			api := newServer()
			situation := Input{Service: svc, Global: services.Merge(c.parts)}
			api.carryOut(t, Plan(situation).All)
			if d := cmp.Diff(c.want, api.text()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			situation.Held = api.held()
			if again := Plan(situation).All; len(again) > 0 {
				t.Errorf("again %d changes", len(again))
			}
		})
	}
}

// Behaviour 24 of mcs.md: what a slice says of itself.
func TestLabelsOwnerAndName(t *testing.T) {
	t.Parallel()
	svc := serviceOf("web", func(s *corev1.Service) {
		s.Labels = map[string]string{"team": "a", "mesh.cilium.io/internal": "x", "kubernetes.io/service-name": "other", "service.kubernetes.io/headless": "", "service.kubernetes.io/service-proxy-name": "p"}
	})
	g := services.Merge([]*services.Service{ownPart("web", ""), remotePart("west", "web", backend("10.2.0.1", http(80)))})
	plan := func(svc *corev1.Service) *discoveryv1.EndpointSlice {
		t.Helper()
		all := Plan(Input{Service: svc, Global: g}).All
		if len(all) != 1 {
			t.Fatalf("%d changes", len(all))
		}
		return all[0].To
	}
	slice := plan(svc)
	want := map[string]string{
		"team": "a", "service.kubernetes.io/service-proxy-name": "p", "kubernetes.io/service-name": "web", "endpointslice.kubernetes.io/managed-by": "endpointslice-mesh-controller.cilium.io",
		"multicluster.kubernetes.io/source-cluster": "west", "mesh-agent.io/endpointslice-owner": "uid-of-web",
	}
	if d := cmp.Diff(want, slice.Labels); d != "" {
		t.Errorf("labels (-want +got):\n%s", d)
	}
	if o := slice.OwnerReferences; len(o) != 1 || o[0].Kind != "Service" || o[0].APIVersion != "v1" || o[0].Name != "web" || o[0].UID != svc.UID || !*o[0].Controller {
		t.Errorf("owner: %+v", o)
	}
	if e := slice.Endpoints[0]; *e.NodeName != "west" || *e.Zone != "west" {
		t.Errorf("endpoint: %+v", e)
	}
	if !strings.HasPrefix(slice.Name, "web-west-") || len(validation.IsDNS1123Subdomain(slice.Name)) > 0 {
		t.Errorf("name: %s", slice.Name)
	}
	svc.Spec.ClusterIP = "None"
	if value, has := plan(svc).Labels["service.kubernetes.io/headless"]; !has || value != "" {
		t.Error("headless is not said")
	}
}

// TestAChangedBackendIsOneWrite: for any change of one backend of many.
func TestAChangedBackendIsOneWrite(t *testing.T) {
	t.Parallel()
	api, svc := newServer(), serviceOf("web")
	all := many("10.2.0.0", 250, http(80))
	plan := func() []Change {
		return Plan(Input{Service: svc, Held: api.held(), Global: services.Merge([]*services.Service{ownPart("web", ""), remotePart("west", "web", slices.Clone(all)...)})}).All
	}
	changes := plan()
	if len(changes) != 3 {
		t.Fatalf("250 backends need %d slices", len(changes))
	}
	api.carryOut(t, changes)
	for name, change := range map[string]func(){
		"begins to terminate": func() { all[7].Conditions = services.IsTerminating },
		"goes":                func() { all = slices.Delete(all, 120, 121) },
		"comes":               func() { all = append(all, backend("10.9.0.1", http(80))) },
		"has another name":    func() { all[9].Hostname = "nine" },
		"has other ports":     func() { all = append(all, backend("10.9.0.2", http(8080))) },
	} {
		change()
		changes := plan()
		if len(changes) != 1 {
			t.Errorf("one %s: %d writes", name, len(changes))
		}
		api.carryOut(t, changes)
	}
}

func TestASliceThatIsEmptiedTakesOtherPorts(t *testing.T) {
	t.Parallel()
	api, svc := newServer(), serviceOf("web")
	step := func(want int, all ...services.Backend) {
		t.Helper()
		changes := Plan(Input{Service: svc, Held: api.held(), Global: services.Merge([]*services.Service{ownPart("web", ""), remotePart("west", "web", all...)})}).All
		if len(changes) != want {
			t.Errorf("%d changes instead of %d for %v", len(changes), want, all)
		}
		api.carryOut(t, changes)
	}
	step(1)                                                               // a placeholder
	step(1, backend("10.2.0.1", http(80)))                                // which is filled
	step(1, backend("10.2.0.1", http(81)))                                // and takes other ports
	step(1, backend("10.2.0.1", http(81)), backend("10.2.0.2", http(80))) // one more
	step(1, backend("10.2.0.1", http(81)))                                // which goes again
	step(1)                                                               // the last one stays as a placeholder
	if got := api.text(); !slices.Equal(got, []string{"west IPv4 [] "}) {
		t.Errorf("left: %q", got)
	}
}

// TestWhatStays: slices of clusters that were not read stay; slices of other clusters that are no longer wanted are
// deleted.
func TestWhatStays(t *testing.T) {
	t.Parallel()
	api, svc := newServer(), serviceOf("web")
	both := services.Merge([]*services.Service{ownPart("web", ""), remotePart("west", "web", backend("10.2.0.1", http(80))), remotePart("north", "web", backend("10.3.0.1", http(80)))})
	api.carryOut(t, Plan(Input{Service: svc, Global: both}).All)
	west := func(cluster string) bool { return cluster == "west" }
	alone := services.Merge([]*services.Service{ownPart("web", "")})
	changes := Plan(Input{Service: svc, Global: alone, Held: api.held(), Keep: west}).All
	if len(changes) != 1 || changes[0].To != nil || changes[0].Was.Labels[LabelCluster] != "north" || !changes[0].Remote || !changes[0].Removes() {
		t.Errorf("only those of north should go: %+v", changes)
	}
	// The own cluster's decision counts, regardless of the state of others.
	changes = Plan(Input{Service: serviceOf("web", annotated(AnnotationSync, "false")), Global: both, Held: api.held(), Keep: west}).All
	if len(changes) != 2 || changes[0].To != nil || changes[1].To != nil || changes[0].Remote || changes[1].Remote {
		t.Errorf("both should go: %+v", changes)
	}
	// Another Service of the same name has slices of its own owner.
	changes = Plan(Input{Service: serviceOf("web", func(s *corev1.Service) { s.UID = "other" }), Global: both, Held: api.held()}).All
	if len(changes) != 2 || changes[0].To.OwnerReferences[0].UID != "other" || changes[0].To.UID != changes[0].Was.UID {
		t.Errorf("both should change their owner: %+v", changes)
	}
}

func TestWhatIsGrantedIsTheLimit(t *testing.T) {
	t.Parallel()
	left := 2
	p := Plan(Input{
		Service: serviceOf("web"), Global: services.Merge([]*services.Service{ownPart("web", ""), remotePart("west", "web", many("10.2.0.0", 950, http(80))...)}),
		Grant: func(cluster string) bool { left--; return left >= 0 && cluster == "west" },
	})
	if len(p.All) != 2 || p.LeftOut != 750 {
		t.Errorf("%d slices, %d left out", len(p.All), p.LeftOut)
	}
}

func TestNamesThatAreTakenAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := Input{Service: serviceOf("web"), Global: services.Merge([]*services.Service{ownPart("web", ""), remotePart("west", "web", many("10.2.0.0", 150, http(80))...)})}
	first := Plan(s).All
	s.Taken = func(name string) bool { return name == first[0].To.Name }
	second := Plan(s).All
	if second[0].To.Name != first[1].To.Name || second[1].To.Name == first[0].To.Name || second[0].To.Name == second[1].To.Name {
		t.Errorf("%s, %s after %s, %s", second[0].To.Name, second[1].To.Name, first[0].To.Name, first[1].To.Name)
	}
}

// TestPortsAreBounded: with as many as a hostile cluster likes, a slice is one that is accepted.
func TestPortsAreBounded(t *testing.T) {
	t.Parallel()
	var ports []services.Port
	for n := range 3 * MaxPorts {
		ports = append(ports, services.Port{Name: "p" + strconv.Itoa(1000+n), Protocol: "TCP", Port: uint16(1000 + n)})
	}
	all := Plan(Input{Service: serviceOf("web"), Global: services.Merge([]*services.Service{ownPart("web", ""), remotePart("west", "web", backend("10.2.0.1", ports...))})}).All
	names := make(map[string]bool)
	for _, p := range all[0].To.Ports {
		names[*p.Name] = true
	}
	if len(names) != MaxPorts || len(slices.Collect(maps.Keys(names))) != len(all[0].To.Ports) {
		t.Errorf("%d ports", len(all[0].To.Ports))
	}
}
