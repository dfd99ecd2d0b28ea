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
	watchRestarts  = 3                // states in a row that a client may be too slow for
	stateWait      = 30 * time.Second // for the turn of a state
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
	c.turn = endTurn
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
	turn     func() // ends the turn of the first state; nil: there was none, or it was taken
	out      sseWriter
	limbo    int // states in a row that were too old when they were complete
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
		_, _, _, known = c.s.feed.after(position, c.resources(), nil)
	}
	return position, known
}

// run sends the state, unless the client has a token that is known, and then
// the changes, until nobody reads any more.
func (c *watching) run(ctx context.Context) error {
	defer c.s.feed.reading()()
	position, err := c.position, error(nil)
	if !c.resumes {
		reason := ""
		switch {
		case c.token == "":
		case c.leaning():
			reason = "addresses that are chosen by labels always begin again"
		default:
			reason = "the token is not known here: the agent was started since, or too much has changed"
		}
		if position, err = c.begin(ctx, reason); err != nil {
			return err
		}
	}
	for {
		entries, reached, more, held := c.s.feed.after(position, c.resources(), c.out.buffers().page)
		switch {
		case !held:
			if c.limbo++; c.limbo > watchRestarts {
				return c.out.send("", WatchDisconnect, map[string]string{"reason": "too slow: more changed than could be sent, several times in a row"})
			}
			if position, err = c.begin(ctx, "too slow: more has changed than is kept"); err != nil {
				return err
			}
			continue
		case len(entries) == 0:
			c.limbo = 0
			if err := c.idle(ctx, more, position); err != nil {
				return err
			}
			continue
		}
		if err := c.deliver(ctx, entries, position); err != nil {
			return err
		}
		position = reached
		if err := c.live(position); err != nil {
			return err
		}
	}
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

// begin is [watching.state] within the bounds of those who come over TCP: the
// snapshot that a state is read from is kept until it was sent.
func (c *watching) begin(ctx context.Context, reason string) (uint64, error) {
	if c.from.local {
		return c.state(ctx, reason)
	}
	leave, err := c.takeTurn(ctx)
	if err != nil {
		return 0, errors.Join(err, c.out.send("", WatchDisconnect, map[string]string{"reason": "too many states are being sent to others: come again"}))
	}
	defer leave()
	ctx, cancelState := context.WithTimeout(ctx, answerTimeout)
	defer cancelState()
	return c.state(ctx, reason)
}

// takeTurn waits for the turn of this watch, of its peer's and of all. The first state
// has its peer's already.
func (c *watching) takeTurn(ctx context.Context) (end func(), err error) {
	wait, cancel := context.WithTimeout(ctx, stateWait)
	defer cancel()
	ofPeer := c.turn
	if c.turn = nil; ofPeer == nil {
		if ofPeer, err = c.s.states.ofPeer(wait, c.from.peer); err != nil {
			return nil, err
		}
	}
	ofAll, err := c.s.states.ofAll(wait)
	if err != nil {
		ofPeer()
		return nil, err
	}
	return func() { ofAll(); ofPeer() }, nil
}

// state sends the whole state, after a reset when there is a reason for one,
// and returns the position that it belongs to.
func (c *watching) state(ctx context.Context, reason string) (uint64, error) {
	v := c.view(ctx)
	if err := ctx.Err(); err != nil {
		return 0, err // the view need not be of its position then
	}
	position := v.position
	if reason != "" {
		if err := c.out.send(c.s.feed.partial(), WatchReset, map[string]string{"reason": reason}); err != nil {
			return 0, err
		}
	}
	for i, sub := range c.subs {
		if sub.leans() != "" {
			sub.sent = make(map[string]struct{})
		}
		err := sub.res.state(c.s, v, &sub.query, func(key string, object any) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if sub.sent != nil {
				sub.sent[key] = struct{}{}
			}
			return c.out.put(c.s.feed.partial(), WatchUpsert, WatchEvent{sub.res.title(), object, position})
		})
		if err != nil {
			return 0, err
		}
		id := c.s.feed.partial()
		if i == len(c.subs)-1 {
			id = c.s.feed.token(position)
		}
		if err := c.out.send(id, WatchSynced, WatchEvent{sub.res.title(), nil, position}); err != nil {
			return 0, err
		}
	}
	return position, nil
}

// idle waits for more, or until a sign of life is due.
func (c *watching) idle(ctx context.Context, more <-chan struct{}, position uint64) error {
	c.out.release()
	due := time.NewTimer(c.s.heartbeat - time.Since(c.out.wrote))
	defer due.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-more:
		return nil
	case <-due.C:
		return c.live(position)
	}
}

// live gives a sign of life if nothing was written for long, whatever happened
// that is of no interest to the client.
func (c *watching) live(position uint64) error {
	if time.Since(c.out.wrote) < c.s.heartbeat {
		return nil
	}
	return c.out.beat(c.s.feed.token(position))
}

// deliver sends what became of each object, change by change: where the client is cut
// off, what it has is the state of the last token that it was sent. Only that something
// changes which the client has, and will have a newer version of at once, is left out.
func (c *watching) deliver(ctx context.Context, entries []feedEntry, position uint64) error {
	type name struct {
		resource int
		key      string
	}
	bySub := make(map[int]*subscription, len(c.subs))
	for _, sub := range c.subs {
		bySub[sub.index] = sub
	}
	names := make([]name, len(entries))
	newest := make(map[name]int, len(entries))
	for i, e := range entries {
		if sub := bySub[e.resource]; sub != nil && e.object != nil {
			names[i] = name{e.resource, sub.res.keyOf(e.object)}
			newest[names[i]] = i
		}
	}
	v := c.s.view(ctx)
	for i, e := range entries {
		sub := bySub[e.resource]
		if sub == nil || e.object == nil {
			continue
		}
		if err := c.deliverOne(v, sub, e, names[i].key, newest[names[i]] == i, position+uint64(i)+1); err != nil {
			return err
		}
	}
	for _, sub := range c.subs {
		if err := c.lookAgain(v, sub, entries, position+uint64(len(entries))); err != nil {
			return err
		}
	}
	return c.out.flush()
}

// lookAgain sends what passes the filters, or does not any more, since an object
// of another resource changed.
func (c *watching) lookAgain(v *view, sub *subscription, entries []feedEntry, position uint64) error {
	other := sub.leans()
	if other == "" {
		return nil
	}
	var changed []any
	for _, e := range entries {
		if e.resource == c.s.indexOf(other) && e.object != nil {
			changed = append(changed, e.object)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	for object := range sub.res.affected(v, changed) {
		key := sub.res.keyOf(object)
		_, sent := sub.sent[key]
		if does := sub.res.may(&sub.query, object) && sub.res.does(c.s, v, &sub.query, object); does == sent {
			continue
		}
		if err := c.deliverOne(v, sub, feedEntry{object: object}, key, true, position); err != nil {
			return err
		}
	}
	return nil
}

// deliverOne sends one change, if it is one for the client.
func (c *watching) deliverOne(v *view, sub *subscription, e feedEntry, key string, newest bool, position uint64) error {
	if !sub.res.may(&sub.query, e.object) {
		return nil
	}
	had := c.had(v, sub, e, key)
	kind := WatchUpsert
	switch has := !e.deleted && sub.res.does(c.s, v, &sub.query, e.object); {
	case !has && !had, has && had && !newest:
		return nil
	case !has:
		kind = WatchDelete
		delete(sub.sent, key)
	case sub.sent != nil:
		sub.sent[key] = struct{}{}
	}
	return c.out.put(c.s.feed.token(position), kind, WatchEvent{sub.res.title(), sub.res.show(c.s, v, e.object), position})
}

// had tells whether the client has the object before the change.
func (c *watching) had(v *view, sub *subscription, e feedEntry, key string) bool {
	if sub.leans() != "" {
		_, sent := sub.sent[key]
		return sent
	}
	return e.before != nil && sub.res.does(c.s, v, &sub.query, e.before)
}
