package clustermesh

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"

	"github.com/mesh-agent/mesh-agent/internal/base/dirwatch"
)

// directory follows the mesh directory.
type directory struct {
	*dirwatch.Directory[File]
	ignored []Ignored // by the latest scan
}

func newDirectory(path, own string, log *slog.Logger) *directory {
	d := new(directory)
	scanned := func() (dirwatch.Listing[File], error) {
		l, err := scan(d.Path, own)
		d.ignored = l.ignored
		return l.Listing, err
	}
	d.Directory = dirwatch.New(path, "mesh directory", scanned, log)
	d.Quiet = true // it is an event, as what is ignored
	d.Judge = func(_, found File) dirwatch.Judgement {
		if found.unreadable {
			return dirwatch.Keep
		}
		return dirwatch.Take
	}
	return d
}

// run calls found with the wanted client files, first with those that are there now and
// then after each change, until ctx ends. While the directory cannot be read, what is
// known stays, and is given with the error; before the first look that succeeds that is nothing,
// which says nothing of what the directory has.
func (d *directory) run(ctx context.Context, found func(files map[string]File, ignored []Ignored, err error)) error {
	return d.Run(ctx, func(files map[string]File, err error) {
		ignored := d.ignored
		if err != nil {
			ignored = []Ignored{{File: d.Path, Reason: unreadable(err), Directory: true}}
		}
		found(files, ignored, err)
	})
}

// unreadable says why the directory cannot be read.
func unreadable(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "the directory itself does not exist; the agent keeps the data of the clusters"
	}
	return "the directory itself cannot be read (" + err.Error() + "); the agent keeps the data of the clusters"
}
