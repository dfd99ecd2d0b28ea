package install

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
	"github.com/mesh-agent/mesh-agent/test/chart"
)

func goldenOf(example string) string {
	return filepath.Join("..", "testdata", "golden", example+".yaml")
}

// TestInstallEveryExample: after the installation the API server has the golden objects, and after the deletion of the
// release only those that must stay.
func TestInstallEveryExample(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files, err := filepath.Glob(goldenOf("*"))
	waittest.Must(t, err)
	if len(files) < 10 {
		t.Fatalf("the golden files are %v", files)
	}
	for _, file := range files {
		example := strings.TrimSuffix(filepath.Base(file), ".yaml")
		given := values(t, example)
		if users, has := given["etcdUsers"].(map[string]any); has {
			users["enabled"] = false // TestTheJobRunsFirst tests the job
		}
		if err := w.install(t, load(t, filepath.Join(deploy, "chart")), given); err != nil {
			t.Fatalf("%s: %v", example, err)
		}
		want := golden(t, file)
		w.check(t, want)
		w.uninstall(t)
		w.checkGone(t)
		if t.Failed() {
			t.Fatalf("with the example %s", example)
		}
	}
}

// checkGone checks that only the definition of identities is left, and deletes it.
func (w *world) checkGone(t *testing.T) {
	t.Helper()
	kept := w.made(t)
	if len(kept) > 0 && !slices.Equal(kept, []string{"CustomResourceDefinition ciliumidentities.cilium.io"}) {
		t.Errorf("left after the release: %v", kept)
	}
	for _, name := range kept {
		kind, name, _ := strings.Cut(name, " ")
		w.Delete(t, "apiVersion: apiextensions.k8s.io/v1\nkind: "+kind+"\nmetadata: {name: "+name+"}\n")
	}
	// A definition exists until its objects are deleted.
	waittest.Until(t, "nothing to be left", func() bool { return len(w.made(t)) == 0 })
}

// TestUpgradeAndRollback: from the release before, whose chart is in testdata, with more values, back again, and
// uninstalled.
func TestUpgradeAndRollback(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	previous, current := load(t, filepath.Join("..", "testdata", "previous")), load(t, filepath.Join(deploy, "chart"))
	if previous.Metadata.Version == current.Metadata.Version {
		t.Fatalf("both charts are of version %s", current.Metadata.Version)
	}
	small, large := values(t, "identities"), values(t, "prometheus")
	waittest.Must(t, w.install(t, previous, small))
	w.check(t, rendered(t, previous, small))
	waittest.Must(t, w.upgrade(t, current, small)) // the old values are still valid
	w.check(t, golden(t, goldenOf("identities")))
	waittest.Must(t, w.upgrade(t, current, large))
	// Objects that must stay no longer belong to the release.
	definition := "CustomResourceDefinition ciliumidentities.cilium.io"
	w.checkBeside(t, definition, golden(t, goldenOf("prometheus")))
	waittest.Must(t, w.rollback(t, 1))
	w.check(t, rendered(t, previous, small))
	waittest.Must(t, w.rollback(t, 3))
	w.checkBeside(t, definition, golden(t, goldenOf("prometheus")))
	w.uninstall(t)
	w.checkGone(t)
}

// TestARefusedUpgradeChangesNothing: with a refusal by the schema, by a template and by the API server.
func TestARefusedUpgradeChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := load(t, filepath.Join(deploy, "chart"))
	waittest.Must(t, w.install(t, c, values(t, "mirror")))
	for message, values := range map[string]map[string]any{
		"/agent/port": {"agent": map[string]any{"port": "http"}},
		"api.host: ":  {"api": map[string]any{"host": "0.0.0.0"}},
		"strategy":    {"agent": map[string]any{"extraVolumes": []any{map[string]any{"name": "a", "strategy": 1}}}},
	} {
		if err := w.upgrade(t, c, values); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%v: %v", values, err)
		}
		w.check(t, golden(t, goldenOf("mirror")))
	}
	// The next upgrade continues from there.
	waittest.Must(t, w.upgrade(t, c, values(t, "mcs")))
	w.check(t, golden(t, goldenOf("mcs")))
}

// TestFromThePlainManifests: Helm can take over the objects that a user applied.
func TestFromThePlainManifests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, file := range []string{"mesh-agent.yaml", "operate.yaml", "endpointslices.yaml"} {
		w.Apply(t, documents(t, filepath.Join(deploy, file))...)
	}
	c := load(t, filepath.Join(deploy, "chart"))
	if err := w.install(t, c, values(t, "endpointslices")); err == nil || !strings.Contains(err.Error(), "cannot be imported") {
		t.Errorf("objects that somebody else has made: %v", err)
	}
	waittest.Must(t, w.install(t, c, values(t, "endpointslices"), func(i *action.Install) {
		i.TakeOwnership, i.ForceConflicts, i.Replace = true, true, true // Replace: the failed release
	}))
	w.check(t, golden(t, goldenOf("endpointslices")))
	w.uninstall(t)
	w.checkGone(t)
	if _, err := w.objects.Resource(daemons).Namespace(chart.Namespace).Get(t.Context(), "mesh-agent", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the DaemonSet: %v", err)
	}
}
