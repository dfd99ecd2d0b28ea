package clustermesh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/dirwatch"
	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
)

// configText is a client file; n makes one differ from another.
func configText(n int) string {
	return fmt.Sprintf("endpoints:\n- https://c%d.mesh.cilium.io:2379\n", n)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Each recorded case: what counts as a client file, and which of their names
// can be a cluster's.
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
		_, wanted := l.files[c.File]
		ignored := slices.ContainsFunc(l.ignored, func(i Ignored) bool { return filepath.Base(i.File) == c.File })
		if want := c.IsConfig && c.NameError == ""; wanted != want {
			t.Errorf("%s: connected to: %t, want %t", c.File, wanted, want)
		}
		if want := c.IsConfig && c.NameError != ""; ignored != want {
			t.Errorf("%s: reported as ignored: %t, want %t", c.File, ignored, want)
		}
	}
}

// follower runs a directory and collects what it asks for.
type follower struct {
	t   *testing.T
	dir string

	mu      sync.Mutex
	files   map[string]File
	calls   int
	history []string // sets of names, each different from the one before
	changed chan struct{}
}

func follow(t *testing.T, dir string) *follower {
	t.Helper()
	return followFor(t, dir, 200*time.Millisecond)
}

// followFor is follow with how long a file must be gone before that is believed.
func followFor(t *testing.T, dir string, confirm time.Duration) *follower {
	t.Helper()
	f := &follower{t: t, dir: dir, changed: make(chan struct{}, 1)}
	d := newDirectory(dir, "own", slog.New(slog.DiscardHandler))
	d.Unchanged, d.Confirm = 10*time.Millisecond, confirm
	d.Rescan = time.Hour // events alone must do
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.run(ctx, f.found) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run ended with %v", err)
		}
	})
	return f
}

func (f *follower) found(files map[string]File, _ []Ignored, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.files = files
	names := strings.Join(slices.Sorted(maps.Keys(files)), " ")
	if len(f.history) == 0 || f.history[len(f.history)-1] != names {
		f.history = append(f.history, names)
	}
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// until waits for a state of the directory.
func (f *follower) until(what string, ok func(files map[string]File) bool) map[string]File {
	f.t.Helper()
	end := waittest.Context(f.t).Done()
	for {
		f.mu.Lock()
		files := f.files
		f.mu.Unlock()
		if files != nil && ok(files) {
			return files
		}
		select {
		case <-f.changed:
		case <-end:
			f.t.Fatalf("waited in vain for %s; have %v", what, slices.Sorted(maps.Keys(files)))
		}
	}
}

func (f *follower) untilNames(names ...string) map[string]File {
	f.t.Helper()
	return f.until(fmt.Sprint(names), func(files map[string]File) bool {
		return slices.Equal(slices.Sorted(maps.Keys(files)), slices.Sorted(slices.Values(names)))
	})
}

func TestFilesThatComeChangeAndGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "own"), configText(0)) // the own cluster's file is no remote's
	f := follow(t, dir)
	f.untilNames()
	write(t, filepath.Join(dir, "a"), configText(1))
	before := f.untilNames("a")["a"]
	write(t, filepath.Join(dir, "b"), configText(2))
	write(t, filepath.Join(dir, "b.crt"), "-----BEGIN CERTIFICATE-----\n")
	f.untilNames("a", "b")
	write(t, filepath.Join(dir, "a"), configText(3))
	f.until("another hash of a", func(files map[string]File) bool { return files["a"].Hash != before.Hash })
	must(t, os.Remove(filepath.Join(dir, "a")))
	f.untilNames("b")
}

func TestContentCountsNotTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	write(t, path, configText(1))
	info, err := os.Stat(path)
	must(t, err)
	f := follow(t, dir)
	before := f.untilNames("a")["a"]

	// The same content with another time is nothing new ...
	must(t, os.Chtimes(path, time.Now().Add(time.Hour), time.Now().Add(time.Hour)))
	write(t, path, configText(1))
	write(t, filepath.Join(dir, "mark"), configText(9))
	if after := f.untilNames("a", "mark")["a"]; after != before {
		t.Errorf("the same content became another file: %v, %v", before, after)
	}
	// ... and other content of the same size with the same time is.
	write(t, path, configText(2))
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	f.until("another hash", func(files map[string]File) bool { return files["a"].Hash != before.Hash })
}

// kubernetesVolume is a directory as the kubelet lays it out: entries are links
// into ..data, which is a link to a dated directory and is swapped atomically.
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

func TestAtomicRenames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := follow(t, dir)
	f.untilNames()
	var last File
	for n := range 5 {
		tmp := filepath.Join(dir, ".a.tmp")
		write(t, tmp, configText(n))
		must(t, os.Rename(tmp, filepath.Join(dir, "a")))
		last = f.until("the next a", func(files map[string]File) bool {
			return files["a"].Hash != last.Hash && len(files) == 1
		})["a"]
	}
}

func TestAFileRewrittenInPlaceIsNeverGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	write(t, path, configText(0))
	f := followFor(t, dir, time.Hour)
	last := f.untilNames("a")["a"]
	for n := 1; n <= 5; n++ {
		// Truncated and half-written for longer than the directory settles.
		for _, part := range []string{"", "endpo", "endpoints:\n"} {
			write(t, path, part)
			f.settled()
		}
		write(t, path, configText(n))
		last = f.until("the new content", func(files map[string]File) bool {
			return files["a"].Hash != last.Hash && files["a"].Hash != [32]byte{}
		})["a"]
	}
	for _, names := range f.history {
		if names != "a" {
			t.Errorf("on the way the directory seemed to hold %q", names)
		}
	}
}

// settled waits until the directory has been looked at again.
func (f *follower) settled() {
	f.t.Helper()
	f.mu.Lock()
	calls := f.calls
	f.mu.Unlock()
	f.until("another look", func(map[string]File) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.calls > calls
	})
}

func TestFilesThatComeAndGoWithinMilliseconds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := follow(t, dir)
	f.untilNames()
	for i := range 300 {
		path := filepath.Join(dir, fmt.Sprintf("flash%d", i))
		write(t, path, configText(i))
		must(t, os.Remove(path))
	}
	write(t, filepath.Join(dir, "stays"), configText(1))
	f.untilNames("stays")
}

func TestMoreEventsThanInotifyQueues(t *testing.T) {
	if testing.Short() {
		t.Skip("20,000 files are written")
	}
	t.Parallel()
	dir := t.TempDir()
	f := follow(t, dir)
	f.untilNames()
	// 16,384 is the kernel's default queue. One event says enough, so it does
	// not matter which ones are lost.
	noise := filepath.Join(dir, "noise")
	for i := range 20_000 {
		write(t, noise, strings.Repeat("x", i%7))
	}
	for i := range 50 {
		write(t, filepath.Join(dir, fmt.Sprintf("c%d", i)), configText(i))
	}
	f.until("50 files", func(files map[string]File) bool { return len(files) == 50 })
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

// A file that cannot be read may be a client file: its cluster fails and says
// so, and a cluster whose file becomes unreadable is not drained for it.
func TestAFileThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.Symlink("/proc/self/mem", filepath.Join(dir, "a")))       // reading it fails, for root too
	must(t, os.Symlink("/proc/self/mem", filepath.Join(dir, "tls.key"))) // no cluster's name: nothing of ours
	l, err := scan(dir, "own")
	must(t, err)
	if _, there := l.files["a"]; !there || len(l.files) != 1 || len(l.ignored) != 0 {
		t.Errorf("files %v, ignored %v; want a alone", slices.Collect(maps.Keys(l.files)), l.ignored)
	}
	d := newDirectory(dir, "own", slog.New(slog.DiscardHandler))
	readable := File{Path: filepath.Join(dir, "a"), Hash: [32]byte{1}}
	if d.Judge(readable, l.files["a"]) != dirwatch.Keep {
		t.Error("a file that cannot be read for a while became another")
	}
}

// A certificate that is a pipe must not hold up the directory.
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

// A directory is looked at when something happened, however it is written.
func TestAnIdleDirectoryIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link))
	for _, path := range []string{dir, dir + "/", link} {
		write(t, filepath.Join(dir, "a"), configText(1))
		d := newDirectory(path, "own", slog.New(slog.DiscardHandler))
		d.Unchanged, d.Rescan = time.Millisecond, time.Hour
		looks := 0
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := d.run(ctx, func(map[string]File, []Ignored, error) { looks++ })
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || looks > 5 {
			t.Errorf("%s: looked at %d times in 300 ms without an event (%v)", path, looks, err)
		}
	}
}

func TestADirectoryThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "later")
	f := follow(t, dir)
	f.untilNames()
	must(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "a"), configText(1))
	f.untilNames("a")
	// Gone again: what is known stays, since nothing can be read.
	must(t, os.RemoveAll(dir))
	must(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "b"), configText(2))
	f.untilNames("b")
}
