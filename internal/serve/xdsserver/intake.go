package xdsserver

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/tap"
)

// gRPC gives a request to the server only when the request is complete. Until then gRPC keeps the received bytes, for
// each stream up to the longest request. So the incomplete requests of all connections together are bounded. Above the
// bound, connections that hold more than littleIntake are not read until others have finished. If a connection does
// not finish and blocks others, it is closed: a client that sends half a request and waits, or one that holds so much
// that others have no room. Data for a stream that has ended, or that gRPC never opened, does not count.
const (
	intakeShare  = 4        // divisor of the memory for clients; the result bounds the requests of all connections together
	littleIntake = 16 << 10 // of one connection: with less it is always read
	intakeWait   = time.Second
)

var errNoIntake = errors.New("too much of requests has come that are not complete")

// intake counts the bytes of requests that have come and were not received yet. It is a [stats.Handler] of the server
// whose listeners it wraps, and must be called for each stream that opens ([intake.open]).
type intake struct {
	most int64

	mu    sync.Mutex
	sum   int64
	large map[*intakeConn]struct{} // connections that hold more than littleIntake
	made  time.Time                // when connections were last closed to make room: the waiting ones have room now
	freed chan struct{}            // closed and replaced when bytes are released
}

func newIntake(memory int64) *intake {
	return &intake{most: memory / intakeShare, large: make(map[*intakeConn]struct{}), freed: make(chan struct{})}
}

// wait waits until a connection may be read. It returns false when the connection is to be closed.
func (i *intake) wait(c *intakeConn) bool {
	for {
		i.mu.Lock()
		free, ended, freed := i.sum <= i.most || c.held <= littleIntake, c.ended, i.freed
		c.waits = !free && !ended
		i.mu.Unlock()
		if free || ended {
			return !ended
		}
		timer := time.NewTimer(intakeWait)
		select {
		case <-freed:
		case <-timer.C:
			i.makeRoom()
		}
		timer.Stop()
	}
}

// makeRoom closes connections that block others. Their pending and later reads fail.
func (i *intake) makeRoom() {
	i.mu.Lock()
	var over []*intakeConn
	if now := time.Now(); i.sum > i.most && now.Sub(i.made) >= intakeWait {
		over, i.made = i.holders(now), now
	}
	for _, c := range over {
		i.change(c, -c.held)
		c.ended = true
	}
	i.mu.Unlock()
	for _, c := range over {
		_ = c.Conn.Close()
	}
}

// holders returns the connections that block others: those that are read, but make no progress. If there are none, it
// returns one of those that wait for each other.
func (i *intake) holders(now time.Time) (all []*intakeConn) {
	for c := range i.large {
		if !c.waits && now.Sub(c.since) >= intakeWait {
			all = append(all, c)
		}
	}
	if all == nil {
		all = append(all, i.largest())
	}
	return all
}

// largest returns the connection that holds the most, among those of the peer that holds the most.
func (i *intake) largest() (most *intakeConn) {
	of := make(map[netip.Addr]int64)
	for c := range i.large {
		of[c.peer] += c.held
	}
	for c := range i.large {
		if most == nil || cmp.Or(cmp.Compare(of[c.peer], of[most.peer]), cmp.Compare(c.held, most.held)) > 0 {
			most = c
		}
	}
	return most
}

// came counts received bytes, up to the end of the head of a request, and returns how many these are.
func (i *intake) came(c *intakeConn, p []byte) (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return c.in.follow(p, func(f frame, n int) {
		switch s := c.streams[f.stream]; {
		case s == nil: // gRPC has not opened the stream, or it has ended
		case f.kind == frameData:
			i.hold(s, int64(n))
		case f.kind == frameReset:
			i.close(s)
		}
	})
}

// sent notes which streams the server ends. The writer reads the frames without the lock: only few of them end a
// stream.
func (i *intake) sent(c *intakeConn, p []byte) {
	for len(p) > 0 {
		p = p[c.out.follow(p, func(f frame, _ int) {
			if f.endsStream() {
				i.over(c, f.stream)
			}
		}):]
	}
}

// over marks a stream that the server has ended.
func (i *intake) over(c *intakeConn, stream uint32) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if s := c.streams[stream]; s != nil {
		i.close(s)
	}
}

// release removes a connection that is closed, with all its streams.
func (i *intake) release(c *intakeConn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range c.streams {
		s.held = 0
	}
	clear(c.streams)
	i.change(c, -c.held)
}

func (i *intake) change(c *intakeConn, by int64) {
	if c.ended || by == 0 {
		return
	}
	c.held += by
	i.sum += by
	if delete(i.large, c); c.held > littleIntake {
		c.since, i.large[c] = time.Now(), struct{}{}
	}
	if by < 0 {
		close(i.freed)
		i.freed = make(chan struct{})
	}
}

type (
	connKey   struct{}
	streamKey struct{}
)

// TagConn implements [stats.Handler].
func (i *intake) TagConn(ctx context.Context, info *stats.ConnTagInfo) context.Context {
	if a, is := info.RemoteAddr.(connAddr); is {
		return context.WithValue(ctx, connKey{}, a.conn)
	}
	return ctx
}

// HandleConn implements [stats.Handler]; it does nothing.
func (i *intake) HandleConn(context.Context, stats.ConnStats) {}

// open is a [tap.ServerInHandle]. gRPC calls it while it reads the head of a request, which is the last data that it
// got from the connection ([intakeConn.first]).
func (i *intake) open(ctx context.Context, _ *tap.Info) (context.Context, error) {
	c, is := ctx.Value(connKey{}).(*intakeConn)
	if !is {
		return ctx, nil
	}
	s := &intakeStream{conn: c, id: c.in.stream}
	i.mu.Lock()
	c.streams[s.id] = s
	i.mu.Unlock()
	return context.WithValue(ctx, streamKey{}, s), nil
}

// TagRPC implements [stats.Handler]; it does nothing.
func (i *intake) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC notes requests that were received, and streams that have a handler.
func (i *intake) HandleRPC(ctx context.Context, event stats.RPCStats) {
	s, is := ctx.Value(streamKey{}).(*intakeStream)
	if !is {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch event := event.(type) {
	case *stats.InPayload:
		i.hold(s, -int64(event.WireLength))
	case *stats.Begin:
		s.handled = true
	case *stats.End:
		s.handled = false
		i.drop(s)
	}
}

// close marks a stream for which no more data can come.
func (i *intake) close(s *intakeStream) {
	s.closed = true
	i.drop(s)
}

// drop removes a stream that is closed and has no handler. As long as it has a handler, gRPC keeps the data.
func (i *intake) drop(s *intakeStream) {
	if s.closed && !s.handled {
		i.hold(s, -s.held)
		delete(s.conn.streams, s.id)
	}
}

// hold changes the bytes that a stream holds by n, but never to less than 0.
func (i *intake) hold(s *intakeStream, n int64) {
	n = max(n, -s.held)
	s.held += n
	i.change(s.conn, n)
}
