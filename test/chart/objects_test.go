package chart

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// objects renders a chart and reads the result like a strict API server: a field that the kind does not have, in this
// spelling, is an error, and also a duplicate field.
func objects(t *testing.T, c *chartv2.Chart, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	texts, err := Render(c, values)
	waittest.Must(t, err)
	var all []*unstructured.Unstructured
	for name, text := range texts {
		for _, document := range Documents(text) {
			all = append(all, object(t, name, document))
		}
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return cmp.Compare(named(a), named(b)) })
	for i := 1; i < len(all); i++ {
		if named(all[i]) == named(all[i-1]) {
			t.Errorf("%s is there twice", named(all[i]))
		}
	}
	return all
}

// named is an object's kind, namespace and name.
func named(o *unstructured.Unstructured) string {
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

func object(t *testing.T, file, text string) *unstructured.Unstructured {
	t.Helper()
	o := new(unstructured.Unstructured)
	if err := yaml.UnmarshalStrict([]byte(text), &o.Object); err != nil {
		t.Fatalf("%s: %v in\n%s", file, err, text)
	}
	if o.GetKind() == "CustomResourceDefinition" {
		return o // the types of the API server itself are not here; the real API server reads it
	}
	scheme := runtime.NewScheme()
	waittest.Must(t, clientscheme.AddToScheme(scheme))
	waittest.Must(t, monitoringv1.AddToScheme(scheme))
	waittest.Must(t, monitoringv1alpha1.AddToScheme(scheme))
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	if _, _, err := strict.Decode([]byte(text), nil, nil); err != nil {
		t.Fatalf("%s: %v in\n%s", file, err, text)
	}
	return o
}

// asText returns a list of objects as normalized text, without comments.
func asText(t *testing.T, all []*unstructured.Unstructured) string {
	t.Helper()
	var text strings.Builder
	for _, o := range all {
		one, err := yaml.Marshal(o.Object)
		waittest.Must(t, err)
		text.WriteString("---\n" + string(one))
	}
	return text.String()
}

// pod is the pod of a workload.
func pod(t *testing.T, o *unstructured.Unstructured) (corev1.PodTemplateSpec, bool) {
	t.Helper()
	var template corev1.PodTemplateSpec
	found, is, err := unstructured.NestedMap(o.Object, "spec", "template")
	waittest.Must(t, err)
	if is {
		waittest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(found, &template))
	}
	return template, is
}

// find is the object of a kind and name.
func find(t *testing.T, all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if i < 0 {
		t.Fatalf("there is no %s %s", kind, name)
	}
	return all[i]
}
