package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// full writes a result for every cell that there must be, changed by change.
func full(t *testing.T, releases []string, change func(*interop.Result)) *report {
	t.Helper()
	dir := t.TempDir()
	r := &report{Releases: releases, Date: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Version: "v1"}
	var lines strings.Builder
	for _, c := range r.columns() {
		for _, d := range []interop.Direction{interop.TheyWrite, interop.WeWrite} {
			for _, k := range model.Kinds() {
				result := interop.Result{Release: c.release, Path: c.path, Direction: d, Kind: k, Objects: 5000}
				change(&result)
				text, err := json.Marshal(result)
				if err != nil {
					t.Fatal(err)
				}
				lines.Write(append(text, '\n'))
			}
		}
	}
	for _, test := range []string{"TestA", "TestB"} {
		if err := os.WriteFile(filepath.Join(dir, test+".results"), []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if r.results, err = read(dir); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResultsOfOneCellAddUp(t *testing.T) {
	t.Parallel()
	r := full(t, []string{"1.16.2", interop.Newest}, func(*interop.Result) {})
	text := r.markdown()
	if err := r.verdict(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"| | 1.16.2 values | 1.20.2 values | 1.20.2 direct | 1.20.2 KVStoreMesh | 1.20.2 our mirror |",
		"| nodes | ✓ 10,000 | ✓ 10,000 | ✓ 10,000 | ✓ 10,000 | ✓ 10,000 |",
		"| endpointslices | –¹ | ✓ 10,000 |",
		"| serviceexports | –² | ✓ 10,000 |",
		"¹ endpoint slices exist since 1.20.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
}

func TestADifferenceARejectionAndAHoleAreNotGreen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*interop.Result)
		want   string
	}{
		"a difference": {func(r *interop.Result) { r.Different = 1 }, "of 10000 objects 2 differ and 0 were rejected"},
		"a rejection":  {func(r *interop.Result) { r.Rejected = 1 }, "of 10000 objects 0 differ and 2 were rejected"},
		"no objects":   {func(r *interop.Result) { r.Objects = 0 }, "was not tested"},
		"another path": {func(r *interop.Result) { r.Path = "elsewhere" }, "was not tested"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := full(t, []string{interop.Newest}, func(result *interop.Result) {
				if result.Kind == model.Services {
					c.change(result)
				}
			})
			r.markdown()
			if err := r.verdict(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the verdict is %v, it must say %q", err, c.want)
			}
		})
	}
}
