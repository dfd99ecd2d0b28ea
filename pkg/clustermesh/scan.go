package clustermesh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// File is one client file of the mesh directory, as it was read.
type File struct {
	Path string
	// Hash covers the contents of the file and of the certificates and keys
	// that it names: whatever changes in them makes another hash.
	Hash [32]byte
	// unreadable: the file is there and cannot be read. What is known of it
	// from before counts, if anything is.
	unreadable bool
}

// Ignored is an entry that looks like a client file but cannot be used.
type Ignored struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// listing is what one scan of the directory found.
type listing struct {
	files   map[string]File // by cluster name
	ignored []Ignored       // sorted by file
	// watch are the directories whose events may change the listing: the mesh
	// directory, and those of the files that its entries lead to or name.
	watch []string
}

// marker makes a file a client file, whatever its name (wire.md §3.1).
var marker = []byte("endpoints:")

// scan reads the directory. It judges entries by their content alone, never by
// times or by the names of events, so it can be called at any moment and as
// often as one likes. own is the name of the own cluster, whose file is not a
// remote's.
func scan(dir, own string) (listing, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return listing{}, fmt.Errorf("reading the mesh directory: %w", err)
	}
	l := listing{files: make(map[string]File), watch: []string{dir}}
	for _, e := range entries {
		l.add(dir, e.Name(), own)
	}
	slices.Sort(l.watch)
	l.watch = slices.Compact(l.watch)
	return l, nil
}

func (l *listing) add(dir, name, own string) {
	path := filepath.Join(dir, name)
	content, ok, err := readConfig(path)
	badName := wire.ValidateClusterName(name)
	switch {
	case name == own:
	case err != nil && badName == nil:
		// It may be a client file that we may not read: a cluster that fails and
		// says so, and none that is drained for it.
		l.files[name] = File{Path: path, unreadable: true}
	case !ok:
	case badName != nil:
		l.ignore(path, fmt.Errorf("the file's name is no valid cluster name: %w", badName))
	default:
		l.files[name] = File{Path: path, Hash: kvstore.HashContent(content)}
		l.follow(path, content)
	}
}

func (l *listing) ignore(path string, err error) {
	l.ignored = append(l.ignored, Ignored{File: path, Reason: err.Error()})
}

// maxConfig bounds what is read of an entry. Client files have a few hundred
// bytes; a volume that somebody mounted by mistake may hold anything.
const maxConfig = 1 << 20

// readConfig tells whether the entry is a client file: it leads to a regular,
// readable file that contains the marker.
func readConfig(path string) (content []byte, ok bool, err error) {
	info, err := os.Stat(path)
	if err == nil {
		if !info.Mode().IsRegular() || info.Size() > maxConfig {
			return nil, false, nil // a directory, a socket, a dump
		}
		content, err = os.ReadFile(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil // dangling, or gone meanwhile
	case err != nil:
		return nil, false, fmt.Errorf("cannot be read: %w", err)
	}
	return content, bytes.Contains(content, marker), nil
}

// follow notes where changes of the file's contents, and of the files that it
// names, would show.
func (l *listing) follow(path string, content []byte) {
	for _, p := range append(kvstore.NamedFiles(content), path) {
		l.watch = append(l.watch, filepath.Dir(p))
		if target, err := filepath.EvalSymlinks(p); err == nil {
			l.watch = append(l.watch, filepath.Dir(target))
		}
	}
}
