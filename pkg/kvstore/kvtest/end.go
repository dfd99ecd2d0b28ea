package kvtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func endCases(is cases) {
	is.onClient("a stream ends with its context", func(e *env, c kvstore.Client) {
		at := e.head(c)
		ctx, cancel := context.WithCancel(e.ctx)
		s, err := c.Watch(ctx, "p/", at)
		e.must(err)
		time.AfterFunc(20*time.Millisecond, cancel)
		e.recvFails(s, context.Canceled)
		s.Close()
	})
	is.onClient("closing a stream wakes up who receives", func(e *env, c kvstore.Client) {
		s := e.watch(c, "p/", e.head(c))
		time.AfterFunc(20*time.Millisecond, s.Close)
		e.recvFails(s, kvstore.ErrClosed)
		s.Close()
		e.recvFails(s, kvstore.ErrClosed)
		e.head(c) // closing a stream has not ended the session
	})
	is.onClient("closing a client ends its calls and streams", func(e *env, c kvstore.Client) {
		at := e.head(c)
		s := e.watch(c, "p/", at)
		time.AfterFunc(20*time.Millisecond, c.Close)
		e.recvFails(s, kvstore.ErrClosed)
		c.Close()
		e.readsFail(e.ctx, c, at, kvstore.ErrClosed)
	})
	is.onClient("a broken stream is resumed after its last position", func(e *env, c kvstore.Client) {
		at := e.head(c)
		s := e.watch(c, "p/", at)
		e.fill("p/", 5)
		events := e.events(s, 5)
		e.store.Break(e.T)
		more, reached, _ := e.drain(s)
		if len(more) == 0 {
			reached = kvstore.Position{ClusterID: at.ClusterID, Revision: events[4].ModRevision}
		}
		events = append(events, more...)
		e.fill("q/", 1)
		e.fill("p/", 5)
		var again kvstore.Stream
		waittest.Try(e.T, "another watch", func() (err error) {
			again, err = c.Watch(e.ctx, "p/", reached)
			return err
		})
		defer again.Close()
		events = append(events, e.events(again, 10-len(events))...)
		last := at.Revision
		for _, ev := range events {
			e.errorIf(ev.ModRevision <= last, "revision %d after %d", ev.ModRevision, last)
			last = ev.ModRevision
		}
		e.errorIf(last != at.Revision+11, "the last revision is %d, want %d", last, at.Revision+11)
	})
	is.onClient("a broken stream does not end the session", func(e *env, c kvstore.Client) {
		s := e.watch(c, "p/", e.head(c))
		e.store.Break(e.T)
		_, _, err := e.drain(s)
		for _, not := range []error{kvstore.ErrCompacted, kvstore.ErrServerChanged, kvstore.ErrClosed, context.Canceled} {
			e.errorIf(errors.Is(err, not), "the error of a broken stream is %v", err)
		}
		waittest.Try(e.T, "head", func() error { return second(c.Head(e.ctx)) })
	})
	is("a replaced server ends the session", func(e *env) { changed(e, e.store.Replace, false) })
	is("a wiped server ends the session although its cluster ID stays", func(e *env) { changed(e, e.store.Wipe, true) })
}

func (e *env) ask(s kvstore.Stream, stop <-chan struct{}) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := s.RequestProgress(); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-stop:
			return nil
		case <-e.ctx.Done():
			return e.ctx.Err()
		}
	}
}

func (e *env) drain(s kvstore.Stream) (events []kvstore.Event, at kvstore.Position, err error) {
	e.Helper()
	err = e.within("recv", func() error {
		for {
			b, err := s.Recv()
			if err != nil {
				return err
			}
			events, at = append(events, b.Events...), b.At
		}
	})
	return events, at, err
}

func changed(e *env, change func(*testing.T), sameID bool) {
	e.fill("p/", 5)
	c := e.open()
	at := e.head(c)
	s := e.watch(c, "p/", at)
	change(e.T)
	_, _, err := e.drain(s)
	e.errorIf(err == nil, "the stream has survived")
	e.untilChanged(c)
	e.readsFail(e.ctx, c, at, kvstore.ErrServerChanged)
	e.errorIf(c.Status().Connected, "connected after the end of the session")

	next := e.open()
	items, now := e.list(next, "p/")
	e.same("keys that the new session sees", 0, len(items))
	e.errorIf((now.ClusterID == at.ClusterID) != sameID, "the new session is at %v, the old one was at %v", now, at)
	e.wantErr("watch after the old position", second(next.Watch(e.ctx, "p/", at)), kvstore.ErrServerChanged)
}
