package chart

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestLint: with the defaults and with every example, the only finding is the missing icon. Examples that need rules
// and dashboards are linted when there are some.
func TestLint(t *testing.T) {
	t.Parallel()
	files, err := Copies(deploy)
	waittest.Must(t, err)
	for name, values := range examples(t) {
		if len(files) == 0 && (name == "prometheus" || name == "servicemonitor") {
			continue
		}
		for _, message := range lint.RunAll(filepath.Join(deploy, "chart"), values, Namespace).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, message)
			}
		}
	}
}

// TestTheRealFiles: files/ becomes a PrometheusRule, and a ConfigMap for each dashboard, which has to be small enough.
func TestTheRealFiles(t *testing.T) {
	t.Parallel()
	files, err := Copies(deploy)
	waittest.Must(t, err)
	c, err := loader.Load(filepath.Join(deploy, "chart"))
	waittest.Must(t, err)
	values := map[string]any{}
	if files["rules.yaml"] != nil {
		set("monitoring.rules", map[string]any{"enabled": true, "configMap": true})(values)
	}
	if len(files) > 1 {
		set("monitoring.dashboards.enabled", true)(values)
	}
	got := map[string]string{}
	for _, o := range objects(t, c, values) {
		data, _, err := unstructured.NestedStringMap(o.Object, "data")
		waittest.Must(t, err)
		maps.Copy(got, data)
		if o.GetKind() == "PrometheusRule" {
			var want, spec any
			waittest.Must(t, yaml.Unmarshal(files["rules.yaml"], &want))
			spec = o.Object["spec"]
			same(t, "the rules", want, spec)
		}
	}
	want := map[string]string{}
	for name, data := range files {
		want[path.Base(name)] = string(data)
		if len(data) > 900<<10 {
			t.Errorf("%s is too large for a ConfigMap", name)
		}
	}
	same(t, "files in ConfigMaps", want, got)
}

// TestGoldenExamples: the rendered manifests of each example, without comments.
func TestGoldenExamples(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/chart.md")
	waittest.Must(t, err)
	for name, values := range examples(t) {
		all := objects(t, load(t), values)
		golden(t, filepath.Join("testdata", "golden", name+".yaml"), asText(t, all))
		checkAll(t, name, all)
		if name != "defaults" && !strings.Contains(string(docs), "examples/"+name+".yaml") {
			t.Errorf("docs/chart.md does not name the example %s", name)
		}
	}
}

// TestEveryCombination of the parts that can be turned on separately.
func TestEveryCombination(t *testing.T) {
	t.Parallel()
	c := load(t)
	switches := []func(v map[string]any){
		set("agent.member", true), set("operate.enabled", true), set("operate.endpointSlices", true), set("operate.mcsAPI.enabled", true),
		set("mirror.enabled", true),
		func(v map[string]any) {
			set("agent.dns.enabled", true)(v)
			set("agent.xds.enabled", true)(v)
		},
		func(v map[string]any) {
			set("etcdUsers.enabled", true)(v)
			set("etcd.endpoints", []any{"http://etcd.example:2379"})(v)
		},
		func(v map[string]any) {
			set("api", map[string]any{"host": "::", "tls": map[string]any{"secret": "tls"}})(v)
			set("services.api", true)(v)
		},
	}
	for combination := range 1 << len(switches) {
		values := map[string]any{}
		for i, turn := range switches {
			if combination>>i&1 == 1 {
				turn(values)
			}
		}
		checkAll(t, "a combination", objects(t, c, values))
		if t.Failed() {
			t.Fatalf("with %v", values)
		}
	}
}

// set sets a value at a path with dots.
func set(path string, value any) func(map[string]any) {
	return func(values map[string]any) {
		names := strings.Split(path, ".")
		for _, name := range names[:len(names)-1] {
			below, is := values[name].(map[string]any)
			if !is {
				below = map[string]any{}
				values[name] = below
			}
			values = below
		}
		values[names[len(names)-1]] = value
	}
}

// checkAll checks that every pod is as restricted as those of the plain manifests, and that the objects that a part
// needs exist.
func checkAll(t *testing.T, name string, all []*unstructured.Unstructured) {
	t.Helper()
	accounts, workloads := map[string]bool{}, map[string]bool{}
	for _, o := range all {
		if o.GetKind() == "ServiceAccount" {
			accounts[o.GetName()] = true
		}
		template, is := pod(t, o)
		if !is {
			continue
		}
		workloads[template.Spec.ServiceAccountName] = true
		checkPod(t, name+": "+named(o), template)
	}
	same(t, name+": accounts", slices.Sorted(maps.Keys(workloads)), slices.Sorted(maps.Keys(accounts)))
}

func checkPod(t *testing.T, name string, template corev1.PodTemplateSpec) {
	t.Helper()
	spec := template.Spec
	same(t, name+": containers", 1, len(spec.Containers)+len(spec.InitContainers))
	same(t, name+": pod", &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)), FSGroup: new(int64(65532)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}, spec.SecurityContext)
	container := spec.Containers[0]
	same(t, name+": container", &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Privileged: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}, container.SecurityContext)
	if spec.HostPID || spec.HostIPC || spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
		t.Errorf("%s sees processes of the node, or variables of Services", name)
	}
	var volumes, mounts, ports, variables []string
	for _, v := range spec.Volumes {
		volumes = append(volumes, v.Name)
		if v.HostPath != nil {
			t.Errorf("%s: volume %s is a directory of the node", name, v.Name)
		}
	}
	for _, m := range container.VolumeMounts {
		mounts = append(mounts, m.Name)
	}
	for _, p := range container.Ports {
		ports = append(ports, p.Name)
		if spec.HostNetwork != (p.HostPort == p.ContainerPort) {
			t.Errorf("%s: port %+v", name, p)
		}
	}
	for _, v := range container.Env {
		variables = append(variables, v.Name)
	}
	slices.Sort(volumes)
	slices.Sort(mounts)
	same(t, name+": volumes that are mounted", volumes, mounts)
	for what, names := range map[string][]string{"volumes": volumes, "ports": ports, "variables": variables} {
		slices.Sort(names)
		if len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("%s: %s %v", name, what, names)
		}
	}
}
