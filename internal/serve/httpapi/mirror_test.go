package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mesh-agent/mesh-agent/internal/base/safetext"
	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/view"
)

// mirror is a client that builds the lists from a watch.
type mirror struct {
	f        *fixture
	resource string // empty for all
	filter   string
	peer     netip.Addr // invalid for the unix socket

	mu     sync.Mutex                   // guards the fields that the reader of the connection writes
	state  map[string]map[string]string // JSON by resource and name
	synced map[string]bool
	token  string
	resets int
	wrong  error // the first violation of the rules of a watch
	signs  int   // signs of life since the last event

	conn *connection // nil while there is none
}

// connection is a watch of a mirror. Only the part that the mirror has read counts.
type connection struct {
	pipe   *io.PipeReader
	cancel context.CancelFunc
	allow  chan int // events to be read
	ended  chan struct{}
}

func (m *mirror) query() string {
	query := m.filter
	if m.resource != "" {
		query = strings.TrimSuffix("resource="+m.resource+"&"+m.filter, "&")
	}
	return query
}

// connect begins, or continues from the last token.
func (m *mirror) connect(t *testing.T) {
	r := request(http.MethodGet, "/v1/watch?"+m.query())
	if m.token != "" {
		r.Header.Set("Last-Event-ID", m.token)
	} else {
		m.forget()
	}
	subs, token, err := m.f.subscriptions(r)
	must(t, err)
	in, out := io.Pipe()
	ctx, cancel := context.WithCancel(m.f.stopping)
	c := &connection{pipe: in, cancel: cancel, allow: make(chan int), ended: make(chan struct{})}
	session := m.f.newWatching(subs, token)
	var turns view.Turns
	if m.peer.IsValid() {
		turns = &transport.PeerTurns{States: m.f.states, Peer: m.peer}
	}
	go func() { out.CloseWithError(session.run(ctx, out, turns)) }()
	m.conn = c
	go m.read(c)
}

func (m *mirror) forget() {
	m.state, m.synced = make(map[string]map[string]string), make(map[string]bool)
}

// read reads as many events as it is allowed to.
func (m *mirror) read(c *connection) {
	defer close(c.ended)
	lines := bufio.NewReader(c.pipe)
	for n := range c.allow {
		for ; n > 0; n-- {
			if err := m.event(lines); err != nil {
				m.fail(err)
				return
			}
		}
	}
}

// fail keeps an error, unless it is the end of the connection.
func (m *mirror) fail(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, io.ErrClosedPipe) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = errors.Join(m.wrong, err)
}

// trouble returns the kept error.
func (m *mirror) trouble() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrong
}

// event reads one event or sign of life.
func (m *mirror) event(lines *bufio.Reader) error {
	e, err := readEvent(lines)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.id != "" {
		m.token = e.id
	}
	if m.signs++; e.event != "" {
		m.signs = 0
	}
	if e.event == api.WatchDisconnect {
		return fmt.Errorf("disconnected: %s", e.data.Reason)
	}
	return m.take(e.event, e.data.Resource, e.data.Object)
}

func (m *mirror) take(event, resource string, object json.RawMessage) error {
	if m.state[resource] == nil {
		m.state[resource] = make(map[string]string)
	}
	items := m.state[resource]
	switch event {
	case api.WatchReset:
		m.resets++
		m.forget()
	case api.WatchSynced:
		m.synced[resource] = true
	case api.WatchUpsert:
		items[nameOf(resource, object)] = string(object)
	case api.WatchDelete:
		name := nameOf(resource, object)
		if _, known := items[name]; !known {
			return fmt.Errorf("%s %s is deleted, which the follower of %q never had", resource, name, m.query())
		}
		delete(items, name)
	}
	return nil
}

// nameOf returns the key that distinguishes the items of a list.
func nameOf(resource string, object []byte) string {
	var o struct {
		Cluster, Namespace, Name, Prefix, Kind, Subject string
		ID                                              uint64
	}
	if err := json.Unmarshal(object, &o); err != nil {
		return err.Error()
	}
	switch resource {
	case "clusters", "health":
		return o.Name
	case "services":
		return o.Namespace + "/" + o.Name
	case "ips":
		return o.Prefix
	}
	return fmt.Sprint(o.Cluster, "/", o.Namespace, "/", o.Name, "/", o.ID, "/", o.Kind, "/", o.Subject)
}

// cut ends the connection at any point of the stream.
func (m *mirror) cut() {
	if m.conn == nil {
		return
	}
	m.conn.cancel()
	m.conn.pipe.Close()
	close(m.conn.allow)
	<-m.conn.ended
	synctest.Wait()
	m.conn = nil
}

// readUpTo reads n events, or all events if there are fewer.
func (m *mirror) readUpTo(n int) {
	select {
	case m.conn.allow <- n:
	default: // it still reads the events that it was allowed to
	}
	synctest.Wait()
}

// readAll reads until only signs of life arrive.
func (m *mirror) readAll() {
	quiet := func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.signs >= 2
	}
	m.mu.Lock()
	m.signs = 0
	m.mu.Unlock()
	for !quiet() {
		select {
		case m.conn.allow <- 1:
		case <-m.conn.ended:
			return
		}
	}
	synctest.Wait()
}

// differs returns the differences between the follower and the lists.
func (m *mirror) differs(t testing.TB) error {
	all := m.listed(t)
	m.mu.Lock()
	defer m.mu.Unlock()
	for resource, want := range all {
		if !m.synced[resource] {
			return fmt.Errorf("%q: no state of %s is complete", m.query(), resource)
		}
		if got := m.state[resource]; !maps.Equal(got, want) {
			return fmt.Errorf("%q: the follower of %s has\n%v\nthe list\n%v", m.query(), resource, got, want)
		}
	}
	return nil
}

// listed returns the contents of the lists, as a watch shows them.
func (m *mirror) listed(t testing.TB) map[string]map[string]string {
	all := make(map[string]map[string]string)
	for resource := range followed {
		if m.resource != "" && m.resource != resource {
			continue
		}
		items := make(map[string]string)
		for _, object := range list[json.RawMessage](t, m.f, "/v1/"+resource+"?"+m.filter).Items {
			items[nameOf(resource, object)] = string(unmoved(t, resource, object))
		}
		all[resource] = items
	}
	return all
}

// unmoved returns an item without the fields that change all the time, which no watch shows.
func unmoved(t testing.TB, resource string, object []byte) []byte {
	var c api.Cluster
	var h api.Health
	var still any
	switch resource {
	case "clusters":
		must(t, json.Unmarshal(object, &c))
		c.LastEvent, c.HeartbeatAgeSeconds, c.Freshness.Worst = nil, nil, api.Freshness{State: c.Freshness.Worst.State}
		for _, f := range c.Freshness.All() {
			if f.AgeSeconds, f.Read, f.Total, f.Lag = nil, 0, 0, nil; f.State == "synced" {
				f.AsOf = nil
			}
		}
		if c.Policy != nil {
			c.Policy.Evidence.Confirmed, c.Policy.Evidence.Heartbeat = nil, nil
		}
		still = c
	case "health":
		must(t, json.Unmarshal(object, &h))
		h.LastSuccess = nil
		still = h
	default:
		return object
	}
	var text bytes.Buffer
	must(t, safetext.Encoder(&text).Encode(still))
	return bytes.TrimSpace(text.Bytes())
}
