package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const pastPrefix = "mesh/past/"

// past follows a prefix with a Durable, which the test can keep from connecting.
type past struct {
	t    *testing.T
	srv  *etcdtest.Process
	d    *kvstore.Durable
	away atomic.Bool // connecting fails
	made atomic.Int64

	mu       sync.Mutex
	table    map[string]string
	reported []string
	lists    int
}

var errAway = errors.New("away")

func followPast(t *testing.T) *past {
	t.Helper()
	p := &past{t: t, srv: etcdtest.StartProcess(t), table: map[string]string{}}
	o := etcd.DefaultOptions()
	o.QPS, o.BootstrapQPS = 0, 0
	o.Timings.ProbeInterval, o.Timings.Probe, o.Timings.Connect = 50*time.Millisecond, time.Second/2, 2*time.Second
	o.Timings.BackoffMax = 100 * time.Millisecond
	o.MaxConsecutiveQuorumErrors = 0 // a session ends at its first error
	p.d = etcd.NewDurable(func() (*clientfile.Config, error) {
		if p.away.Load() {
			return nil, errAway
		}
		p.made.Add(1)
		return clientfile.New(p.srv.Endpoint())
	}, o)
	return p
}

// follow follows the prefix until the test ends.
func (p *past) follow() {
	w := NewWatch(Kind[Raw]{Resource: "raw", Decode: decodeRaw, Apply: p.apply, Listed: p.listed}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- p.d.Run(ctx) }()
	go func() { ended <- w.Follow(ctx, Session{Client: p.d, Prefix: pastPrefix}) }()
	p.t.Cleanup(func() {
		cancel()
		for range cap(ended) {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				p.t.Errorf("it ended with %v", err)
			}
		}
		p.d.Close()
	})
}

func (p *past) apply(changes []Change[Raw]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, ch := range changes {
		if ch.New == nil {
			delete(p.table, ch.Name)
			p.reported = append(p.reported, "-"+ch.Name)
		} else {
			p.table[ch.Name] = string(*ch.New)
			p.reported = append(p.reported, "+"+ch.Name)
		}
	}
}

func (p *past) listed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
}

// until waits until the table has exactly these entries, after this number of lists. It returns the reports since its
// last call. A list is counted after its deletions were reported.
func (p *past) until(want map[string]string, lists int) (reported string) {
	p.t.Helper()
	waittest.Try(p.t, "this", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !maps.Equal(want, p.table) {
			return errors.New(cmp.Diff(want, p.table))
		}
		if p.lists != lists {
			return fmt.Errorf("%d lists, want %d", p.lists, lists)
		}
		reported, p.reported = strings.Join(p.reported, " "), nil
		return nil
	})
	return reported
}

// put writes keys with these values and deletes those whose value is empty.
func (p *past) put(values map[string]string) {
	p.t.Helper()
	c := p.srv.Client(p.t)
	for name, value := range values {
		var err error
		if value == "" {
			_, err = c.Delete(p.t.Context(), pastPrefix+name)
		} else {
			_, err = c.Put(p.t.Context(), pastPrefix+name, value)
		}
		must(p.t, err)
	}
}

// between ends the session, calls then, and allows the next session afterwards.
func (p *past) between(end func(testing.TB), then func()) {
	p.t.Helper()
	p.away.Store(true)
	before := p.made.Load()
	end(p.t)
	waittest.Try(p.t, "this", func() error {
		if s := p.d.Status(); !strings.Contains(s.LastError, errAway.Error()) {
			return fmt.Errorf("the session is not over: %+v", s)
		}
		return nil
	})
	then()
	p.away.Store(false)
	waittest.Try(p.t, "this", func() error {
		if p.made.Load() == before || !p.d.Status().Connected {
			return errors.New("there is no other session")
		}
		return nil
	})
}

// TestFollowGoesOnAcrossSessions: the server may change in several ways between two sessions. The changes are applied
// once, including deletions. If the history is the same, no new list is needed.
func TestFollowGoesOnAcrossSessions(t *testing.T) {
	t.Parallel()
	kill, freeze := (*etcdtest.Process).Kill, (*etcdtest.Process).Freeze
	compact := func(p *etcdtest.Process, t testing.TB) {
		c := p.Client(t)
		resp, err := c.Get(t.Context(), pastPrefix)
		if err == nil {
			_, err = c.Compact(t.Context(), resp.Header.Revision)
		}
		must(t, err)
	}
	first := map[string]string{"a": "1", "b": "1", "c": "1"}
	for name, c := range map[string]struct {
		end, back func(*etcdtest.Process, testing.TB)
		change    map[string]string
		after     func(*etcdtest.Process, testing.TB)
		want      map[string]string
		reported  []string // one of these is reported
		lists     int
	}{
		"the same server, frozen": {
			end: freeze, back: (*etcdtest.Process).Thaw, change: map[string]string{"b": "2"},
			want: map[string]string{"a": "1", "b": "2", "c": "1"}, reported: []string{"+b"}, lists: 1,
		},
		"the same server, restarted": {
			end: kill, back: (*etcdtest.Process).Restart, change: map[string]string{"a": "2", "b": ""},
			want: map[string]string{"a": "2", "c": "1"}, reported: []string{"+a -b", "-b +a"}, lists: 1,
		},
		"compacted": {
			end: kill, back: (*etcdtest.Process).Restart, change: map[string]string{"a": "2", "b": ""}, after: compact,
			want: map[string]string{"a": "2", "c": "1"}, reported: []string{"+a -b"}, lists: 2,
		},
		"wiped": {
			end: kill, back: (*etcdtest.Process).RestartEmpty, change: map[string]string{"a": "1", "d": "1"},
			want: map[string]string{"a": "1", "d": "1"}, reported: []string{"+d -b -c", "+d -c -b"}, lists: 2,
		},
		"wiped, and written again beyond the position": {
			end: kill, back: (*etcdtest.Process).RestartEmpty, change: map[string]string{"a": "1", "d": "1", "e": "1", "f": "1", "g": "1", "h": "1"},
			want:     map[string]string{"a": "1", "d": "1", "e": "1", "f": "1", "g": "1", "h": "1"},
			reported: []string{"+d +e +f +g +h -b -c", "+d +e +f +g +h -c -b"},
			lists:    2,
		},
		"replaced by another": {
			end: kill, back: (*etcdtest.Process).RestartAsOther, change: map[string]string{"a": "1", "b": "2"},
			want: map[string]string{"a": "1", "b": "2"}, reported: []string{"+b -c"}, lists: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := followPast(t)
			p.put(first)
			p.follow()
			p.until(first, 1)
			p.between(func(t testing.TB) { c.end(p.srv, t) }, func() {
				c.back(p.srv, t)
				p.put(c.change)
				if c.after != nil {
					c.after(p.srv, t)
				}
			})
			reported := p.until(c.want, c.lists)
			is := false
			for _, want := range c.reported {
				is = is || reported == want
			}
			if !is {
				t.Errorf("reported %q, want one of %q", reported, c.reported)
			}
			p.put(map[string]string{"z": "1"}) // and the prefix is still followed
			c.want["z"] = "1"
			if reported := p.until(c.want, c.lists); reported != "+z" {
				t.Errorf("then reported %q", reported)
			}
		})
	}
}

// TestFollowEndsWithTheClient: Follow returns when the client is closed.
func TestFollowEndsWithTheClient(t *testing.T) {
	t.Parallel()
	p := followPast(t)
	p.put(map[string]string{"a": "1"})
	w := NewRawWatch(p.apply, slog.New(slog.DiscardHandler))
	ended := make(chan error, 2)
	go func() { ended <- p.d.Run(context.Background()) }()
	go func() { ended <- w.Follow(context.Background(), Session{Client: p.d, Prefix: pastPrefix}) }()
	p.until(map[string]string{"a": "1"}, 0)
	p.d.Close()
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, kvstore.ErrClosed) {
			t.Errorf("it ended with %v", err)
		}
	}
	w.Drain()
	p.until(map[string]string{}, 0)
}
