package manifests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// named are the objects as "document kind name".
func named(docs []document) (out []string) {
	for _, d := range docs {
		out = append(out, fmt.Sprintf("%d %s %s", d.number, d.kind, d.name))
	}
	return out
}

func TestWhatAFileSays(t *testing.T) {
	t.Parallel()
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
	for name, c := range map[string]struct {
		text    string
		json    bool
		want    []string
		unknown []string
		bad     []string // "document reason", of which the reason is a part
	}{
		"nothing":        {},
		"comments alone": {text: "# nothing\n---\n# here\n"},
		"one object":     {text: service, want: []string{"1 Service default/web"}},
		"several documents": {
			text: "---\n" + service + "--- # the next\n# a comment\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n1, namespace: x}\n---\n",
			want: []string{"1 Service default/web", "3 Node n1"},
		},
		"with the line ends of another system": {
			text: strings.ReplaceAll(service+"---\n"+service, "\n", "\r\n"),
			want: []string{"1 Service default/web", "2 Service default/web"},
		},
		"a directive with the version": {
			text: "# of an editor\n%YAML 1.2\n---\n" + service + "---\n" + service, want: []string{"2 Service default/web", "3 Service default/web"},
		},
		"text that looks like a directive": {
			text: service + "  annotations: {a: \"\n%YAML 1.2\n\"}\n", bad: []string{"1 not valid YAML"},
		},
		"a protocol in small letters": {
			text: service + "spec: {ports: [{port: 80}, {port: 81, protocol: udp}]}\n", bad: []string{`1 spec.ports[1].protocol "udp": it is TCP, UDP or SCTP`},
		},
		"a number that no port has": {
			text: "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: a}\nports: [{}, {port: 65536}]\n", bad: []string{"1 ports[1].port 65536: it is a number from 1 to 65535"},
		},
		"JSON in a YAML file": {
			text: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"prod"}}`,
			want: []string{"1 Pod prod/p"},
		},
		"several JSON documents": {
			json: true,
			text: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}} {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"prod"}}`,
			want: []string{"1 Pod default/p", "2 Namespace prod"},
		},
		"every kind": {
			text: `apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: a}}
- {apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a}}
- {apiVersion: v1, kind: Node, metadata: {name: a}}
- {apiVersion: v1, kind: Pod, metadata: {name: a}}
- {apiVersion: v1, kind: Namespace, metadata: {name: a}}
- {apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, metadata: {name: a}}
- {apiVersion: cilium.io/v2, kind: CiliumNode, metadata: {name: a}}
- {apiVersion: cilium.io/v2, kind: CiliumEndpoint, metadata: {name: a}}
- {apiVersion: cilium.io/v2, kind: CiliumIdentity, metadata: {name: "131072"}}
`,
			want: []string{
				"1 Service default/a", "1 EndpointSlice default/a", "1 Node a", "1 Pod default/a", "1 Namespace a",
				"1 ServiceExport default/a", "1 CiliumNode a", "1 CiliumEndpoint default/a", "1 CiliumIdentity 131072",
			},
		},
		"a typed list whose items do not say what they are": {
			text: "apiVersion: v1\nkind: ServiceList\nitems:\n- metadata: {name: a}\n- metadata: {name: b, namespace: prod}\n",
			want: []string{"1 Service default/a", "1 Service prod/b"},
		},
		"an empty list": {text: "apiVersion: v1\nkind: List\nitems: []\n"},
		"kinds that nobody reads": {
			text:    "apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: apps/v1\nkind: Deployment\n---\napiVersion: example.com/v1\nkind: Service\n",
			unknown: []string{"Deployment (apps/v1)", "Service (example.com/v1)"},
		},
		"fields that nobody knows": {
			text: service + "spec: {newField: 1}\n", want: []string{"1 Service default/web"},
		},
		"no YAML": {
			text: service + "---\n{\n---\n" + service,
			want: []string{"1 Service default/web", "3 Service default/web"},
			bad:  []string{"2 not valid YAML; correct it"},
		},
		"a key that is there twice": {text: service + "kind: Pod\n", bad: []string{`1 key "kind" already set`}},
		"a separator with something behind it": {
			text: service + "--- x\n" + service, bad: []string{"1 the rest of the file cannot be read"},
		},
		"no JSON": {
			json: true, text: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}} {"a"`,
			want: []string{"1 Pod default/p"}, bad: []string{"2 the rest of the file cannot be read: it is not valid JSON; correct it"},
		},
		"not an object":                      {text: "- 1\n", bad: []string{"1 it is no Kubernetes object"}},
		"no kind":                            {text: "apiVersion: v1\n", bad: []string{"1 it needs an apiVersion and a kind"}},
		"no name":                            {text: "apiVersion: v1\nkind: Service\n", bad: []string{`1 metadata.name ""`}},
		"a name that would be two":           {text: "apiVersion: v1\nkind: Node\nmetadata: {name: a/b}\n", bad: []string{`1 metadata.name "a/b"`}},
		"a namespace that is none":           {text: "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: B}\n", bad: []string{`1 metadata.namespace "B"`}},
		"an old version":                     {text: "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: a}\n", bad: []string{"1 write it as apiVersion: discovery.k8s.io/v1"}},
		"a field of another type":            {text: service + "spec: {clusterIP: [1]}\n", bad: []string{"1 this Service cannot be read; correct it"}},
		"a list in a list":                   {text: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List}\n", bad: []string{"1 item 1 of the List is a list itself"}},
		"an item that does not say its kind": {text: "apiVersion: v1\nkind: List\nitems:\n- {metadata: {name: a}}\n", bad: []string{"1 item 1 of the List: it is no Kubernetes object"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := read(kinds(new(local.Cluster)), []byte(c.text), c.json)
			if d := cmp.Diff(c.want, named(got.documents)); d != "" {
				t.Errorf("documents (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.unknown, got.unknown); d != "" {
				t.Errorf("unknown (-want +got):\n%s", d)
			}
			if !slices.EqualFunc(got.bad, c.bad, func(p problem, want string) bool {
				number, reason, _ := strings.Cut(want, " ")
				return fmt.Sprint(p.document) == number && strings.Contains(p.reason, reason)
			}) {
				t.Errorf("bad: %v, want %v", got.bad, c.bad)
			}
		})
	}
}

// For any content of a file, each object that is read has a valid name and a known kind, and is the same when it is
// read by itself.
func FuzzRead(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\nkind: x\n"), false)
	f.Add([]byte("apiVersion: v1\nkind: NodeList\nitems: [{metadata: {name: a}}]\n"), false)
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}{}`), true)
	f.Add([]byte("a: &a [*a, *a]\n"), false)
	f.Fuzz(func(t *testing.T, content []byte, isJSON bool) {
		for _, d := range read(kinds(new(local.Cluster)), content, isJSON).documents {
			if d.name != local.Name(d.object) || d.object.GetName() == "" || strings.Count(d.name, "/") > 1 {
				t.Fatalf("%q is named %q", content, d.name)
			}
			again := read(kinds(new(local.Cluster)), d.value, true)
			for _, same := range again.documents {
				if same.kind != d.kind || same.name != d.name {
					t.Fatalf("%q: %s %s is %s %s by itself", content, d.kind, d.name, same.kind, same.name)
				}
			}
		}
	})
}
