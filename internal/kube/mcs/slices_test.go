package mcs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

func sliceOf(name string, family discoveryv1.AddressType, ports ...discoveryv1.EndpointPort) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{wire.LabelServiceName: "cart"}},
		AddressType: family, Ports: ports, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}},
	}
}

func slicePort(name string, number int32) discoveryv1.EndpointPort {
	protocol := corev1.ProtocolTCP
	return discoveryv1.EndpointPort{Name: &name, Port: &number, Protocol: &protocol}
}

// mcs.md B, local backends; behaviour 17.
func TestLocalSlices(t *testing.T) {
	t.Parallel()
	derived := wire.DerivedServiceName("shop", "cart")
	mesh := sliceOf("cart-c2-abc", discoveryv1.AddressTypeIPv4, slicePort("http", 8080))
	mesh.Labels[discoveryv1.LabelManagedBy] = wire.MeshSliceManager
	both := service()
	both.Spec.Ports = append(both.Spec.Ports, corev1.ServicePort{Name: "more", Port: 81}) // its protocol is not said
	unnamed := service()
	unnamed.Spec.Ports[0].Name = ""
	long := strings.Repeat("x", 30) + "." + strings.Repeat("y", 39)
	for name, test := range map[string]struct {
		service *corev1.Service
		remote  []*services.Export
		own     func(*wire.ServiceExport)
		slices  []*discoveryv1.EndpointSlice
		want    string // name:ports of each copy
	}{
		"all of it":              {service(), nil, nil, []*discoveryv1.EndpointSlice{sliceOf("cart-abc", "IPv4", slicePort("http", 8080))}, derived + "-abc http=8080"},
		"another family":         {service(), nil, nil, []*discoveryv1.EndpointSlice{sliceOf("cart-abc", "IPv6", slicePort("http", 8080))}, ""},
		"names of hosts":         {service(), nil, nil, []*discoveryv1.EndpointSlice{sliceOf("cart-abc", "FQDN", slicePort("http", 8080))}, ""},
		"backends of others":     {service(), nil, nil, []*discoveryv1.EndpointSlice{mesh}, ""},
		"own ports stay, older":  {service(), []*services.Export{export("c2", -1, ports(port("http", 8888)))}, nil, []*discoveryv1.EndpointSlice{sliceOf("cart-abc", "IPv4", slicePort("http", 8080))}, derived + "-abc http=8080"},
		"own ports stay, others": {both, []*services.Export{export("c2", -1, ports(port("http", 8888), port("more", 81)))}, nil, []*discoveryv1.EndpointSlice{sliceOf("cart-abc", "IPv4", slicePort("http", 8080), slicePort("more", 8081))}, derived + "-abc http=8080 more=8081"},
		"a port of no Service":   {service(), nil, nil, []*discoveryv1.EndpointSlice{sliceOf("cart-abc", "IPv4", slicePort("http", 8080), slicePort("metrics", 9))}, derived + "-abc http=8080"},
		"no name among several":  {unnamed, []*services.Export{export("c2", 1, ports(port("more", 81)))}, ports(port("", 80)), []*discoveryv1.EndpointSlice{sliceOf("cart-abc", "IPv4", slicePort("", 8080))}, derived + "-abc unnamed-tcp-80=8080"},
		"a remote has the name":  {unnamed, []*services.Export{export("c2", -1, ports(port("unnamed-tcp-80", 81), port("more", 82)))}, ports(port("", 80)), []*discoveryv1.EndpointSlice{sliceOf("cart-abc", "IPv4", slicePort("", 8080))}, derived + "-abc unnamed-tcp-80=8080"},
		"no name":                {unnamed, nil, ports(port("", 80)), []*discoveryv1.EndpointSlice{sliceOf("cart-abc", "IPv4", slicePort("", 8080))}, derived + "-abc =8080"},
		"without ports":          {service(), nil, headlessExport, []*discoveryv1.EndpointSlice{sliceOf("cart-abc", "IPv4")}, derived + "-abc"},
		"a long name":            {service(), nil, nil, []*discoveryv1.EndpointSlice{sliceOf(long, "IPv4", slicePort("http", 1))}, derived + "-" + strings.Repeat("y", 39) + " http=1"},
		"the Service's name":     {service(), nil, nil, []*discoveryv1.EndpointSlice{sliceOf("cart", "IPv4", slicePort("http", 1))}, derived + "-" + digest("cart") + " http=1"},
		"equal ends": {
			service(), nil, nil,
			[]*discoveryv1.EndpointSlice{sliceOf("cart-x", "IPv4", slicePort("http", 1)), sliceOf("x", "IPv4", slicePort("http", 2))},
			derived + "-" + digest("x") + " http=2; " + derived + "-x http=1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var change []func(*wire.ServiceExport)
			if test.own != nil {
				change = append(change, test.own)
			} else if test.service == both {
				change = append(change, ports(port("http", 80), port("more", 81)))
			}
			f := facts()
			f.Export = &OwnExport{Service: test.service}
			w := Make("shop", "cart", append(test.remote, export("c1", 0, change...)), f)
			var got []string
			for _, s := range LocalSlices("c1", w, test.service, test.slices) {
				text := s.Name
				for _, p := range s.Ports {
					text += " " + *p.Name + "=" + fmt.Sprint(*p.Port)
				}
				got = append(got, text)
			}
			if text := strings.Join(got, "; "); sorted(text) != sorted(test.want) {
				t.Errorf("%q, want %q", text, test.want)
			}
		})
	}
}

func TestTheLabelsOfLocalSlices(t *testing.T) {
	t.Parallel()
	f := facts()
	f.Export = &OwnExport{Service: service()}
	w := Make("shop", "cart", []*services.Export{export("c1", 0, headlessExport, labels(map[string]string{"team": "a", discoveryv1.LabelManagedBy: "evil"}))}, f)
	long := "cart-" + strings.Repeat("x", 60)
	copies := LocalSlices("c1", w, service(), []*discoveryv1.EndpointSlice{
		sliceOf("cart-abc", "IPv4", slicePort("http", 8080)), sliceOf(long, "IPv4", slicePort("http", 8080)),
	})
	want := map[string]string{
		"team": "a", LabelWritten: Written, LabelServiceName: "cart", LabelSourceCluster: "c1", wire.LabelServiceName: w.Derived.Name,
		discoveryv1.LabelManagedBy: ManagedByLocalSlice, wire.LabelHeadless: "", LabelLocalSlice: "cart-abc",
	}
	if d := cmp.Diff(want, copies[0].Labels); d != "" {
		t.Error(d)
	}
	if got := copies[1].Labels[LabelLocalSlice]; got != digest(long) {
		t.Errorf("of a long name: %q", got)
	}
}

// sorted has the parts of a text in their order: names are made of hashes.
func sorted(text string) string {
	parts := strings.Split(text, "; ")
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}
