package etcd

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

func TestPaceGrows(t *testing.T) {
	t.Parallel()
	const longest = 3 * time.Second
	var p pace
	now := time.Now()
	if wait := p.due(now, longest); wait != 0 {
		t.Errorf("the first one waits for %s", wait)
	}
	p.last = now
	want := paceMin
	for range 20 {
		wait := p.due(now, longest)
		if wait < want || wait > want*3/2 {
			t.Errorf("a wait of %s, want %s and up to half of it more", wait, want)
		}
		now = now.Add(wait)
		p.last = now
		want = min(time.Duration(float64(want)*paceFactor), longest)
	}
	if wait := p.due(now.Add(longest*3/2), longest); wait != 0 { // the pause has already passed
		t.Errorf("another wait of %s", wait)
	}
	if wait := p.due(now.Add(longest*2+1), longest); wait != 0 || p.pause != 0 {
		t.Errorf("after a connection that lasted: %s, %+v", wait, p)
	}
}

// TestPauseOfADialer tests connections that fail, and connections that end.
func TestPauseOfADialer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &dialLog{answers: map[string]bool{"here:1": true}}
		o := sized(1)
		o.Dial = l.dial
		for _, addr := range []string{"here:1", "refuses:1"} {
			d, last := newDialer(&clientfile.Config{}, o), time.Time{}
			for i := range 10 {
				if _, err := d.DialContext(t.Context(), addr); (err == nil) != (addr == "here:1") {
					t.Fatal(err)
				}
				if since := time.Since(last); i > 0 && since < paceMin {
					t.Errorf("%s was asked again after %s", addr, since)
				}
				last = time.Now()
			}
			if since := time.Since(last); since != 0 {
				t.Errorf("%s after it was asked", since)
			}
		}
	})
}

// goAway is a server that ends each connection as soon as it is open, and records when it accepted each.
type goAway struct {
	net.Listener
	mu   sync.Mutex
	came []time.Time
}

func (g *goAway) serve(enough int, done func()) {
	for {
		c, err := g.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		g.came = append(g.came, time.Now())
		if len(g.came) == enough {
			done()
		}
		g.mu.Unlock()
		f := http2.NewFramer(c, nil)
		_ = f.WriteSettings()
		_ = f.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings"))
		defer c.Close() // the client ends it
	}
}

// TestAServerThatEndsConnectionsIsNotHammered measures the pauses between the connections that arrive.
func TestAServerThatEndsConnectionsIsNotHammered(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server, ended := &goAway{Listener: l}, make(chan struct{})
	go func() { defer close(ended); server.serve(5, cancel) }()
	for ctx.Err() == nil { // the owner of a session starts another one after it fails, with pauses of its own
		e, err := Connect(ctx, addresses(t, "http://"+l.Addr().String()), 0, DefaultOptions())
		if err == nil {
			e.Close()
			t.Fatal("connected")
		}
		if ctx.Err() == nil {
			t.Logf("given up: %v", err)
			break
		}
	}
	_ = l.Close()
	<-ended
	if len(server.came) < 2 {
		t.Errorf("it was asked %d times", len(server.came))
	}
	for i := 1; i < len(server.came); i++ {
		// A connection is accepted a moment after its start: on a slow machine the measured pause can be shorter.
		if apart := server.came[i].Sub(server.came[i-1]); apart < paceMin/2 {
			t.Errorf("connections %d and %d came %s apart", i, i+1, apart)
		}
	}
	t.Logf("%d connections", len(server.came))
}
