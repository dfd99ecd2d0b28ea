package clustermesh

import (
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

// directory follows the mesh directory. An event only ever says "look again":
// what counts is what a scan finds. So lost, merged and reordered events do no
// harm, and a periodic scan catches what no event told.
type directory struct {
	path string
	own  string
	log  *slog.Logger

	// settle is how long the directory must be quiet before it is read, and
	// settleMax how long a restless one may put that off.
	settle, settleMax time.Duration
	// confirm is how long a file must be gone, or be no client file any more,
	// before that is believed: one that is being rewritten in place is empty for
	// a moment, and the price of a wrong guess is a drained cluster.
	confirm time.Duration
	// rescan is the period of the scans that need no event.
	rescan time.Duration

	// report is told whether the directory can be read, after each look.
	report func(error)

	known   map[string]File
	missing map[string]time.Time // since when a known file is not found
}

func newDirectory(path, own string, log *slog.Logger) *directory {
	return &directory{
		path: filepath.Clean(path), own: own, log: log, report: func(error) {},
		settle: 200 * time.Millisecond, settleMax: 2 * time.Second,
		confirm: 500 * time.Millisecond, rescan: 10 * time.Second,
		known: make(map[string]File), missing: make(map[string]time.Time),
	}
}

// run calls found with the wanted client files, first with those that are there
// now and then after each change, until ctx ends. A directory that is absent or
// cannot be read is waited for; what is known stays.
func (d *directory) run(ctx context.Context, found func(files map[string]File, ignored []Ignored)) error {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		d.log.Warn("No file system events, the mesh directory is only looked at from time to time",
			"every", d.rescan, "error", err)
		events = &fsnotify.Watcher{} // nil channels: never ready
	} else {
		defer events.Close()
	}
	readable := true
	for {
		wait, err := d.look(events, found)
		d.report(err)
		if err != nil {
			wait = time.Second
			if readable {
				d.warn(err)
				found(maps.Clone(d.known), []Ignored{{d.path, "the directory itself cannot be read; what is known is kept: " + err.Error()}})
			}
		}
		readable = err == nil
		if err := d.idle(ctx, events, wait); err != nil {
			return err
		}
	}
}

// look scans once, and says after how long to do so again without an event.
func (d *directory) look(events *fsnotify.Watcher, found func(map[string]File, []Ignored)) (wait time.Duration, err error) {
	d.watch(events, []string{d.path})
	l, err := scan(d.path, d.own)
	if err != nil {
		clear(d.missing) // nobody has seen anything missing
		return 0, err
	}
	again := d.merge(l.files, time.Now())
	found(maps.Clone(d.known), l.ignored)
	switch {
	case d.watch(events, l.watch):
		return d.settle, nil // what changed there before the watch was not told
	case again > 0:
		return again, nil
	}
	return d.rescan, nil
}

func (d *directory) warn(err error) {
	if errors.Is(err, fs.ErrNotExist) {
		d.log.Warn("The mesh directory does not exist; waiting for it", "directory", d.path)
		return
	}
	d.log.Warn("The mesh directory cannot be read; what is known is kept", "directory", d.path, "error", err)
}

// merge takes what a scan found into known, and returns after how long to look
// again for files that are missing but not yet believed gone; 0 is never.
func (d *directory) merge(files map[string]File, now time.Time) (again time.Duration) {
	for name, f := range files {
		if _, known := d.known[name]; !known || !f.unreadable {
			d.known[name] = f
		}
		delete(d.missing, name)
	}
	for name := range d.known {
		if _, there := files[name]; there {
			continue
		}
		since, noted := d.missing[name]
		if !noted {
			since, d.missing[name] = now, now
		}
		if left := since.Add(d.confirm).Sub(now); left > 0 {
			again = max(again, left)
			continue
		}
		delete(d.known, name)
		delete(d.missing, name)
	}
	return again
}

// watch adds inotify watches, and removes those that neither this nor the mesh
// directory needs. It tells whether one is new.
func (d *directory) watch(events *fsnotify.Watcher, dirs []string) (added bool) {
	if events.Events == nil {
		return false
	}
	watched := events.WatchList()
	for _, dir := range dirs {
		if slices.Contains(watched, dir) {
			continue
		}
		if err := events.Add(dir); err != nil {
			d.log.Debug("No events from a directory, it is only looked at from time to time", "directory", dir, "error", err)
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
	return added
}

// idle returns when it is time to scan: after events once they have settled,
// after an overflow of their queue, or after the wait.
func (d *directory) idle(ctx context.Context, events *fsnotify.Watcher, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var latest time.Time // by when to scan whatever happens; zero before the first event
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		case <-events.Events:
		case err := <-events.Errors:
			d.log.Debug("Directory events were lost, looking at everything again", "error", err)
		}
		if latest.IsZero() {
			latest = time.Now().Add(d.settleMax)
		}
		timer.Reset(min(d.settle, time.Until(latest)))
	}
}
