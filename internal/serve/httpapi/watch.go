package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// Limits of a watch.
const (
	watchHeartbeat = 15 * time.Second // between heartbeats of an idle watch
	firstStateWait = 2 * time.Second  // for the peer's turn of a first state, before the watch is refused
)

func (s *Server) watch(w http.ResponseWriter, r *http.Request) error {
	subs, token, err := s.subscriptions(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return nil
	}
	from := transport.OriginOf(r.Context())
	session := s.newWatching(subs, token)
	turns, leave, err := s.admitWatch(r.Context(), from, session.stream.Resumes())
	if err != nil {
		return err
	}
	return s.streams.Answer(w, leave, func(ctx context.Context, out io.Writer) {
		_ = session.run(ctx, out, turns) // an error: the client is gone, or the server stops
	})
}

// admitWatch admits one more watch, with its turn for the first state if it needs one. A slow reader of a state keeps
// a snapshot alive, so a peer has few turns. Over the unix socket there are no turns.
func (s *Server) admitWatch(ctx context.Context, from transport.Origin, resumes bool) (_ view.Turns, leave func(), err error) {
	if from.Local {
		return nil, func() {}, nil
	}
	leaveWatches, ok := s.watches.Enter(from.Peer)
	if !ok {
		return nil, nil, busy("there are too many watches")
	}
	turns := &transport.PeerTurns{States: s.states, Peer: from.Peer}
	if resumes {
		return turns, leaveWatches, nil
	}
	wait, cancel := context.WithTimeout(ctx, s.firstWait)
	defer cancel()
	endTurn, err := s.states.OfPeer(wait, from.Peer)
	if err != nil {
		leaveWatches()
		return nil, nil, busy("too many watches of this address are being sent their first state")
	}
	turns.First = endTurn
	return turns, func() { endTurn(); leaveWatches() }, nil
}

type subscription struct {
	res   watchable
	query query
}

// subscriptions parses the request. A request without a resource is for all of them.
func (s *Server) subscriptions(r *http.Request) ([]*subscription, string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, "", badRequest("query: %v", err)
	}
	names, token := values["resource"], values.Get("since")
	values.Del("resource")
	values.Del("since")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		token = last
	}
	var subs []*subscription
	for _, res := range s.resources {
		if len(names) > 0 && !slices.Contains(names, string(res.kind())) {
			continue
		}
		sub := &subscription{res: res}
		for name, given := range values {
			if name == "limit" || name == "cursor" {
				return nil, "", badRequest("%s: a watch has no pages", name)
			}
			if err := sub.query.set(string(res.kind()), res.filterNames(), name, given); err != nil {
				return nil, "", err
			}
		}
		subs = append(subs, sub)
	}
	kinds := view.Kinds()
	for _, name := range names {
		if !slices.Contains(kinds, view.Kind(name)) {
			all := converted(kinds, func(k view.Kind) string { return string(k) })
			return nil, "", badRequest("resource %q: want one of %s", name, strings.Join(all, ", "))
		}
	}
	return subs, token, nil
}

func watchParameters() []string {
	names := []string{"resource", "since"}
	for _, res := range allResources() {
		for _, name := range res.filterNames() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// watching is the watch of one client: it receives the events of its stream.
type watching struct {
	s      *Server
	subs   []*subscription
	stream *view.Stream
	out    *transport.Events
	client io.Writer
}

func (s *Server) newWatching(subs []*subscription, token string) *watching {
	chosen := converted(subs, func(sub *subscription) view.Subscription {
		return view.Subscription{Kind: sub.res.kind(), Filter: sub.res.filter(s, &sub.query)}
	})
	return &watching{s: s, subs: subs, stream: s.View.Stream(token, chosen...)}
}

// run writes the events until the client is gone or the stream ends.
func (c *watching) run(ctx context.Context, out io.Writer, turns view.Turns) error {
	c.out, c.client = transport.NewEvents(out, c.s.buffers), out
	defer c.out.Release()
	err := c.stream.Run(ctx, c, turns)
	if end, ended := errors.AsType[view.Ended](err); ended {
		return c.out.Send("", api.WatchDisconnect, map[string]string{"reason": end.Error()})
	}
	return err
}

func (c *watching) Event(e view.Event) error {
	switch e.Type {
	case view.Reset:
		return c.out.Send(e.Token(), api.WatchReset, map[string]string{"reason": e.Reason})
	case view.Synced:
		return c.out.Send(e.Token(), api.WatchSynced, api.WatchEvent{Resource: string(e.Kind), Revision: e.Position})
	case view.Reached:
		return c.out.KeepAlive(e.Token())
	case view.Page:
		return errors.Join(c.out.Flush(), c.live(e))
	}
	i := slices.IndexFunc(c.subs, func(sub *subscription) bool { return sub.res.kind() == e.Kind })
	return c.s.large.While(c.s.stopping, e.Object, c.Abort, func() error {
		return c.out.Put(e.Token(), string(e.Type), api.WatchEvent{
			Resource: string(e.Kind), Object: c.subs[i].res.show(c.s, e.Snapshot, e.Object), Revision: e.Position,
		})
	})
}

// Idle implements [view.Receiver]: it waits for more events, or until a heartbeat is due.
func (c *watching) Idle(ctx context.Context, at view.Event, more <-chan struct{}) error {
	c.out.Release()
	due := time.NewTimer(c.s.heartbeat - c.out.Quiet())
	defer due.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-more:
		return nil
	case <-due.C:
		return c.live(at)
	}
}

// Abort implements [view.Aborter].
func (c *watching) Abort() {
	if conn, is := c.client.(io.Closer); is {
		_ = conn.Close()
	}
}

// live writes a heartbeat if nothing was written for long, also when there were events that the client's filters
// refuse.
func (c *watching) live(at view.Event) error {
	if c.out.Quiet() < c.s.heartbeat {
		return nil
	}
	return c.out.KeepAlive(at.Token())
}
