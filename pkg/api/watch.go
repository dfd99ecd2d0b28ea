package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The events of a watch.
const (
	WatchUpsert     = "upsert"     // the object is there, as it is now
	WatchDelete     = "delete"     // the object, as it was, is gone
	WatchReset      = "reset"      // forget everything: the state follows from the beginning
	WatchSynced     = "synced"     // the state of this resource is complete; changes follow
	WatchDisconnect = "disconnect" // the agent ends the watch, and says why
)

// Limits of a watch.
const (
	watchPage      = 256              // changes taken from the feed at a time
	watchHeartbeat = 15 * time.Second // between signs of life of an idle watch
	watchRestarts  = 3                // states in a row after which too much may have changed at once
	stateWait      = 30 * time.Second // for the turn of a state
	stateTime      = 10 * time.Minute // for a state and what changes meanwhile, before others have their turn
	firstStateWait = 2 * time.Second  // for the peer's turn of a first state, before the watch is refused
)

// watch serves the changes of some resources as Server-Sent Events.
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
	session := &watching{s: s, subs: subs, token: token, from: originOf(r.Context())}
	session.position, session.resumes = session.resume()
	leave, err := session.admit(r.Context())
	if err != nil {
		return err
	}
	return s.stream(w, leave, func(ctx context.Context, out io.Writer) {
		session.out = sseWriter{w: out, pool: &s.buffers, wrote: time.Now()}
		defer session.out.release()
		// The client is gone, or the server stops: nobody is left to tell.
		_ = session.run(ctx)
	})
}

// admit enters one more watch, with its turn for the first state if it needs one:
// a reader that takes its state slowly keeps a snapshot alive, so that a peer has few
// of them.
func (c *watching) admit(ctx context.Context) (leave func(), err error) {
	if c.from.local {
		return func() {}, nil
	}
	leaveWatches, ok := c.s.watches.enter(c.from.peer)
	if !ok {
		return nil, busy("there are too many watches")
	}
	if c.resumes {
		return leaveWatches, nil
	}
	wait, cancel := context.WithTimeout(ctx, c.s.firstWait)
	defer cancel()
	endTurn, err := c.s.states.ofPeer(wait, c.from.peer)
	if err != nil {
		leaveWatches()
		return nil, busy("too many watches of this address are being sent their first state")
	}
	c.turn.ofPeer = endTurn
	return func() { endTurn(); leaveWatches() }, nil
}

// subscription is one resource of a watch.
type subscription struct {
	index int // of the resource in the feed
	res   watchable
	query query
	// sent holds what the client has, when that depends on another resource; nil when
	// it follows from the changes.
	sent map[string]struct{}
}

// leans names the resource whose changes may change what passes the filters;
// empty when there is none.
func (sub *subscription) leans() string { return sub.res.leansOn(&sub.query) }

// indexOf is the resource's place in the feed.
func (s *Server) indexOf(title string) int {
	return slices.IndexFunc(s.watchables, func(res watchable) bool { return res.title() == title })
}

// subscriptions reads the request. Without a resource it is about all of them.
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
	for i, res := range s.watchables {
		if len(names) > 0 && !slices.Contains(names, res.title()) {
			continue
		}
		sub := &subscription{index: i, res: res}
		for name, given := range values {
			if name == "limit" || name == "cursor" {
				return nil, "", badRequest("%s: a watch has no pages", name)
			}
			if err := sub.query.set(res.title(), res.filterNames(), name, given); err != nil {
				return nil, "", err
			}
		}
		subs = append(subs, sub)
	}
	for _, name := range names {
		if !slices.ContainsFunc(s.watchables, func(res watchable) bool { return res.title() == name }) {
			return nil, "", badRequest("resource %q: want one of %s", name, strings.Join(s.watchTitles(), ", "))
		}
	}
	return subs, token, nil
}

// watchParameters are the filters of all resources.
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

func (s *Server) watchTitles() []string {
	titles := make([]string, len(s.watchables))
	for i, res := range s.watchables {
		titles[i] = res.title()
	}
	return titles
}

// watching is one client's watch.
type watching struct {
	s     *Server
	subs  []*subscription
	token string // of the request
	from  origin
	// position is where to go on if resumes is set; else a state comes first.
	position uint64
	resumes  bool
	turn     turn
	out      sseWriter
	limbo    int // states in a row after which too much had changed at once
	// has is what the client has, at position, while it is behind; nil once it keeps up.
	has *view
}

// leaning tells whether what the client has depends on more than the changes say.
func (c *watching) leaning() bool {
	return slices.ContainsFunc(c.subs, func(sub *subscription) bool { return sub.leans() != "" })
}

// resume returns where the client goes on; false when it needs a state first.
func (c *watching) resume() (uint64, bool) {
	position, known := c.s.feed.position(c.token)
	if c.leaning() {
		return 0, false // nobody knows what was sent
	}
	if known {
		c.s.feed.advance(c.s.now())
		_, known = c.s.feed.lag(position, c.resources())
	}
	return position, known
}

// run sends the state, unless the client has a token that is known, and then
// the changes, until nobody reads any more.
func (c *watching) run(ctx context.Context) error {
	defer c.s.feed.reading()()
	defer c.keepUp()
	var err error
	if !c.resumes {
		err = c.begin(ctx, c.whyAgain())
	}
	for err == nil {
		err = c.step(ctx)
	}
	if end, ended := errors.AsType[endedError](err); ended {
		return c.out.send("", WatchDisconnect, map[string]string{"reason": end.Error()})
	}
	return err
}

// endedError says why the agent ends a watch.
type endedError string

func (e endedError) Error() string { return string(e) }

// whyAgain is why a client that has a token needs a state; empty for those without one.
func (c *watching) whyAgain() string {
	switch {
	case c.token == "":
		return ""
	case c.leaning():
		return "addresses that are chosen by labels always begin again"
	}
	return "the token is not known here: the agent was started since, or too much has changed"
}

// step sends a page of changes, or everything that the client lacks when it has
// fallen behind.
func (c *watching) step(ctx context.Context) error {
	lag, held := c.s.feed.lag(c.position, c.resources())
	switch {
	case !held && c.has == nil:
		if c.limbo++; c.limbo > watchRestarts {
			return endedError("too slow: more changed than could be sent, several times in a row")
		}
		return c.begin(ctx, "too slow: more has changed than is kept")
	case held && lag <= c.s.feed.size/2:
		c.keepUp()
		return c.follow(ctx)
	case c.has == nil && !c.tryTurn():
		return c.follow(ctx) // perhaps it is fast enough
	}
	return c.catchUp(ctx)
}

// follow sends the next page of changes, or waits for one.
func (c *watching) follow(ctx context.Context) error {
	entries, reached, more, held := c.s.feed.after(c.position, c.resources(), c.out.buffers().page)
	switch {
	case !held:
		return nil // the next step sees to it
	case len(entries) == 0:
		c.limbo = 0
		return c.idle(ctx, more)
	}
	if err := c.deliver(ctx, c.s.view(ctx), entries); err != nil {
		return err
	}
	c.position = reached
	return c.live()
}

// view is one that shows all resources.
func (c *watching) view(ctx context.Context) *view {
	titles := make([]string, len(c.subs))
	for i, sub := range c.subs {
		titles[i] = sub.res.title()
	}
	return c.s.view(ctx, titles...)
}

func (c *watching) resources() []int {
	var indexes []int
	for _, sub := range c.subs {
		indexes = append(indexes, sub.index)
		if other := sub.leans(); other != "" {
			indexes = append(indexes, c.s.indexOf(other))
		}
	}
	return indexes
}

// idle waits for more, or until a sign of life is due.
func (c *watching) idle(ctx context.Context, more <-chan struct{}) error {
	c.out.release()
	due := time.NewTimer(c.s.heartbeat - time.Since(c.out.wrote))
	defer due.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-more:
		return nil
	case <-due.C:
		return c.live()
	}
}

// live gives a sign of life if nothing was written for long, whatever happened
// that is of no interest to the client.
func (c *watching) live() error {
	if time.Since(c.out.wrote) < c.s.heartbeat {
		return nil
	}
	return c.out.beat(c.s.feed.token(c.position))
}
