package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

const maxEvent = 64 << 20 // bytes of a line of a watch

const maxSilence = 45 * time.Second // of an agent: three of its keepalives

// Pauses between two attempts to continue a watch.
const (
	reconnectPause = time.Second
	busyPause      = 5 * time.Second // when the agent reported that it is overloaded
)

// Event is one step of a watch of T.
type Event[T any] struct {
	// Kind is one of httpapi.WatchUpsert, WatchDelete, WatchReset, WatchSynced.
	Kind     string `json:"event"`
	Resource string `json:"resource"`
	// Object is nil for the kinds without an object.
	Object   *T     `json:"object,omitempty"`
	Revision uint64 `json:"revision"`
	// Reason is why everything begins again.
	Reason string `json:"reason,omitempty"`
}

// Watch follows one resource: its state, and then its changes, until the context ends or the caller stops. It reopens a
// broken connection, continues at its position, and calls lost with the error. It ends with an error if the agent
// refuses the request or was never reached.
func Watch[T any](ctx context.Context, c *Client, resource string, q Query, lost func(error)) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		w := &watch[T]{client: c, resource: resource, query: q, yield: yield}
		for {
			err := w.session(ctx)
			switch {
			case w.enough:
				return
			case ctx.Err() != nil:
				yield(Event[T]{}, ctx.Err())
				return
			case !w.reached || !errors.Is(err, ErrUnreachable) && !isBusy(err):
				yield(Event[T]{}, err)
				return
			}
			lost(err)
			pause := reconnectPause
			if isBusy(err) {
				pause = busyPause
			}
			if waiting.Sleep(ctx, pause) != nil {
				yield(Event[T]{}, ctx.Err())
				return
			}
		}
	}
}

// isBusy reports whether the agent is overloaded and asks for a later attempt.
func isBusy(err error) bool {
	p, ok := errors.AsType[*api.Problem](err)
	return ok && p.Status == http.StatusServiceUnavailable
}

// watch is one watch over all its connections.
type watch[T any] struct {
	client   *Client
	resource string
	query    Query
	yield    func(Event[T], error) bool

	token   string // of the last event
	reached bool   // the agent answered once
	enough  bool   // the caller has stopped
}

// session reads one connection to its end. It also ends a connection on which the agent no longer sends keepalives.
func (w *watch[T]) session(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	values := w.query.values()
	values.Set("resource", w.resource)
	body, err := w.client.send(ctx, request{media: "text/event-stream", path: []string{"v1", "watch"}, query: values, token: w.token})
	if err != nil {
		return err
	}
	defer body.Close()
	w.reached = true
	silence := time.AfterFunc(maxSilence, cancel)
	defer silence.Stop()
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	var id, kind string
	for lines.Scan() {
		silence.Stop() // the time that the caller takes is not counted
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "": // the end of an event, or of a keepalive
			if id != "" {
				w.token = id
			}
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			if err := w.take(id, kind, value); err != nil || w.enough {
				return err
			}
		}
		silence.Reset(maxSilence)
	}
	err = lines.Err()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if ctx.Err() != nil && parent.Err() == nil {
		err = fmt.Errorf("no sign of life for %s", maxSilence)
	}
	return broken(parent, err)
}

func (w *watch[T]) take(id, kind, data string) error {
	e := Event[T]{}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return fmt.Errorf("%w: an event that cannot be read: %w", ErrUnreachable, err)
	}
	if e.Kind = kind; kind == api.WatchDisconnect {
		return fmt.Errorf("%w: the agent ended the watch: %s", ErrUnreachable, e.Reason)
	}
	w.token = id
	w.enough = !w.yield(e, nil)
	return nil
}
