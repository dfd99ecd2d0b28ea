package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestThePlainManifestsAreRendered: the chart renders each file of deploy/.
func TestThePlainManifestsAreRendered(t *testing.T) {
	t.Parallel()
	texts, err := Plain(load(t))
	waittest.Must(t, err)
	files, err := filepath.Glob(filepath.Join(deploy, "*.yaml"))
	waittest.Must(t, err)
	var names []string
	for _, file := range files {
		name := filepath.Base(file)
		names = append(names, name)
		text, err := os.ReadFile(file)
		waittest.Must(t, err)
		same(t, "deploy/"+name+" (make manifests writes it)", string(text), texts[name])
		for i, line := range strings.Split(texts[name], "\n") {
			if line != strings.TrimRight(line, " ") || line == "" && i < strings.Count(texts[name], "\n") {
				t.Errorf("deploy/%s, line %d is empty or ends with spaces", name, i+1)
			}
		}
	}
	same(t, "files", names, slices.Sorted(maps.Keys(texts)))
}

// TestThePatchesDoWhatTheValuesDo: a plain manifest with its patch equals the chart's with the value.
func TestThePatchesDoWhatTheValuesDo(t *testing.T) {
	t.Parallel()
	texts, err := Plain(load(t))
	waittest.Must(t, err)
	for _, of := range []struct {
		manifest, kind, name string
		patches              []string
		values               map[string]any
		into                 any
	}{
		{"mesh-agent.yaml", "DaemonSet", "mesh-agent", []string{"mesh-agent-member.yaml"}, map[string]any{"agent": map[string]any{"member": true}}, appsv1.DaemonSet{}},
		{
			"operate.yaml", "Deployment", "mesh-agent-operate",
			[]string{"operate-endpointslices.yaml", "operate-mcs.yaml"},
			map[string]any{"operate": map[string]any{"enabled": true, "endpointSlices": true, "mcsAPI": map[string]any{"enabled": true}}},
			appsv1.Deployment{},
		},
	} {
		var patched []byte
		for _, document := range Documents(texts[of.manifest]) {
			if o := object(t, of.manifest, document); o.GetKind() == of.kind {
				patched = asJSON(t, o.Object)
			}
		}
		for _, patch := range of.patches {
			patched, err = strategicpatch.StrategicMergePatch(patched, asJSON(t, object(t, patch, texts[patch]).Object), of.into)
			waittest.Must(t, err)
		}
		var got map[string]any
		waittest.Must(t, json.Unmarshal(patched, &got))
		want := find(t, objects(t, load(t), of.values), of.kind, of.name)
		same(t, of.name, sorted(t, want.Object), sorted(t, got))
	}
}

// sorted is a workload with its lists in a fixed order.
func sorted(t *testing.T, object map[string]any) corev1.PodTemplateSpec {
	t.Helper()
	var o struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	waittest.Must(t, json.Unmarshal(asJSON(t, object), &o))
	spec := &o.Spec.Template.Spec
	slices.SortFunc(spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(spec.Containers[0].VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(spec.Containers[0].Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	return o.Spec.Template
}

func asJSON(t *testing.T, object map[string]any) []byte {
	t.Helper()
	text, err := json.Marshal(runtime.DeepCopyJSON(object))
	waittest.Must(t, err)
	return text
}

// TestTheChartHasWhatPrometheusAndGrafanaGet: a chart can only read its own folder.
func TestTheChartHasWhatPrometheusAndGrafanaGet(t *testing.T) {
	t.Parallel()
	from, err := Monitoring(deploy)
	waittest.Must(t, err)
	copies, err := Copies(deploy)
	waittest.Must(t, err)
	same(t, "files (make manifests copies them)", from, copies)
}

// TestCopying: new files are added, changed ones replaced, and removed ones deleted.
func TestCopying(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	waittest.Must(t, CopyMonitoring(dir)) // the directory is empty
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		waittest.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		waittest.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("monitoring/rules.yaml", "groups: []\n")
	write("monitoring/dashboards/mesh.json", "{}")
	write("monitoring/notes.txt", "not for the chart")
	write("chart/files/rules.yaml", "old")
	write("chart/files/dashboards/old.json", "{}")
	waittest.Must(t, CopyMonitoring(dir))
	got, err := Copies(dir)
	waittest.Must(t, err)
	same(t, "copies", map[string][]byte{"rules.yaml": []byte("groups: []\n"), "dashboards/mesh.json": []byte("{}")}, got)
	if _, err := os.Stat(filepath.Join(dir, "chart", "files", "notes.txt")); !os.IsNotExist(err) {
		t.Errorf("notes.txt: %v", err)
	}
}
