// Package dirwatch follows a directory of files that other programs write.
//
// An event only means "scan again": only the result of a scan counts. So lost, merged and reordered events do no
// harm, and a periodic scan finds changes without an event. A file that is gone for a moment, because it is being
// rewritten or a link is being swapped, does not count as gone.
//
// Concurrency: a [Directory] belongs to the goroutine that runs it.
package dirwatch

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Directory is followed by [Directory.Run]. F is the known state of a file; two that are equal have the same
// contents.
type Directory[F comparable] struct {
	Path string
	// The name of the directory in messages: "mesh directory".
	What string
	Log  *slog.Logger

	// Scan looks at the directory once.
	Scan func() (Listing[F], error)
	// Judge decides about a known file that was found in another state; nil takes the new state.
	Judge func(known, found F) Judgement
	// Report is called after each look, with the error if the directory cannot be read;
	// nil is not called.
	Report func(error)
	// Quiet: the caller reports that the directory cannot be read, so it is not logged.
	Quiet bool

	// Unchanged is how long the directory must be unchanged before it is read; one that
	// changes all the time is read every unchangedMost.
	Unchanged time.Duration
	// Confirm is how long a file must be gone, or be in a doubted state, before that counts: a file that is rewritten
	// in place is empty for a moment, and a wrong guess withdraws its contents.
	Confirm time.Duration
	// Grace is how long a file must be listed as broken before it counts as gone: another program may be writing it
	// slowly.
	Grace time.Duration
	// NoEvents: file system events are not used, only the scans of Rescan.
	NoEvents bool
	// Rescan is the period of the scans that need no event. Where there are events, the period is longer if a scan
	// takes long, so that scans that find no change cost next to nothing.
	Rescan time.Duration

	known  map[string]F
	doubts map[string]doubt[F]
}

// Listing is what one scan of the directory found.
type Listing[F comparable] struct {
	Files map[string]F // by name
	// Broken has the reasons for files that exist and are not valid, by name. It matters for known files only.
	Broken map[string]string
	// Watch are the directories whose events may change the listing: the
	// directory itself, and those that its entries lead to.
	Watch []string
}

// Judgement is the decision about a file that was found in another state.
type Judgement uint8

// The judgements.
const (
	Take Judgement = iota // it counts
	Wait                  // it counts when it stays like this
	Keep                  // the known state counts
)

// doubt is a state of a known file that does not count yet.
type doubt[F comparable] struct {
	found  F
	there  bool   // false: the file is not found
	broken string // why the file that exists is not valid
	since  time.Time
}

// Broken is a known file that exists but is no longer valid: its known state counts until Until, and no longer.
type Broken struct {
	Why          string
	Since, Until time.Time
}

// Broken are the files that are broken, by name. It is for the goroutine that runs the directory.
func (d *Directory[F]) Broken() map[string]Broken {
	all := make(map[string]Broken)
	for name, seen := range d.doubts {
		if seen.broken != "" {
			all[name] = Broken{seen.broken, seen.since, seen.since.Add(d.Grace)}
		}
	}
	return all
}

// A scan of a large directory is repeated after rescanShare times as long as it took,
// within a minute.
const (
	rescanShare   = 5000
	rescanMax     = time.Minute
	unchangedMost = 2 * time.Second
)

// New returns a directory with the usual times, which [Directory.Run] follows.
func New[F comparable](path, what string, scan func() (Listing[F], error), log *slog.Logger) *Directory[F] {
	return &Directory[F]{
		Path: filepath.Clean(path), What: what, Scan: scan, Log: cmp.Or(log, slog.New(slog.DiscardHandler)),
		Unchanged: 200 * time.Millisecond,
		Confirm:   500 * time.Millisecond, Grace: 10 * time.Second, Rescan: 30 * time.Second,
		known: make(map[string]F), doubts: make(map[string]doubt[F]),
	}
}

// Run calls found with the files, first with those that are there now and then after each look, until ctx ends. It
// waits for a directory that is absent or cannot be read; the known files stay, and found gets them once with the
// error.
func (d *Directory[F]) Run(ctx context.Context, found func(files map[string]F, err error)) error {
	events := d.events()
	if events.Events != nil {
		defer events.Close()
	}
	readable := true
	for {
		wait, err := d.look(events, found)
		if err != nil {
			wait = time.Second
			if readable {
				if !d.Quiet {
					d.warn(err)
				}
				found(maps.Clone(d.known), err)
			}
		}
		if d.Report != nil { // last: a caller that waits for it finds all else done
			d.Report(err)
		}
		readable = err == nil
		if err := d.idle(ctx, events, wait); err != nil {
			return err
		}
	}
}

// events returns the file system events. Without them the channels are nil, and never ready.
func (d *Directory[F]) events() *fsnotify.Watcher {
	if d.NoEvents {
		return new(fsnotify.Watcher)
	}
	events, err := fsnotify.NewWatcher()
	if err != nil {
		d.Log.Warn("No file system events, reading the "+d.What+" at intervals", "every", d.Rescan, "error", err)
		return new(fsnotify.Watcher)
	}
	return events
}

// look scans once, and says after how long to do so again without an event.
func (d *Directory[F]) look(events *fsnotify.Watcher, found func(map[string]F, error)) (wait time.Duration, err error) {
	d.watch(events, []string{d.Path})
	start := time.Now()
	l, err := d.Scan()
	took := time.Since(start)
	if err != nil {
		clear(d.doubts) // a failed scan does not show that a file is missing
		return 0, err
	}
	again := d.merge(l, time.Now())
	found(maps.Clone(d.known), nil)
	added, blind := d.watch(events, l.Watch)
	switch {
	case added:
		return d.Unchanged, nil // changes there before the watch made no event
	case !blind:
		wait = max(d.Rescan, min(rescanShare*took, rescanMax))
	default:
		wait = d.Rescan
	}
	return sooner(wait, again), nil
}

func (d *Directory[F]) warn(err error) {
	if errors.Is(err, fs.ErrNotExist) {
		d.Log.Warn("The "+d.What+" does not exist; waiting for it", "directory", d.Path)
		return
	}
	d.Log.Warn("The "+d.What+" cannot be read; the agent keeps its data", "directory", d.Path, "error", err)
}

// merge updates known from a scan, and returns the time until the next look at files whose state does not count yet;
// 0 is never.
func (d *Directory[F]) merge(l Listing[F], now time.Time) (again time.Duration) {
	for name, f := range l.Files {
		known, was := d.known[name]
		judgement := Take
		if was && known != f && d.Judge != nil {
			judgement = d.Judge(known, f)
		}
		if judgement == Wait {
			left := d.stays(name, doubt[F]{found: f, there: true, since: now}, d.Confirm)
			if again = sooner(again, left); left > 0 {
				continue
			}
		}
		if judgement != Keep {
			d.known[name] = f
		}
		delete(d.doubts, name)
	}
	for name := range d.known {
		if _, there := l.Files[name]; there {
			continue
		}
		confirm := d.Confirm
		if l.Broken[name] != "" {
			confirm = d.Grace
		}
		left := d.stays(name, doubt[F]{broken: l.Broken[name], since: now}, confirm)
		if again = sooner(again, left); left <= 0 {
			delete(d.known, name)
		}
	}
	for name := range d.doubts { // a broken file is reported as long as it exists
		if _, known := d.known[name]; !known && l.Broken[name] == "" {
			delete(d.doubts, name)
		}
	}
	return again
}

// sooner is the shorter one of two times that may be none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b <= 0 {
		return max(a, b, 0)
	}
	return min(a, b)
}

// stays notes a doubted state of a file, and returns for how long it still has to stay like that.
func (d *Directory[F]) stays(name string, seen doubt[F], confirm time.Duration) time.Duration {
	now := seen.since
	if noted, is := d.doubts[name]; is && noted.there == seen.there && noted.found == seen.found && (noted.broken == "") == (seen.broken == "") {
		seen.since = noted.since
	}
	d.doubts[name] = seen
	return seen.since.Add(confirm).Sub(now)
}

// watch adds inotify watches, and removes those that neither dirs nor the directory needs. It reports whether a watch
// is new, and whether a directory has none.
func (d *Directory[F]) watch(events *fsnotify.Watcher, dirs []string) (added, blind bool) {
	if events.Events == nil {
		return false, true
	}
	watched := events.WatchList()
	for _, dir := range dirs {
		if slices.Contains(watched, dir) {
			continue
		}
		if err := events.Add(dir); err != nil {
			blind = true
			d.Log.Debug("A directory sends no events, reading it at intervals", "directory", dir, "error", err)
		}
	}
	// fsnotify keeps one name of a directory that has several.
	added = len(events.WatchList()) > len(watched)
	if len(dirs) > 1 {
		for _, old := range watched {
			if !slices.Contains(dirs, old) {
				_ = events.Remove(old) // it may be gone already
			}
		}
	}
	return added, blind
}

// idle returns when it is time to scan: after events once no more come,
// after an overflow of their queue, or after the wait.
func (d *Directory[F]) idle(ctx context.Context, events *fsnotify.Watcher, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var latest time.Time // the latest time of the scan, also if more events come; zero before the first event
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-events.Events:
		case err := <-events.Errors:
			d.Log.Debug("Directory events were lost, reading the directory again", "error", err)
		}
		if latest.IsZero() {
			latest = time.Now().Add(unchangedMost)
		}
		timer.Reset(min(d.Unchanged, time.Until(latest)))
	}
}
