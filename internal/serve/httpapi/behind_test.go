package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/ipcache"
	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/view"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// storm changes nodes, addresses and identities without end, each object in turn: it is added, changed, and removed.
type storm struct {
	f       *fixture
	objects int
	step    int
	nodes   map[string]*nodes.Node
	ids     map[string]*identities.Identity
	claims  map[int]*ipcache.Entry
}

func newStorm(f *fixture, objects int) *storm {
	return &storm{
		f: f, objects: objects, nodes: make(map[string]*nodes.Node), ids: make(map[string]*identities.Identity), claims: make(map[int]*ipcache.Entry),
	}
}

// blow makes n steps of three changes each, and lets the feed read them.
func (s *storm) blow(n int) {
	for range n {
		s.step++
		// A step that shares no factor with the number of objects, so that each has its turn.
		i, phase := s.step*7%s.objects, s.step/s.objects+s.step%5
		gone, app := phase%5 == 0, []string{"web", "db"}[phase%2]
		name := fmt.Sprint("n", i)
		var n *nodes.Node
		var id *identities.Identity
		op := ipcache.Op{Old: s.claims[i]}
		if delete(s.claims, i); !gone {
			n = &nodes.Node{Cluster: "c2", ClusterID: 2, Name: name, Source: wire.SourceClusterMesh, BootID: fmt.Sprint(s.step), Labels: map[string]string{"app": app}}
			id = &identities.Identity{ID: uint32(70000 + i), ClusterID: 2, Cluster: "c2", Labels: identities.NewLabels(wire.ParseLabels("k8s:app=" + app + ";"))}
			op.New = ipcache.NewEntry(ipcache.Spec{
				Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32), Cluster: &ipcache.Claimant{Name: "c2", ID: 2},
				Source: wire.SourceClusterMesh, Identity: uint32(70000 + (i+phase)%s.objects), Namespace: app, Name: "p",
			})
			s.claims[i] = op.New
		}
		s.f.nodes.Apply([]store.Change[nodes.Node]{become(s.nodes, name, n)})
		s.f.identities.Apply([]store.Change[identities.Identity]{become(s.ids, name, id)})
		if op.Old != nil || op.New != nil {
			s.f.ips.Apply([]ipcache.Op{op})
		}
	}
	s.f.View.Position()
}

// TestASteadyReaderGetsThere: a reader gets all contents, at any speed, while it reads the state, and while there are
// more changes than it can read, several times as many as are kept. It is never reset, and ends with the same contents
// as the list.
func TestASteadyReaderGetsThere(t *testing.T) {
	t.Parallel()
	for _, m := range []*mirror{
		{},
		{resource: "nodes"},
		{resource: "nodes", filter: "labels=app%3Dweb"},
		{resource: "ips", filter: "namespace=web"},
		{resource: "ips", filter: "labels=app%3Dweb"},
		{resource: "identities", filter: "labels=k8s%3Aapp%3Dweb"},
		{resource: "ips", peer: netip.MustParseAddr("10.0.0.1")},
	} {
		t.Run(m.query()+fmt.Sprint(m.peer), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const objects, ring = 300, 128
				f := newFixtureOf(t, ring)
				f.now, f.heartbeat = time.Now, 100*time.Millisecond
				m.f = f
				s := newStorm(f, objects)
				s.blow(objects)
				m.connect(t)
				for range 5 * objects / 10 { // three changes for one event that is read
					m.readUpTo(10)
					s.blow(10)
				}
				m.mu.Lock()
				if len(m.synced) == 0 {
					t.Error("no state was complete before it became quiet")
				}
				m.mu.Unlock()
				m.readAll()
				if err := m.trouble(); err != nil {
					t.Error(err)
				}
				if err := m.differs(t); err != nil {
					t.Error(err)
				}
				if m.resets > 0 {
					t.Errorf("it was reset %d times", m.resets)
				}
				// Now that it keeps up it no longer needs a turn.
				if turns := f.states.Peers(); turns != 0 {
					t.Errorf("%d peers have turns", turns)
				}
				m.cut()
				f.Close()
			})
		})
	}
}

// TestASlowReaderOverTCPGetsThere is the same over a real connection.
func TestASlowReaderOverTCPGetsThere(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	f, _, _ := serve(t, newFixtureOf(t, 1<<10, func(s *Server) { s.heartbeat = 100 * time.Millisecond }))
	note := map[string]string{"note": strings.Repeat("x", 4<<10)}
	var all []*nodes.Node
	for i := range 3000 { // more than the buffers of a connection take
		all = append(all, &nodes.Node{Cluster: "c3", ClusterID: 3, Name: fmt.Sprint("n", i), Source: wire.SourceClusterMesh, Annotations: note})
	}
	f.nodes.Apply(created(all...))
	s := newStorm(f, 256)
	c, err := net.Dial("tcp", f.Address())
	must(t, err)
	defer c.Close()
	must(t, c.(*net.TCPConn).SetReadBuffer(64<<10))
	fmt.Fprint(c, "GET /v1/watch?resource=nodes HTTP/1.1\r\nHost: localhost\r\n\r\n")
	m := &mirror{f: f, resource: "nodes"}
	m.forget()
	lines := bufio.NewReader(c)
	if resp, err := http.ReadResponse(lines, nil); err != nil || resp.StatusCode != http.StatusOK { //nolint:bodyclose // it ends with the connection
		t.Fatalf("%v %v", resp, err)
	}
	for n := 0; !m.synced["nodes"]; n++ {
		if err := m.event(lines); err != nil {
			t.Fatalf("after %d events: %v", n, err)
		}
		if n%100 == 0 && n < 2000 { // then it becomes quiet, before the server has written the last ones
			s.blow(100)
		}
	}
	for m.signs == 0 || m.differs(t) != nil { // the rest arrives too
		must(t, m.event(lines))
	}
	if m.resets > 0 {
		t.Errorf("it was reset %d times", m.resets)
	}
}

// TestASlowReaderGivesWay: a slow reader has unlimited time, unless another one waits for its turn when its time is
// over.
func TestASlowReaderGivesWay(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]bool{"alone": false, "others wait": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				limits := transport.DefaultLimits()
				limits.States = transport.Limit{All: 1, Peer: 1}
				f := newFixture(t, WithLimits(limits))
				f.now, f.heartbeat = time.Now, time.Minute
				newStorm(f, 200).blow(200)
				m := &mirror{f: f, resource: "nodes", peer: netip.MustParseAddr("10.0.0.1")}
				m.connect(t)
				m.readUpTo(1)
				waiting := func(refused bool) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					leave, err := f.states.OfAll(ctx)
					if (err != nil) != refused {
						t.Errorf("a turn for another: %v", err)
					}
					if err == nil {
						leave()
					}
				}
				if others {
					waiting(true) // its time is not over
				}
				time.Sleep(view.TurnTime + time.Second)
				m.readUpTo(1000)
				ended := m.trouble()
				if !others {
					if ended != nil || m.differs(t) != nil {
						t.Errorf("it ended with %v and %v", ended, m.differs(t))
					}
				} else if ended == nil || !strings.Contains(ended.Error(), "time is up") {
					t.Errorf("it ended with %v", ended)
				}
				waiting(false)
				m.cut()
				f.Close()
			})
		})
	}
}
