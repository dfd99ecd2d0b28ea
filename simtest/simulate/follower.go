package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/api/client"
)

// follower is a client of the HTTP API of an agent, which follows the changes of a resource over connections that break at
// times, and continues after each. It judges that its objects are those of the list once nothing changes.
type follower struct {
	c        *cluster
	resource string
	key      func(*json.RawMessage) string
	client   *client.Client

	mu      sync.Mutex // guards everything below
	rng     *rand.Rand
	objects map[string]string
	synced  bool
}

// followers returns the clients of the agent of a cluster.
func followers(c *cluster) (all []*follower, err error) {
	for i, f := range []*follower{
		{resource: "services", key: keyOf(func(s *api.Service) string { return s.Namespace + "/" + s.Name })},
		{resource: "ips", key: keyOf(func(ip *api.IP) string { return ip.Prefix })},
	} {
		f.c, f.rng = c, rand.New(rand.NewPCG(uint64(c.Own.ID), uint64(i)))
		f.reset()
		if f.client, err = client.New(client.Options{Dial: f.dial}); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func keyOf[T any](key func(*T) string) func(*json.RawMessage) string {
	return func(text *json.RawMessage) string {
		object := new(T)
		if err := json.Unmarshal(*text, object); err != nil {
			return err.Error()
		}
		return key(object)
	}
}

func (f *follower) reset() { f.objects, f.synced = make(map[string]string), false }

// dial connects with the agent. The connection breaks after some bytes.
func (f *follower) dial(ctx context.Context, network, address string) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	conn, err := f.c.DialHTTP(ctx, network, address)
	return breakingSome(conn, f.rng, f.c.w.scale), err
}

// breaking is a connection that breaks after some bytes.
type breaking struct {
	net.Conn
	left int
}

// breakingSome returns a connection that breaks, so late that the first objects of a mesh of this scale may pass.
func breakingSome(conn net.Conn, rng *rand.Rand, scale int) net.Conn {
	return &breaking{conn, 1 + rng.IntN(200_000*scale)}
}

func (b *breaking) Read(to []byte) (int, error) {
	if b.left <= 0 {
		_ = b.Conn.Close() // a pipe does not fail
	}
	n, err := b.Conn.Read(to[:min(len(to), max(1, b.left))])
	b.left -= n
	return n, err
}

// run follows until ctx ends. The error is an answer that must not be.
func (f *follower) run(ctx context.Context) error {
	defer f.client.Close()
	for ctx.Err() == nil {
		for e, err := range client.Watch[json.RawMessage](ctx, f.client, f.resource, client.Query{}, func(error) { f.c.w.seen.note(resumedHTTP) }) {
			if err != nil && ctx.Err() == nil && !errors.Is(err, client.ErrUnreachable) {
				return fmt.Errorf("the changes of the %s of %s over HTTP ended with %w", f.resource, f.c.Own.Name, err)
			}
			if err != nil {
				break
			}
			if wrong := f.event(e); wrong != "" {
				return fmt.Errorf("the changes of the %s of %s over HTTP: %s", f.resource, f.c.Own.Name, wrong)
			}
		}
		_ = waiting.Sleep(ctx, late/10) // the agent has not started yet; an error: it has ended
		f.mu.Lock()
		f.reset()
		f.mu.Unlock()
	}
	return nil
}

// event takes an event, and returns why it must not be; empty: it may.
func (f *follower) event(e client.Event[json.RawMessage]) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e.Kind {
	case api.WatchReset:
		f.reset()
	case api.WatchSynced:
		f.synced = true
	case api.WatchUpsert:
		f.objects[f.key(e.Object)] = string(*e.Object)
	case api.WatchDelete:
		key := f.key(e.Object)
		if _, is := f.objects[key]; !is {
			return key + " is deleted, and was not there"
		}
		delete(f.objects, key)
	}
	return ""
}

// difference returns how the objects differ from those of the list; empty when they do not.
func (f *follower) difference() string {
	list := make(map[string]string)
	err := f.all(func(object json.RawMessage) { list[f.key(&object)] = string(object) })
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		return fmt.Sprintf("the list of the %s of %s over HTTP: %v", f.resource, f.c.Own.Name, err)
	case !f.synced:
		return fmt.Sprintf("the changes of the %s of %s over HTTP are not synced", f.resource, f.c.Own.Name)
	}
	have := f.objects
	for key, object := range list {
		if have[key] != object {
			return fmt.Sprintf("the changes of the %s of %s over HTTP say %q, and the list says %q", f.resource, f.c.Own.Name, have[key], object)
		}
	}
	if len(list) != len(have) {
		return fmt.Sprintf("the changes of the %s of %s over HTTP say that there are %d, and the list has %d", f.resource, f.c.Own.Name, len(have), len(list))
	}
	return ""
}

// all reads the whole list, over a connection that does not break.
func (f *follower) all(each func(json.RawMessage)) error {
	c, err := client.New(client.Options{Dial: f.c.DialHTTP})
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(f.c.w.ctx, late)
	defer cancel()
	list, err := client.List[json.RawMessage](ctx, c, f.resource, client.Query{})
	if err != nil {
		return err
	}
	defer list.Close()
	for object, err := range list.All(ctx) {
		if err != nil {
			return err
		}
		each(object)
	}
	return nil
}
