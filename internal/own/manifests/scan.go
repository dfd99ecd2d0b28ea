package manifests

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/internal/base/dirwatch"
)

// maxFile bounds how many bytes of a file are read: a volume that was mounted by mistake may hold anything.
const maxFile = 64 << 20

// file is one file in one state. It is immutable, and two states of a file are
// equal when they are the same pointer.
type file struct {
	info os.FileInfo // nil when it cannot be read
	hash [32]byte
	contents
}

// scanner looks at the directory, and remembers what it read for the next time.
type scanner struct {
	dir   string
	kinds []kind
	last  map[string]*file
	// modified is when the directory, or a manifest in it, was modified last.
	modified time.Time
}

func (s *scanner) scan() (dirwatch.Listing[*file], error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return dirwatch.Listing[*file]{}, fmt.Errorf("reading the directory of manifests: %w", err)
	}
	s.modified = time.Time{}
	s.note(s.dir)
	l := dirwatch.Listing[*file]{Files: make(map[string]*file), Watch: []string{s.dir}}
	for _, e := range entries {
		if !isManifest(e.Name()) {
			continue
		}
		path := filepath.Join(s.dir, e.Name())
		s.note(path)
		if f := s.look(e.Name(), path); f != nil {
			l.Files[e.Name()] = f
		}
		if target, err := filepath.EvalSymlinks(path); err == nil {
			l.Watch = append(l.Watch, filepath.Dir(target))
		}
	}
	slices.Sort(l.Watch)
	l.Watch = slices.Compact(l.Watch)
	s.last = l.Files
	return l, nil
}

// note takes into account when a path was modified. A time that is yet to come is
// that of another clock, and tells nothing.
func (s *scanner) note(path string) {
	info, err := os.Stat(path)
	if err == nil && info.ModTime().After(s.modified) && !info.ModTime().After(time.Now()) {
		s.modified = info.ModTime()
	}
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) && !strings.HasPrefix(name, ".")
}

// look returns the state that a file is in: that of the last time, if nothing
// changed, and nil when it is gone, empty or a directory.
func (s *scanner) look(name, path string) *file {
	content, info, err := readFile(path)
	last := s.last[name]
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(content) == 0:
		return nil
	case err != nil:
		bad := contents{bad: []problem{{reason: err.Error()}}}
		if last != nil && last.info == nil && slices.Equal(last.bad, bad.bad) {
			return last
		}
		return &file{contents: bad}
	}
	hash := sha256.Sum256(content)
	switch {
	case last == nil || last.info == nil || last.hash != hash:
		f := &file{info: info, hash: hash, contents: read(s.kinds, content, filepath.Ext(name) == ".json")}
		f.date(info.ModTime())
		return f
	case !os.SameFile(last.info, info):
		return &file{info: info, hash: hash, contents: last.contents}
	}
	return last
}

// date makes objects that do not say when they were created as old as their file: of several that claim something the
// oldest has it, and one without an age would always be that.
func (c *contents) date(modified time.Time) {
	for _, d := range c.documents {
		if created := d.object.GetCreationTimestamp(); created.IsZero() {
			d.object.SetCreationTimestamp(metav1.NewTime(modified.UTC().Truncate(time.Second)))
		}
	}
}

func readFile(path string) ([]byte, os.FileInfo, error) {
	info, err := os.Stat(path) // before it is opened: opening a pipe may wait
	switch {
	case err != nil:
		return nil, nil, err
	case info.IsDir():
		return nil, info, nil
	case !info.Mode().IsRegular():
		return nil, info, errors.New("it is neither a file nor a directory; remove it")
	case info.Size() > maxFile:
		return nil, info, fmt.Errorf("its %d bytes are more than %d; divide it", info.Size(), maxFile)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxFile))
	return content, info, err
}

// judge waits with a file that is written in place: it may be half written.
func judge(known, found *file) dirwatch.Judgement {
	if known.info != nil && found.info != nil && known.hash != found.hash && os.SameFile(known.info, found.info) {
		return dirwatch.Wait
	}
	return dirwatch.Take
}
