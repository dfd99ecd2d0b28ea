package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
)

// cell is a place in the matrix.
type cell struct {
	release   string
	path      interop.Path
	direction interop.Direction
	kind      model.Kind
}

// results are all results of a run, those of one cell added up.
type results struct {
	cells  map[cell]interop.Result
	trials []interop.Trial
}

func read(dir string) (results, error) {
	all := results{cells: map[cell]interop.Result{}}
	if _, err := os.ReadDir(dir); err != nil { // a pattern matches nothing in a folder that is not there
		return all, err
	}
	err := each(dir, "results", func(r interop.Result) {
		c := cell{r.Release, r.Path, r.Direction, r.Kind}
		all.cells[c] = sum(all.cells[c], r)
	})
	if err != nil {
		return all, err
	}
	err = each(dir, "trials", func(t interop.Trial) { all.trials = append(all.trials, t) })
	return all, err
}

// sum adds a result to those of the same cell.
func sum(a, b interop.Result) interop.Result {
	b.Objects += a.Objects
	b.Different += a.Different
	b.Rejected += a.Rejected
	b.Seed = cmp.Or(b.Seed, a.Seed)
	return b
}

// each reads the values of all files of a folder with this ending, in the order of
// the files' names.
func each[T any](dir, ending string, add func(T)) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*."+ending))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := eachOf(path, add); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func eachOf[T any](path string, add func(T)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	values := json.NewDecoder(f)
	for {
		var v T
		if err := values.Decode(&v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		add(v)
	}
}
