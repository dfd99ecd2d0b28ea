package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

const modules = "node_modules/"

// bundle makes the files of the page, and says which packages of npm have code in them.
func bundle() (files map[string][]byte, used []string, err error) {
	work, err := os.Getwd()
	if err != nil {
		return nil, nil, err
	}
	files = make(map[string][]byte)
	worker, used, err := build(work, files, nil, "src/worker.ts")
	if err != nil {
		return nil, nil, err
	}
	of := map[string]string{"WORKER": strconv.Quote("./" + path.Base(worker[".js"]))}
	names, more, err := build(work, files, of, "src/app.tsx", "src/app.css", "src/icon.svg")
	if err != nil {
		return nil, nil, err
	}
	if files["index.html"], err = indexOf(names); err != nil {
		return nil, nil, err
	}
	used = append(used, more...)
	slices.Sort(used)
	return files, slices.Compact(used), nil
}

// build adds the files that sources make, with values for names in them. It returns the names of the files, by what follows
// their last dot, and the packages of npm.
func build(work string, files map[string][]byte, values map[string]string, sources ...string) (names map[string]string, used []string, err error) {
	r := api.Build(api.BuildOptions{
		EntryPoints: sources, Define: values,
		EntryNames: "assets/[name]-[hash]",
		Outdir:     filepath.Join(work, "out"), // only for the names: nothing is written there
		Loader:     map[string]api.Loader{".svg": api.LoaderCopy},
		Bundle:     true, Metafile: true,
		Format: api.FormatESModule, Target: api.ES2022,
		JSX: api.JSXAutomatic, JSXImportSource: "preact",
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true,
		LegalComments: api.LegalCommentsNone, // the licenses are in ui/licenses, and in the notices of the program
		LogLevel:      api.LogLevelWarning,
	})
	if len(r.Errors) > 0 {
		return nil, nil, errors.New("see above")
	}
	names = make(map[string]string)
	for _, f := range r.OutputFiles {
		name, err := filepath.Rel(filepath.Join(work, "out"), f.Path)
		if err != nil {
			return nil, nil, err
		}
		name = filepath.ToSlash(name)
		files[name], names[filepath.Ext(name)] = f.Contents, name
	}
	used, err = usedOf(r.Metafile)
	return names, used, err
}

// indexOf puts the names of the files into the page.
func indexOf(names map[string]string) ([]byte, error) {
	text, err := os.ReadFile("src/index.html")
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{".js", ".css", ".svg"} {
		mark := "{" + strings.TrimPrefix(kind, ".") + "}"
		if names[kind] == "" || strings.Count(string(text), mark) != 1 {
			return nil, fmt.Errorf("src/index.html needs %s once, and the sources a file for it", mark)
		}
		text = []byte(strings.Replace(string(text), mark, names[kind], 1))
	}
	return text, nil
}

var packageOf = regexp.MustCompile(`^` + modules + `((?:@[^/]+/)?[^/]+)/`)

// usedOf reads what esbuild says of its inputs.
func usedOf(metafile string) ([]string, error) {
	var meta struct {
		Inputs map[string]json.RawMessage `json:"inputs"`
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, err
	}
	all := make(map[string]bool)
	for input := range meta.Inputs {
		if m := packageOf.FindStringSubmatch(input); m != nil {
			all[m[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// licensesOf are the licenses of packages, each in a directory "NAME@VERSION", from where the
// collector of the program's notices has them.
func licensesOf(packages []string) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, name := range packages {
		var of struct{ Version string }
		text, err := os.ReadFile(modules + name + "/package.json")
		if err == nil {
			err = json.Unmarshal(text, &of)
		}
		if err != nil {
			return nil, err
		}
		license, err := os.ReadFile(modules + name + "/LICENSE")
		if err != nil {
			return nil, fmt.Errorf("the license of %s: %w", name, err)
		}
		files[strings.ReplaceAll(name, "/", "+")+"@"+of.Version+"/LICENSE"] = license
	}
	return files, nil
}
