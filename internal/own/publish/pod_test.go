package publish

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/recorded"
)

func newFilter(t *testing.T, text string) *LabelFilter {
	t.Helper()
	f, err := NewLabelFilter(text)
	must(t, err)
	return f
}

func TestWhichLabelsCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rules    string
		in, out  []string
		fromElse []string // that count with another source than k8s
	}{
		"as usual": {
			in: []string{
				"app", "k8s-app", "app.kubernetes.io/name", "io.kubernetes.pod.namespace", "io.cilium.k8s.policy.cluster",
				"io.cilium.k8s.policy.serviceaccount", "io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name", "xkubernetes.io", "job-name",
			},
			out: []string{
				"io.kubernetes.container.name", "kubernetes.io/arch", "beta.kubernetes.io/os", "node.beta.kubernetes.io/x", "k8s.io/x",
				"pod-template-generation", "pod-template-hash", "controller-revision-hash", "statefulset.kubernetes.io/pod-name",
				"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index", "annotation.x", "etcd_node",
			},
		},
		"leaving out more":                        {rules: "!app !k8s:team", in: []string{"name"}, out: []string{"app", "application", "team"}, fromElse: []string{"team"}},
		"the source before the mark":              {rules: "k8s:!team", in: []string{"name"}, out: []string{"team"}, fromElse: []string{"team"}},
		"nothing but some":                        {rules: "k8s:team", in: []string{"team", "io.kubernetes.pod.namespace", "app.kubernetes.io/name"}, out: []string{"name", "io.cilium.k8s.policy.serviceaccount", "pod-template-hash"}},
		"the longest one decides":                 {rules: `!team team\.example\.com !team\.example\.com/x`, in: []string{"team.example.com/y"}, out: []string{"team", "team.example.com/x", "name"}},
		"of two equal ones that which leaves out": {rules: "team !team !io.kubernetes.pod.namespace", out: []string{"team", "io.kubernetes.pod.namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFilter(t, c.rules)
			for _, list := range []struct {
				keys   []string
				source string
				want   bool
			}{{c.in, "k8s", true}, {c.out, "k8s", false}, {c.fromElse, "container", true}} {
				for _, key := range list.keys {
					if f.Includes(wire.Label{Source: list.source, Key: key}) != list.want {
						t.Errorf("%s:%s is included: %t", list.source, key, !list.want)
					}
				}
			}
		})
	}
	for _, rules := range []string{"!", "k8s:", "k8s:!", "("} {
		if _, err := NewLabelFilter(rules); err == nil || !strings.Contains(err.Error(), `the rule "`+rules+`"`) {
			t.Errorf("%s: %v", rules, err)
		}
	}
	var none *LabelFilter
	if !none.Includes(wire.Label{Key: "etcd_node"}) {
		t.Error("no filter leaves something out")
	}
}

func TestTheLabelsOfAnIdentity(t *testing.T) {
	t.Parallel()
	r := podRules{own: cluster2(), node: "node1", defaultGlobal: true, labels: newFilter(t, "")}
	const pod = `
metadata:
  namespace: prod
  name: web-0
  labels:
    app: web
    pod-template-hash: abc
    io.cilium.k8s.policy.cluster: other
    io.cilium.k8s.policy.serviceaccount: admin
    io.cilium.k8s.namespace.labels.team: admins
    io.kubernetes.pod.namespace: kube-system
spec: {nodeName: node1, serviceAccountName: web}
status: {podIP: 10.2.0.1}`
	for name, c := range map[string]struct{ pod, namespace, want string }{
		"of all sources": {
			pod, "metadata: {name: prod, labels: {team: a, kubernetes.io/metadata.name: prod}}",
			"k8s:app=web;k8s:io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name=prod;k8s:io.cilium.k8s.namespace.labels.team=a;" +
				"k8s:io.cilium.k8s.policy.cluster=cluster2;k8s:io.cilium.k8s.policy.serviceaccount=web;k8s:io.kubernetes.pod.namespace=prod;",
		},
		"without a known namespace": {
			"{metadata: {namespace: prod, name: p}, spec: {nodeName: node1}, status: {podIP: 10.2.0.1}}", "",
			"k8s:io.cilium.k8s.policy.cluster=cluster2;k8s:io.kubernetes.pod.namespace=prod;",
		},
	} {
		var namespace *corev1.Namespace
		if c.namespace != "" {
			namespace = object[corev1.Namespace](t, c.namespace)
		}
		w := r.wanted(object[corev1.Pod](t, c.pod), namespace, nil, false)
		if d := cmp.Diff(c.want, w.text); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	r.labels = newFilter(t, "nothing")
	w := r.wanted(object[corev1.Pod](t, pod), nil, nil, false)
	if d := cmp.Diff("k8s:io.cilium.k8s.policy.cluster=cluster2;k8s:io.kubernetes.pod.namespace=prod;", w.text); d != "" {
		t.Errorf("what is left when nothing counts (-want +got):\n%s", d)
	}
}

func TestWhichPodsArePublished(t *testing.T) {
	t.Parallel()
	const endpoint = "status: {identity: {id: 200000}, networking: {addressing: [{ipv4: 10.2.0.9, ipv6: 'fd00::9'}], node: 192.168.0.9}}"
	for name, c := range map[string]struct {
		spec, status, namespace, endpoint string
		hasCilium                         bool
		want                              []string // address, and host
	}{
		"one that runs":               {status: "podIP: 10.2.0.1, hostIP: 192.168.0.1", want: []string{"10.2.0.1 192.168.0.1"}},
		"all of its addresses":        {status: "podIP: 10.2.0.1, podIPs: [{ip: 10.2.0.1}, {ip: 'fd00::1'}], hostIP: 192.168.0.1", want: []string{"10.2.0.1 192.168.0.1", "fd00::1 192.168.0.1"}},
		"the host of each family":     {status: "podIPs: [{ip: 10.2.0.1}, {ip: 'fd00::1'}], hostIP: 192.168.0.1, hostIPs: [{ip: 192.168.0.1}, {ip: 'fd00:9::1'}]", want: []string{"10.2.0.1 192.168.0.1", "fd00::1 fd00:9::1"}},
		"no host yet":                 {status: "podIP: 10.2.0.1", want: []string{"10.2.0.1 <nil>"}},
		"no address yet":              {status: "hostIP: 192.168.0.1"},
		"no address at all":           {status: "podIP: x"},
		"on another node":             {spec: "nodeName: node2", status: "podIP: 10.2.0.1"},
		"on no node":                  {spec: "nodeName: ''", status: "podIP: 10.2.0.1"},
		"on the host's network":       {spec: "nodeName: node1, hostNetwork: true", status: "podIP: 10.2.0.1"},
		"ended well":                  {status: "podIP: 10.2.0.1, phase: Succeeded"},
		"failed":                      {status: "podIP: 10.2.0.1, phase: Failed"},
		"not ready":                   {status: "podIP: 10.2.0.1, phase: Pending", want: []string{"10.2.0.1 <nil>"}},
		"its namespace is not global": {status: "podIP: 10.2.0.1", namespace: "metadata: {annotations: {clustermesh.cilium.io/global: 'false'}}"},
		"as its endpoint says":        {status: "podIP: 10.2.0.1, hostIP: 192.168.0.1", endpoint: endpoint, want: []string{"10.2.0.9 192.168.0.9", "fd00::9 192.168.0.9"}},
		"in a cluster with Cilium":    {status: "podIP: 10.2.0.1", hasCilium: true},
		"and as its endpoint says":    {status: "podIP: 10.2.0.1", hasCilium: true, endpoint: endpoint, want: []string{"10.2.0.9 192.168.0.9", "fd00::9 192.168.0.9"}},

		"with an endpoint that has no identity yet": {status: "podIP: 10.2.0.1", endpoint: "status: {networking: {addressing: [{ipv4: 10.2.0.9}]}}"},
		"with one that has no address yet":          {status: "podIP: 10.2.0.1", endpoint: "status: {identity: {id: 200000}}"},
		"with an identity that is none":             {status: "podIP: 10.2.0.1", endpoint: strings.ReplaceAll(endpoint, "200000", "-1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := podRules{own: cluster2(), node: "node1", defaultGlobal: true}
			if c.spec == "" {
				c.spec = "nodeName: node1"
			}
			var namespace *corev1.Namespace
			if c.namespace != "" {
				namespace = object[corev1.Namespace](t, c.namespace)
			}
			var e *local.CiliumEndpoint
			if c.endpoint != "" {
				e = object[local.CiliumEndpoint](t, c.endpoint)
			}
			var got []string
			if w := r.wanted(object[corev1.Pod](t, "{spec: {"+c.spec+"}, status: {"+c.status+"}}"), namespace, e, c.hasCilium); w != nil {
				for _, p := range w.pairs {
					got = append(got, p.IP.String()+" "+p.HostIP.String())
				}
				if (w.identity == 0) != (e == nil) || (w.text == "") != (e != nil) {
					t.Errorf("identity %d, labels %q", w.identity, w.text)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// The other vectors are not those of pods.
func TestGoldenPodsArePublishedAsCiliumDoes(t *testing.T) {
	t.Parallel()
	all := recorded.Vectors(t, recorded.IPs)
	for i, c := range map[int]struct{ pod, endpoint string }{
		0: {
			"{metadata: {namespace: default, name: web-0}, spec: {nodeName: node1, serviceAccountName: default}}",
			"status: {identity: {id: 131172}, networking: {addressing: [{ipv4: 10.2.0.11}], node: 192.168.2.10}}",
		},
		1: {
			"{metadata: {namespace: default, name: web-0}, spec: {nodeName: node1}}",
			"status: {identity: {id: 131172}, networking: {addressing: [{ipv6: 'fd02::11'}], node: 'fd00:2::10'}}",
		},
		2: {"{metadata: {namespace: prod, name: db-0}, spec: {nodeName: node1}}", `
status:
  id: 4021
  identity: {id: 131173}
  encryption: {key: 3}
  networking: {addressing: [{ipv4: 10.2.0.12}], node: 192.168.2.10}
  named-ports:
  - {name: sctp, port: 7777, protocol: SCTP}
  - {name: http, port: 80, protocol: TCP}
  - {name: admin, port: 9000, protocol: UDP}
  - {name: not_a_name, port: 1, protocol: TCP}
  - {name: odd, port: 1, protocol: ICMP}`},
		3: {"spec: {nodeName: node1}", "status: {identity: {id: 131174}, networking: {addressing: [{ipv4: 10.2.0.13}]}}"},
		9: {
			strings.NewReplacer("NS", strings.Repeat("n", 63), "NAME", strings.Repeat("p", 253)).
				Replace("{metadata: {namespace: NS, name: NAME}, spec: {nodeName: node1}}"),
			"status: {identity: {id: 16777215}, encryption: {key: 255}, networking: {addressing: [{ipv4: 10.2.0.14}], node: 192.168.2.10}}",
		},
		10: {"spec: {nodeName: node1}", "status: {identity: {id: 131178}, networking: {addressing: [{ipv4: '::ffff:10.2.0.15'}]}}"},
		12: {"spec: {nodeName: node1}", "status: {identity: {id: 131179}, networking: {addressing: [{ipv4: 10.2.0.16}]}, named-ports: []}"},
	} {
		t.Run(all[i].Note, func(t *testing.T) {
			t.Parallel()
			pod := object[corev1.Pod](t, c.pod)
			r := podRules{own: cluster2(), node: "node1", defaultGlobal: true}
			endpoint := object[local.CiliumEndpoint](t, c.endpoint)
			endpoint.Namespace, endpoint.Name = pod.Namespace, pod.Name
			changes := newPodCore().want("p", r.wanted(pod, nil, endpoint, true))
			if len(changes) != 1 {
				t.Fatalf("%d entries", len(changes))
			}
			if d := cmp.Diff(string(all[i].Value), string(changes[0].value)); d != "" {
				t.Errorf("the value (-want +got):\n%s", d)
			}
			if key := wire.IPs.Key("", false, changes[0].address); key != all[i].Key {
				t.Errorf("the key is %s, want %s", key, all[i].Key)
			}
		})
	}
}

func TestThePortsOfAPod(t *testing.T) {
	t.Parallel()
	r := podRules{own: cluster2(), node: "node1", defaultGlobal: true}
	w := r.wanted(object[corev1.Pod](t, `
spec:
  nodeName: node1
  containers:
  - ports: [{name: web, containerPort: 80}, {containerPort: 81}, {name: dns, containerPort: 53, protocol: UDP}]
  - ports: [{name: web, containerPort: 8080}, {name: admin, containerPort: 9000, protocol: TCP}]
status: {podIP: 10.2.0.1}`), nil, nil, false)
	want := []wire.NamedPort{{Name: "admin", Port: 9000, Protocol: "TCP"}, {Name: "dns", Port: 53, Protocol: "UDP"}, {Name: "web", Port: 80, Protocol: "TCP"}}
	if d := cmp.Diff(want, w.pairs[0].NamedPorts); d != "" {
		t.Error(d)
	}
}

func TestTheNamedPortsOfAPod(t *testing.T) {
	t.Parallel()
	pod := object[corev1.Pod](t, `
spec:
  initContainers:
  - {name: setup, ports: [{name: gone, containerPort: 7000}]}
  - {name: proxy, restartPolicy: Always, ports: [{name: metrics, containerPort: 9090, protocol: TCP}, {name: http, containerPort: 1}]}
  containers:
  - {name: main, ports: [{name: http, containerPort: 8080}]}
status: {podIP: 10.0.0.1}`)
	var got []string
	for _, p := range pairsOfPod(pod)[0].NamedPorts {
		got = append(got, fmt.Sprint(p.Name, " ", p.Port))
	}
	if d := cmp.Diff([]string{"http 8080", "metrics 9090"}, got); d != "" {
		t.Error(d)
	}
}
