package chart

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var update = flag.Bool("update", false, "write the golden files")

const deploy = "../../deploy"

// load reads the chart, with [Sample] instead of files/.
func load(t *testing.T) *chartv2.Chart {
	t.Helper()
	c, err := loader.Load(filepath.Join(deploy, "chart"))
	waittest.Must(t, err)
	c.Files = Sample()
	return c
}

// examples are the values files of deploy/chart/examples, by their names without .yaml.
func examples(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(deploy, "chart", "examples", "*.yaml"))
	waittest.Must(t, err)
	all := map[string]map[string]any{"defaults": {}}
	for _, file := range files {
		var values map[string]any
		read(t, file, &values)
		all[strings.TrimSuffix(filepath.Base(file), ".yaml")] = values
	}
	if len(all) < 10 {
		t.Fatalf("the examples are %v", slices.Sorted(maps.Keys(all)))
	}
	return all
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	waittest.Must(t, err)
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// golden compares a text with that of a file, or writes it with -update.
func golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		waittest.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		waittest.Must(t, os.WriteFile(file, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	waittest.Must(t, err)
	same(t, file+" (go test -update writes it)", string(want), text)
}
