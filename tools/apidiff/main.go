// Command apidiff refuses incompatible changes of the exported API of pkg since the last release, unless CHANGELOG.md
// names the package under Unreleased, below Changed, as in `pkg/wire`. The library golang.org/x/exp/apidiff finds the
// changes, and decides which of them are incompatible.
//
// The API of the last release is in base.txtar: the sources of pkg without comments, bodies, and functions that are not
// exported. A committed base needs no tag, no history, which a shallow clone lacks, and no network, and it can be read
// in a review. The export data of apidiff would be 1.3 MB in binary form, with the types of other modules. Packages
// outside of pkg are those of now: another version of a module is no change by itself.
//
// The base says which release it is of. When CHANGELOG.md has a newer one, the base is refused, and -update writes that
// of the new release. Before the first release, the base is the API at the time when 0.1.0 was first written there.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/txtar"
)

func main() {
	update := flag.Bool("update", false, "write the base: the API of now is that of the last release")
	flag.Parse()
	if err := run(".", *update); err != nil {
		fmt.Fprintln(os.Stderr, "the API of pkg:", err)
		os.Exit(1)
	}
}

// base is the file with the API of the last release.
const base = "tools/apidiff/base.txtar"

var (
	released   = regexp.MustCompile(`(?m)^## \[?(\d+\.\d+\.\d+)`)
	unreleased = regexp.MustCompile(`(?ms)^## \[?Unreleased.*?(^## |\z)`)
	changed    = regexp.MustCompile(`(?ms)^### Changed.*?(^##|\z)`)
)

// run compares the project in a directory with its base, or writes the base.
func run(dir string, update bool) error {
	changelog, err := os.ReadFile(filepath.Join(dir, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	title := "The API of pkg before the first release\n"
	if last := released.FindSubmatch(changelog); last != nil {
		title = fmt.Sprintf("The API of pkg in %s\n", last[1])
	}
	now, err := load(dir)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, base)
	if update {
		archive, err := sources(now)
		if err != nil {
			return err
		}
		archive.Comment = []byte(title)
		return os.WriteFile(file, txtar.Format(archive), 0o644)
	}
	archive, err := txtar.ParseFile(file)
	if err != nil {
		return err
	}
	if string(archive.Comment) != title {
		return fmt.Errorf("CHANGELOG.md has a newer release than %s (want %q in it): run go run ./tools/apidiff -update", base, title)
	}
	refused, err := compare(archive, now, string(changed.Find(unreleased.Find(changelog))))
	if err != nil || len(refused) == 0 {
		return err
	}
	return errors.New("these changes since the last release are incompatible:\n\t" + strings.Join(refused, "\n\t") + "\n" +
		"Keep what importers use, or tell them in CHANGELOG.md, under Unreleased, below Changed, what they have to change, and name the package as above, in backquotes.")
}

// load returns the packages of the project that a program outside can import.
func load(dir string) ([]*packages.Package, error) {
	mode := packages.LoadTypes | packages.NeedDeps | packages.NeedExportFile | packages.NeedModule
	all, err := packages.Load(&packages.Config{Mode: mode, Dir: dir}, "./pkg/...")
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			err = errors.Join(err, e)
		}
	})
	return slices.DeleteFunc(all, func(p *packages.Package) bool { return strings.Contains(p.PkgPath, "/internal/") }), err
}

// sources are those of the packages, as they are in the base. The names of the files begin with that of the package.
func sources(now []*packages.Package) (*txtar.Archive, error) {
	archive, fset := &txtar.Archive{}, token.NewFileSet()
	for _, p := range now {
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			f.Decls = slices.DeleteFunc(f.Decls, func(d ast.Decl) bool {
				function, is := d.(*ast.FuncDecl)
				if is {
					function.Body = nil
				}
				return is && !function.Name.IsExported()
			})
			var text bytes.Buffer
			if err := format.Node(&text, fset, f); err != nil {
				return nil, err
			}
			name := path.Join(strings.TrimPrefix(p.PkgPath, p.Module.Path+"/"), filepath.Base(file))
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: text.Bytes()})
		}
	}
	return archive, nil
}

// compare returns the incompatible changes of packages that the changelog does not name.
func compare(archive *txtar.Archive, now []*packages.Package, changelog string) (refused []string, err error) {
	current := make(map[string]*types.Package)
	packages.Visit(now, nil, func(p *packages.Package) { current[p.PkgPath] = p.Types })
	module, fset, files := now[0].Module.Path+"/", token.NewFileSet(), make(map[string][]*ast.File)
	for _, file := range archive.Files {
		f, err := parser.ParseFile(fset, file.Name, file.Data, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files[module+path.Dir(file.Name)] = append(files[module+path.Dir(file.Name)], f)
	}
	old := make(map[string]*types.Package)
	var find importer
	find = func(name string) (*types.Package, error) {
		switch {
		case files[name] == nil && current[name] == nil:
			return nil, fmt.Errorf("there is no package %s", name)
		case files[name] == nil:
			return current[name], nil
		case old[name] == nil:
			// Without bodies, there are imports that nothing uses: such errors do not matter.
			old[name], _ = (&types.Config{Importer: find, IgnoreFuncBodies: true, Error: func(error) {}}).Check(name, fset, files[name], nil)
		}
		return old[name], nil
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		short := "`" + strings.TrimPrefix(name, module) + "`: "
		was, err := find(name)
		switch is := current[name]; {
		case err != nil:
			return nil, err
		case strings.Contains(changelog, strings.TrimSuffix(short, ": ")):
		case is == nil:
			refused = append(refused, short+"removed")
		default:
			for _, change := range apidiff.Changes(was, is).Changes {
				if !change.Compatible {
					refused = append(refused, short+change.Message)
				}
			}
		}
	}
	return refused, nil
}

// importer is a function that implements types.Importer.
type importer func(name string) (*types.Package, error)

func (i importer) Import(name string) (*types.Package, error) { return i(name) }
