package dirwatch

import (
	"context"
	"time"
)

// rescanFile is the period of the looks at one file.
const rescanFile = 2 * time.Second

// FollowFile follows one file that other programs write until ctx ends. It calls found after each look: with the
// content that counts, or with the error of read. The function read returns the content, or a hash of it. The first
// content counts at once. Other content counts when it stays: a file that is rewritten in place has a part of its content
// for a moment.
func FollowFile[F comparable](ctx context.Context, read func() (F, error), found func(F, error)) error {
	var content F
	d := New("", "file", func() (Listing[F], error) {
		now, err := read()
		return Listing[F]{Files: map[string]F{"": now}}, err
	}, nil)
	d.Quiet, d.NoEvents, d.Rescan = true, true, rescanFile
	d.Judge = func(_, _ F) Judgement { return Wait }
	d.Report = func(err error) { found(content, err) }
	return d.Run(ctx, func(files map[string]F, _ error) { content = files[""] })
}
