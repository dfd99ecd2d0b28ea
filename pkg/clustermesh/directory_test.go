package clustermesh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// configText returns a client file; files with another n differ.
func configText(n int) string {
	return fmt.Sprintf("endpoints:\n- https://c%d.mesh.cilium.io:2379\n", n)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

var must = waittest.Must

// follower runs a directory and records the files that it reports.
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

// followFor is follow with the time for which a file must be missing before its removal counts.
func followFor(t *testing.T, dir string, confirm time.Duration) *follower {
	t.Helper()
	f := &follower{t: t, dir: dir, changed: make(chan struct{}, 1)}
	d := newDirectory(dir, "own", slog.New(slog.DiscardHandler))
	d.Unchanged, d.Confirm, d.Grace = 10*time.Millisecond, confirm, confirm
	d.Rescan = time.Hour // so that only events trigger a scan
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

// until waits until the files of the directory meet a condition.
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
	write(t, filepath.Join(dir, "own"), configText(0)) // the own cluster's file is not a remote's
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

	// The same content with another time is no change ...
	must(t, os.Chtimes(path, time.Now().Add(time.Hour), time.Now().Add(time.Hour)))
	write(t, path, configText(1))
	write(t, filepath.Join(dir, "mark"), configText(9))
	if after := f.untilNames("a", "mark")["a"]; after != before {
		t.Errorf("the same content became another file: %v, %v", before, after)
	}
	// ... and other content with the same size and time is one.
	write(t, path, configText(2))
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	f.until("another hash", func(files map[string]File) bool { return files["a"].Hash != before.Hash })
}

func TestAFileRewrittenInPlaceIsNeverGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	write(t, path, configText(0))
	f := followFor(t, dir, time.Hour)
	last := f.untilNames("a")["a"]
	for n := 1; n <= 5; n++ {
		// Truncated or half-written for longer than the directory must be unchanged.
		for _, part := range []string{"", "endpo", "endpoints:\n"} {
			f.seen(func() { write(t, path, part) })
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

// seen changes the directory and waits until it has been scanned again.
func (f *follower) seen(change func()) {
	f.t.Helper()
	f.mu.Lock()
	calls := f.calls // read before the change: the scan may occur before change returns
	f.mu.Unlock()
	change()
	f.until("another look", func(map[string]File) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.calls > calls
	})
}

func TestMoreEventsThanInotifyQueues(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	f := follow(t, dir)
	f.untilNames()
	// 16,384 is the kernel's default size of the queue. One event is enough, so it does not matter which ones are lost.
	noise := filepath.Join(dir, "noise")
	for i := range 20_000 {
		write(t, noise, strings.Repeat("x", i%7))
	}
	for i := range 50 {
		write(t, filepath.Join(dir, fmt.Sprintf("c%d", i)), configText(i))
	}
	f.until("50 files", func(files map[string]File) bool { return len(files) == 50 })
}

// TestAnIdleDirectoryIsLeftAlone: a directory is scanned only after an event, for each form of its path.
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
	// Removed and created again: the known files stay in between, since the directory cannot be read.
	must(t, os.RemoveAll(dir))
	must(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "b"), configText(2))
	f.untilNames("b")
}
