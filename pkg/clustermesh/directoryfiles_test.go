package clustermesh

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/dirwatch"
)

// TestAFileThatCannotBeRead: a file that cannot be read may be a client file, so its cluster fails with that error. A
// cluster whose file becomes unreadable is not drained.
func TestAFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Symlink("/proc/self/mem", filepath.Join(dir, "a")))       // reading it fails, even for root
	must(t, os.Symlink("/proc/self/mem", filepath.Join(dir, "tls.key"))) // not a name of a cluster, so it is ignored
	l, err := scan(dir, "own")
	must(t, err)
	if _, there := l.Files["a"]; !there || len(l.Files) != 1 || len(l.ignored) != 0 {
		t.Errorf("files %v, ignored %v; want a alone", slices.Collect(maps.Keys(l.Files)), l.ignored)
	}
	d := newDirectory(dir, "own", slog.New(slog.DiscardHandler))
	readable := File{Path: filepath.Join(dir, "a"), Hash: [32]byte{1}}
	if d.Judge(readable, l.Files["a"]) != dirwatch.Keep {
		t.Error("a file that cannot be read for a while became another")
	}
}

// TestAPipeIsNoCertificate: a certificate that is a pipe must not block the directory.
func TestAPipeIsNoCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	write(t, filepath.Join(dir, "a"), configText(1)+"trusted-ca-file: "+pipe+"\n")
	f := follow(t, dir)
	f.untilNames("a")
	write(t, filepath.Join(dir, "b"), configText(2))
	f.untilNames("a", "b")
}

func TestCertificatesBesideAndElsewhere(t *testing.T) {
	t.Parallel()
	dir, certs := t.TempDir(), t.TempDir()
	ca := filepath.Join(certs, "ca.crt")
	write(t, ca, "one")
	write(t, filepath.Join(dir, "a"), configText(1)+"trusted-ca-file: "+ca+"\n")
	f := follow(t, dir)
	before := f.untilNames("a")["a"]
	write(t, ca, "two")
	f.until("another hash, for the new CA", func(files map[string]File) bool { return files["a"].Hash != before.Hash })
}

func TestALinkToAFileElsewhere(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	target := filepath.Join(elsewhere, "file")
	write(t, target, configText(1))
	must(t, os.Symlink(target, filepath.Join(dir, "a")))
	f := follow(t, dir)
	before := f.untilNames("a")["a"]
	write(t, target, configText(2))
	f.until("the target's new content", func(files map[string]File) bool { return files["a"].Hash != before.Hash })
	must(t, os.Remove(target))
	f.untilNames()
}

// kubernetesVolume is a directory with the layout of the kubelet: entries are links into ..data, which is a link to a
// dated directory and is replaced atomically.
type kubernetesVolume struct {
	t    *testing.T
	dir  string
	n    int
	past string
}

func (v *kubernetesVolume) update(files map[string]string) {
	v.t.Helper()
	v.n++
	dated := fmt.Sprintf("..2026_01_%02d", v.n)
	must(v.t, os.Mkdir(filepath.Join(v.dir, dated), 0o700))
	for name, text := range files {
		write(v.t, filepath.Join(v.dir, dated, name), text)
	}
	tmp := filepath.Join(v.dir, "..data_tmp")
	must(v.t, os.Symlink(dated, tmp))
	must(v.t, os.Rename(tmp, filepath.Join(v.dir, "..data")))
	for name := range files {
		link := filepath.Join(v.dir, name)
		if _, err := os.Lstat(link); errors.Is(err, os.ErrNotExist) {
			must(v.t, os.Symlink(filepath.Join("..data", name), link))
		}
	}
	entries, err := os.ReadDir(v.dir)
	must(v.t, err)
	for _, e := range entries {
		if _, stays := files[e.Name()]; !stays && !strings.HasPrefix(e.Name(), "..") {
			must(v.t, os.Remove(filepath.Join(v.dir, e.Name())))
		}
	}
	if v.past != "" {
		must(v.t, os.RemoveAll(filepath.Join(v.dir, v.past)))
	}
	v.past = dated
}

func TestKubernetesSymlinkSwaps(t *testing.T) {
	t.Parallel()
	v := &kubernetesVolume{t: t, dir: t.TempDir()}
	v.update(map[string]string{"a": configText(1), "b": configText(2), "ca.crt": "-----BEGIN"})
	f := follow(t, v.dir)
	before := f.untilNames("a", "b")
	v.update(map[string]string{"a": configText(1), "b": configText(3), "ca.crt": "-----BEGIN"})
	after := f.until("another b", func(files map[string]File) bool { return files["b"].Hash != before["b"].Hash })
	if after["a"] != before["a"] {
		t.Error("a has the same content and became another file")
	}
	v.update(map[string]string{"b": configText(3), "c": configText(4)})
	f.untilNames("b", "c")
	for _, names := range f.history {
		if strings.Contains(names, "data") || !strings.Contains(names, "b") {
			t.Errorf("on the way the directory seemed to hold %q", names)
		}
	}
}

// TestGoldenConfigFiles checks the recorded cases: which files are client files, and which of their names are valid
// names of clusters.
func TestGoldenConfigFiles(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/golden/config_files.json")
	must(t, err)
	var cases []struct {
		File      string
		Content   string
		IsConfig  bool   `json:"is_config"`
		NameError string `json:"cluster_name_error"`
		What      string
	}
	must(t, json.Unmarshal(data, &cases))
	dir := t.TempDir()
	for _, c := range cases {
		path := filepath.Join(dir, c.File)
		switch {
		case strings.Contains(c.What, "a directory") && !strings.Contains(c.What, "symbolic"):
			must(t, os.Mkdir(path, 0o700))
		case strings.Contains(c.What, "link to the directory"):
			must(t, os.Symlink("..2026_01_01", path))
		case strings.Contains(c.What, "link to nothing"):
			must(t, os.Symlink("nowhere", path))
		default:
			write(t, path, c.Content)
		}
	}
	l, err := scan(dir, "own")
	must(t, err)
	for _, c := range cases {
		_, wanted := l.Files[c.File]
		ignored := slices.ContainsFunc(l.ignored, func(i Ignored) bool { return filepath.Base(i.File) == c.File })
		if want := c.IsConfig && c.NameError == ""; wanted != want {
			t.Errorf("%s: connected to: %t, want %t", c.File, wanted, want)
		}
		meant := slices.Contains([]string{"json-flow", "quoted", "spaced", "upper"}, c.File) // a client file to a reader, but without the marker
		if want := c.IsConfig && c.NameError != "" || meant; ignored != want {
			t.Errorf("%s: reported as ignored: %t, want %t", c.File, ignored, want)
		}
	}
}
