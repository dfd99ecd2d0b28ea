// Command build makes the page of package ui from its sources, with esbuild as a library: no Node
// takes part. It is run in the directory ui, after npm has put the libraries into node_modules there.
//
//	build           writes internal/serve/ui/dist and ui/licenses
//	build -check    says what of them is not as it would be written, and exits with 1
//
// The same sources give the same bytes on every machine: names have hashes of contents, and nothing
// has a time or a path of the machine in it.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "compare instead of writing")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "building the page:", err)
		os.Exit(1)
	}
}

const (
	dist     = "../internal/serve/ui/dist"
	licenses = "licenses"
)

func run(check bool) error {
	page, used, err := bundle()
	if err != nil {
		return err
	}
	texts, err := licensesOf(used)
	if err != nil {
		return err
	}
	if page, err = zipped(page); err != nil {
		return err
	}
	for dir, files := range map[string]map[string][]byte{dist: page, licenses: texts} {
		act := write
		if check {
			act = compare
		}
		if err := act(dir, files); err != nil {
			return err
		}
	}
	return nil
}

// zipped returns the files in the program's form: compressed, with the extension .gz.
func zipped(files map[string][]byte) (map[string][]byte, error) {
	all := make(map[string][]byte)
	for name, plain := range files {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
		if err != nil {
			return nil, err
		}
		_, err = w.Write(plain)
		if err := errors.Join(err, w.Close()); err != nil {
			return nil, err
		}
		all[name+".gz"] = b.Bytes()
	}
	return all, nil
}

// contents returns the contents of a file, uncompressed: releases of Go may compress differently.
func contents(name string, read func(name string) ([]byte, error)) ([]byte, error) {
	text, err := read(name)
	if err != nil || filepath.Ext(name) != ".gz" || len(text) == 0 {
		return text, err
	}
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return io.ReadAll(r)
}

// write leaves exactly the files in the directory.
func write(dir string, files map[string][]byte) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		to := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, files[name], 0o644)); err != nil {
			return err
		}
	}
	return nil
}

// compare fails unless exactly the files are in the directory.
func compare(dir string, files map[string][]byte) error {
	var wrong []string
	seen := make(map[string]bool)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		seen[name] = true
		there, err := contents(path, os.ReadFile)
		if err != nil {
			return err
		}
		want, err := contents(name, func(string) ([]byte, error) { return files[name], nil })
		switch _, wanted := files[name]; {
		case !wanted:
			wrong = append(wrong, name+" is too much")
		case err != nil:
			return err
		case !bytes.Equal(there, want):
			wrong = append(wrong, name+" differs")
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !seen[name] {
			wrong = append(wrong, name+" is missing")
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s is not what the sources in ui make, run make ui and commit it: %s", dir, strings.Join(wrong, ", "))
	}
	return nil
}
