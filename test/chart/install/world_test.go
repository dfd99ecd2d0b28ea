package install

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
	"github.com/mesh-agent/mesh-agent/test/chart"
)

const (
	release = "mesh"
	deploy  = "../../../deploy"
	// patience is the limit for hooks, the only objects for which Helm waits.
	patience = 2 * time.Minute
)

// world is an API server, with the kinds of the Prometheus operator defined, and Helm.
type world struct {
	*kubetest.Server
	objects dynamic.Interface
	flags   *genericclioptions.ConfigFlags
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := kubetest.Start(t)
	w := &world{Server: s, objects: s.Client(t)}
	w.Apply(t, documents(t, "testdata/operator.yaml")...)
	config := s.Config(kubetest.Admin)
	client, err := rest.HTTPClientFor(config)
	waittest.Must(t, err)
	t.Cleanup(client.CloseIdleConnections)
	// All clients of Helm share the connections of this client, which end with the test.
	shared := &rest.Config{Host: config.Host, Transport: client.Transport, QPS: -1, WarningHandler: rest.NoWarnings{}}
	w.flags = genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(*rest.Config) *rest.Config { return shared })
	kubeconfig, cache, namespace := s.Kubeconfig(t, s.Addr(), kubetest.Admin), t.TempDir(), chart.Namespace
	w.flags.KubeConfig, w.flags.CacheDir, w.flags.Namespace = &kubeconfig, &cache, &namespace
	w.awaitOperator(t)
	return w
}

// awaitOperator waits until the API server serves the kinds of the Prometheus operator.
func (w *world) awaitOperator(t *testing.T) {
	t.Helper()
	discovery, err := w.flags.ToDiscoveryClient()
	waittest.Must(t, err)
	for version, kinds := range map[string]int{"v1": 3, "v1alpha1": 1} {
		waittest.Until(t, "the kinds of monitoring.coreos.com/"+version, func() bool {
			discovery.Invalidate()
			list, err := discovery.ServerResourcesForGroupVersion("monitoring.coreos.com/" + version)
			return err == nil && len(list.APIResources) == kinds
		})
	}
}

// helm is the configuration of an invocation of the command.
func (w *world) helm(t *testing.T) *action.Configuration {
	t.Helper()
	c := action.NewConfiguration(action.ConfigurationSetLogger(slog.NewTextHandler(io.Discard, nil)))
	waittest.Must(t, c.Init(w.flags, chart.Namespace, "secrets"))
	return c
}

func (w *world) install(t *testing.T, c *chartv2.Chart, values map[string]any, with ...func(*action.Install)) error {
	t.Helper()
	i := action.NewInstall(w.helm(t))
	i.ReleaseName, i.Namespace, i.WaitStrategy, i.Timeout = release, chart.Namespace, kube.HookOnlyStrategy, patience
	for _, change := range with {
		change(i)
	}
	_, err := i.RunWithContext(t.Context(), c, values)
	return err
}

func (w *world) upgrade(t *testing.T, c *chartv2.Chart, values map[string]any) error {
	t.Helper()
	u := action.NewUpgrade(w.helm(t))
	u.Namespace, u.WaitStrategy, u.Timeout = chart.Namespace, kube.HookOnlyStrategy, patience
	_, err := u.RunWithContext(t.Context(), release, c, values)
	return err
}

func (w *world) rollback(t *testing.T, revision int) error {
	t.Helper()
	r := action.NewRollback(w.helm(t))
	r.Version, r.WaitStrategy, r.Timeout = revision, kube.HookOnlyStrategy, patience
	return r.Run(release)
}

func (w *world) uninstall(t *testing.T) {
	t.Helper()
	u := action.NewUninstall(w.helm(t))
	u.WaitStrategy, u.Timeout = kube.HookOnlyStrategy, patience
	_, err := u.Run(release)
	waittest.Must(t, err)
}

// load reads a chart from a directory; the one of deploy/ gets the rules and dashboards of the golden files.
func load(t *testing.T, dir string) *chartv2.Chart {
	t.Helper()
	c, err := loader.Load(dir)
	waittest.Must(t, err)
	if dir == filepath.Join(deploy, "chart") {
		c.Files = chart.Sample()
	}
	return c
}

func values(t *testing.T, example string) map[string]any {
	t.Helper()
	var values map[string]any
	if example != "defaults" {
		text, err := os.ReadFile(filepath.Join(deploy, "chart", "examples", example+".yaml"))
		waittest.Must(t, err)
		waittest.Must(t, yaml.UnmarshalStrict(text, &values))
	}
	return values
}

func documents(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	waittest.Must(t, err)
	return chart.Documents(strings.TrimPrefix(string(text), "---\n"))
}

// golden are the objects of a golden file, without the hooks, which are removed after they have run.
func golden(t *testing.T, file string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, document := range documents(t, file) {
		if o := object(t, document); o.GetAnnotations()["helm.sh/hook"] == "" {
			all = append(all, o)
		}
	}
	return all
}

// rendered are the objects of a chart with values, in the same form.
func rendered(t *testing.T, c *chartv2.Chart, values map[string]any) (all []*unstructured.Unstructured) {
	t.Helper()
	texts, err := chart.Render(c, values)
	waittest.Must(t, err)
	for _, text := range texts {
		for _, document := range chart.Documents(text) {
			if o := object(t, document); o.GetAnnotations()["helm.sh/hook"] == "" {
				all = append(all, o)
			}
		}
	}
	return all
}

// object reads numbers as the API server's client does.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	waittest.Must(t, err)
	o := new(unstructured.Unstructured)
	waittest.Must(t, o.UnmarshalJSON(data))
	return o
}

func resource(o *unstructured.Unstructured) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return plural
}

// check checks that Helm has made exactly these objects: each has all the given fields, in addition to those that the
// API server sets.
func (w *world) check(t *testing.T, want []*unstructured.Unstructured) {
	t.Helper()
	w.checkBeside(t, "", want)
}

// checkBeside is check, with an object of an earlier revision that also has to exist.
func (w *world) checkBeside(t *testing.T, kept string, want []*unstructured.Unstructured) {
	t.Helper()
	var names []string
	if kept != "" {
		names = append(names, kept)
	}
	for _, o := range want {
		names = append(names, named(o))
		got, err := w.objects.Resource(resource(o)).Namespace(o.GetNamespace()).Get(t.Context(), o.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Errorf("%s: %v", named(o), err)
			continue
		}
		if diff := cmp.Diff(o.Object, given(o.Object, got.Object)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", named(o), diff)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, w.made(t)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

// given returns the part of a live object with the fields of a given object.
func given(o, live any) any {
	switch o := o.(type) {
	case map[string]any:
		of, is := live.(map[string]any)
		if !is {
			return live
		}
		same := map[string]any{}
		for name, value := range o {
			if got, has := of[name]; has {
				same[name] = given(value, got)
			}
		}
		return same
	case []any:
		of, is := live.([]any)
		if !is || len(of) != len(o) {
			return live
		}
		same := make([]any, len(o))
		for i := range o {
			same[i] = given(o[i], of[i])
		}
		return same
	}
	return live
}

func named(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }

// made lists the objects that Helm has made, of every kind that a chart may have.
func (w *world) made(t *testing.T) (names []string) {
	t.Helper()
	for _, of := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "serviceaccounts"},
		{Version: "v1", Resource: "configmaps"},
		{Version: "v1", Resource: "services"},
		{Version: "v1", Resource: "secrets"},
		{Group: "apps", Version: "v1", Resource: "daemonsets"},
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "batch", Version: "v1", Resource: "jobs"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: "monitoring.coreos.com", Version: "v1", Resource: "podmonitors"},
		{Group: "monitoring.coreos.com", Version: "v1", Resource: "servicemonitors"},
		{Group: "monitoring.coreos.com", Version: "v1", Resource: "prometheusrules"},
		{Group: "monitoring.coreos.com", Version: "v1alpha1", Resource: "scrapeconfigs"},
	} {
		list, err := w.objects.Resource(of).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=Helm"})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		for i := range list.Items {
			names = append(names, named(&list.Items[i]))
		}
	}
	slices.Sort(names)
	return names
}
