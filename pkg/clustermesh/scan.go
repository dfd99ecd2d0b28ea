package clustermesh

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/mesh-agent/mesh-agent/internal/base/dirwatch"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// File is one client file of the mesh directory, as it was read.
type File struct {
	Path string
	// Hash covers the contents of the file and of the certificates and keys
	// that it names: any change in them changes the hash.
	Hash [32]byte
	// unreadable: the file exists but cannot be read. Then its previous state
	// counts, if there is one.
	unreadable bool
}

// Ignored is an entry that looks like a client file but cannot be used.
type Ignored struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
	// Directory: the entry is the mesh directory itself, which cannot be read.
	Directory bool `json:"-"`
}

// listing is what one scan of the directory found.
type listing struct {
	dirwatch.Listing[File]
	ignored []Ignored // sorted by file
}

// scan reads the directory. It judges entries only by their content, never by times or by
// the names of events. own is the name of the own cluster, whose file is not for a remote cluster.
func scan(dir, own string) (listing, error) {
	entries, err := Entries(dir, own)
	if err != nil {
		return listing{}, err
	}
	l := listing{Listing: dirwatch.Listing[File]{Files: make(map[string]File), Broken: make(map[string]string), Watch: []string{dir}}}
	for _, e := range entries {
		l.add(e)
	}
	slices.Sort(l.Watch)
	l.Watch = slices.Compact(l.Watch)
	return l, nil
}

// Files returns the client files of a mesh directory at this moment, by the
// names of their clusters. A running agent connects with each of them, except the
// one of the own cluster. Files fails when the directory cannot be read.
func Files(dir string) (map[string]File, error) {
	l, err := scan(dir, "")
	return l.Files, err
}

func (l *listing) add(e Entry) {
	switch e.Verdict {
	case EntryUnreadable:
		l.Files[e.Name] = File{Path: e.Path, unreadable: true}
	case EntryMisnamed, EntryOverlooked:
		l.ignored = append(l.ignored, Ignored{File: e.Path, Reason: e.Reason.Error()})
	case EntryClient:
		sum, named := clientfile.Digest(e.Content)
		l.Files[e.Name] = File{Path: e.Path, Hash: sum}
		// The directories in which changes of the files' contents are visible.
		for _, p := range append(named, e.Path) {
			l.Watch = append(l.Watch, filepath.Dir(p))
			if target, err := filepath.EvalSymlinks(p); err == nil {
				l.Watch = append(l.Watch, filepath.Dir(target))
			}
		}
	case EntryOwn, EntryOther:
	}
	if errors.Is(e.Reason, errNoMarker) {
		l.Broken[e.Name] = e.Reason.Error() // counts only if it was a client file before
	}
}

// maxConfig bounds the size of an entry that is read. Client files have a few hundred
// bytes; a volume that is mounted by mistake may hold files of any size.
const maxConfig = 1 << 20

// errNoClientFile: the entry cannot be a client file.
var errNoClientFile = errors.New("no client file")

// errNoMarker is an errNoClientFile: the file could be read, but does not contain the marker.
var errNoMarker = fmt.Errorf("%w: the text %q is not in it", errNoClientFile, clientfile.Marker)

// readConfig returns the content of a client file: a regular, readable file, or a link
// to one, that contains the marker. The error is an errNoClientFile when the entry is not
// a client file, and another error when this is unknown. With errNoMarker it returns the
// content as well.
func readConfig(path string) ([]byte, error) {
	info, err := os.Stat(path)
	var content []byte
	switch {
	case err != nil:
	case info.IsDir():
		return nil, fmt.Errorf("%w: a directory", errNoClientFile)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: neither a file nor a directory", errNoClientFile)
	case info.Size() > maxConfig:
		return nil, fmt.Errorf("%w: its %d bytes are too many", errNoClientFile, info.Size())
	default:
		content, err = os.ReadFile(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: it leads to nothing", errNoClientFile) // a dangling link, or deleted meanwhile
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case !bytes.Contains(content, []byte(clientfile.Marker)):
		return content, errNoMarker
	}
	return content, nil
}
