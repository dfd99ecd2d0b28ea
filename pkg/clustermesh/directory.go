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
	ignored []Ignored // found by the latest scan
}

func newDirectory(path, own string, log *slog.Logger) *directory {
	d := new(directory)
	scanned := func() (dirwatch.Listing[File], error) {
		l, err := scan(d.Path, own)
		d.ignored = l.ignored
		return l.Listing, err
	}
	d.Directory = dirwatch.New(path, "mesh directory", scanned, log)
	d.Quiet = true // an unreadable directory is reported with the ignored files instead
	d.Judge = func(_, found File) dirwatch.Judgement {
		if found.unreadable {
			return dirwatch.Keep
		}
		return dirwatch.Take
	}
	return d
}

// run calls found with the wanted client files, first with the present ones and then after
// each change, until ctx ends. While the directory cannot be read, found gets the files of
// the last successful read, and the error. Before the first successful read there are no such
// files; this does not mean that the directory is empty.
func (d *directory) run(ctx context.Context, found func(files map[string]File, ignored []Ignored, err error)) error {
	return d.Run(ctx, func(files map[string]File, err error) {
		ignored := d.ignored
		if err != nil {
			ignored = []Ignored{{File: d.Path, Reason: unreadable(err), Directory: true}}
		}
		found(files, ignored, err)
	})
}

// unreadable returns why the directory cannot be read, as text for the user.
func unreadable(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "the directory itself does not exist; the agent keeps the data of the clusters"
	}
	return "the directory itself cannot be read (" + err.Error() + "); the agent keeps the data of the clusters"
}
