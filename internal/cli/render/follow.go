package render

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// Pauses after a failure.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// follow keeps the files up to date until ctx ends. It fails when the templates have a mistake at the start. A later
// mistake is reported, and the files stay unchanged.
func (r *renderer) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	changed := make(chan struct{}, 1)
	watched := make(map[string]bool)
	pause := firstPause
	said := ""
	written := false
	for {
		err := r.once(ctx)
		if _, wrong := errors.AsType[exit.UsageError](err); wrong && !written {
			return err
		}
		written = written || err == nil
		command.Progress(ctx).End() // the wait for changes has no end
		for _, plural := range slices.Sorted(maps.Keys(r.used)) {
			if !watched[plural] {
				watched[plural] = true
				watches.Go(func() { r.watch(ctx, plural, changed) })
			}
		}
		var again <-chan time.Time
		if err == nil {
			pause, said = firstPause, ""
		} else if ctx.Err() == nil {
			if text := err.Error(); text != said { // each error only once
				said = text
				r.say("%v; trying again", err)
			}
			again = time.After(pause)
			pause = min(2*pause, lastPause)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again:
		case <-changed:
			if err := r.waitForQuiet(ctx, changed); err != nil {
				return err
			}
		}
	}
}

// watch signals each change of a resource. It ignores errors: a request for the objects, after the signal or at the
// next attempt, reports them.
func (r *renderer) watch(ctx context.Context, plural string, changed chan<- struct{}) {
	for ctx.Err() == nil {
		for _, err := range client.Watch[json.RawMessage](ctx, r.client, plural, client.Query{}, func(error) {}) {
			if err != nil {
				break
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(firstPause):
		}
	}
}

// waitForQuiet waits until there are no changes for a while, but not longer than a limit.
func (r *renderer) waitForQuiet(ctx context.Context, changed <-chan struct{}) error {
	const most = 4
	end := time.NewTimer(most * r.wait)
	defer end.Stop()
	for {
		quiet := time.NewTimer(r.wait)
		select {
		case <-ctx.Done():
			quiet.Stop()
			return ctx.Err()
		case <-changed:
			quiet.Stop()
		case <-quiet.C:
			return nil
		case <-end.C:
			quiet.Stop()
			return nil
		}
	}
}
