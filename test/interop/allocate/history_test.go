package allocate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/test/interop"
)

// history has all changes below the base, checked revision by revision: any client
// could have read the state of each revision. A violation of the guarantees
// is reported with the node that made it (spec allocator.md).
type history struct {
	ids  map[string]string            // the mappings: ID to key
	keys map[string][]string          // key to all of its IDs
	refs map[string]map[string]string // key to its nodes, and to the ID of each

	queues map[string][]lockKey      // the locks of a path, the holder first
	owners map[int64]map[string]bool // the nodes that have locked their own key with a lease
	wrong  []wrong

	made, deleted int
	revisions     int64
}

// lockKey is a lock, or a wait for one.
type lockKey struct {
	key   string
	lease int64
}

// wrong is a violation. Its author is known by a lease at first, and by name when the whole history has been read.
type wrong struct {
	revision  int64
	what, key string // the guarantee, and the key
	text      string
	lease     int64 // of the lock that was held for it; 0 for none
	node      string
	side      string // the side that caused it; empty when unknown
}

// The guarantees, named by their violations.
const (
	twoIDs      = "a key has two IDs"
	twoKeys     = "an ID has two keys"
	deletedUsed = "a mapping is deleted while it is used"
	noMapping   = "a reference is taken of what has no mapping"
)

// ownKey is a key that only this node allocates: its lock identifies the node.
func ownKey(node string) string { return "k8s:own=" + node + ";" }

// replay reads the history of an etcd from its first revision up to now.
func replay(t *testing.T, client *clientv3.Client) *history {
	t.Helper()
	const end = base + "/~" // sorts last
	if _, err := client.Put(t.Context(), end, ""); err != nil {
		t.Fatal(err)
	}
	h := &history{
		ids: map[string]string{}, keys: map[string][]string{}, refs: map[string]map[string]string{},
		queues: map[string][]lockKey{}, owners: map[int64]map[string]bool{},
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(t.Context()))
	defer cancel()
	for resp := range client.Watch(ctx, base+"/", clientv3.WithPrefix(), clientv3.WithRev(1), clientv3.WithPrevKV()) {
		interop.Must(t, resp.Err())
		for _, e := range resp.Events {
			if string(e.Kv.Key) == end {
				h.name()
				return h
			}
			h.take(e)
		}
	}
	t.Fatal("the history does not end")
	return nil
}

func (h *history) take(e *clientv3.Event) {
	h.revisions = e.Kv.ModRevision
	part, rest, _ := strings.Cut(strings.TrimPrefix(string(e.Kv.Key), base+"/"), "/")
	gone := e.Type == mvccpb.Event_DELETE
	switch part {
	case "id":
		if gone {
			h.unmapped(e, rest)
		} else {
			h.mapped(e, rest, string(e.Kv.Value))
		}
	case "value":
		i := strings.LastIndexByte(rest, '/')
		h.reference(e, rest[:i], rest[i+1:], gone)
	case "locks":
		h.lock(e, rest[:strings.LastIndexByte(rest, '/')], gone)
	}
}

// lock keeps the queue of a path, which is in the order of creation.
func (h *history) lock(e *clientv3.Event, path string, gone bool) {
	key := string(e.Kv.Key)
	if gone {
		h.queues[path] = slices.DeleteFunc(h.queues[path], func(l lockKey) bool { return l.key == key })
	} else {
		h.queues[path] = append(h.queues[path], lockKey{key, e.Kv.Lease})
		if node, own := strings.CutPrefix(path, "k8s:own="); own {
			if h.owners[e.Kv.Lease] == nil {
				h.owners[e.Kv.Lease] = map[string]bool{}
			}
			h.owners[e.Kv.Lease][strings.TrimSuffix(node, ";")] = true
		}
	}
}

// holder is the lease with which a path is locked, or 0.
func (h *history) holder(path string) int64 {
	if q := h.queues[path]; len(q) > 0 {
		return q[0].lease
	}
	return 0
}

func (h *history) fail(e *clientv3.Event, what, key, node string, lease int64, format string, args ...any) {
	h.wrong = append(h.wrong, wrong{
		revision: e.Kv.ModRevision, what: what, key: key, text: fmt.Sprintf(format, args...), lease: lease, node: node,
	})
}

// mapped checks that the key has one ID, and the ID one key.
func (h *history) mapped(e *clientv3.Event, id, key string) {
	switch old, known := h.ids[id]; {
	case known && old != key:
		h.fail(e, twoKeys, key, "", h.holder(key), "%s was %s and became %s", id, old, key)
		h.keys[old] = slices.DeleteFunc(h.keys[old], func(i string) bool { return i == id })
	case known:
		return
	default:
		h.made++
	}
	h.ids[id] = key
	h.keys[key] = append(h.keys[key], id)
	if ids := h.keys[key]; len(ids) > 1 {
		h.fail(e, twoIDs, key, "", h.holder(key), "%s has the IDs %v; references: %v", key, ids, h.refs[key])
	}
}

// unmapped: a used mapping must not be deleted. Both sides lock the ID to delete it.
func (h *history) unmapped(e *clientv3.Event, id string) {
	h.deleted++
	key := h.ids[id]
	delete(h.ids, id)
	h.keys[key] = slices.DeleteFunc(h.keys[key], func(i string) bool { return i == id })
	for node, used := range h.refs[key] {
		if used == id {
			h.fail(e, deletedUsed, key, "", h.holder("id/"+id), "%s (%s) was deleted while %s used it", id, key, node)
		}
	}
}

// reference checks that a reference has the ID of the key.
func (h *history) reference(e *clientv3.Event, key, node string, gone bool) {
	if gone {
		delete(h.refs[key], node)
		return
	}
	if h.refs[key] == nil {
		h.refs[key] = map[string]string{}
	}
	id := string(e.Kv.Value)
	h.refs[key][node] = id
	switch mapped, known := h.ids[id]; {
	case !known:
		h.fail(e, noMapping, key, node, 0, "%s uses %s for %s, which has no mapping", node, id, key)
	case mapped != key:
		h.fail(e, twoKeys, key, node, 0, "%s uses %s for %s, but that is %s", node, id, key, mapped)
	}
	for other, theirs := range h.refs[key] {
		if theirs != id {
			h.fail(e, twoIDs, key, node, 0, "%s uses %s for %s, and %s uses %s", node, id, key, other, theirs)
		}
	}
}

// name assigns each violation to a side: that of the holder of the lock under which it was made. Only Cilium writes
// mappings without a lock, to restore them. Later violations for a key after one of Cilium's are also assigned to
// Cilium.
func (h *history) name() {
	spoilt := map[string]bool{}
	for i := range h.wrong {
		w := &h.wrong[i]
		if owners := h.owners[w.lease]; w.node == "" && len(owners) == 1 {
			w.node = slices.Collect(maps.Keys(owners))[0]
		}
		w.side, _, _ = strings.Cut(w.node, "-")
		if w.node == "" && w.lease == 0 || spoilt[w.key] {
			w.side = "theirs"
		}
		spoilt[w.key] = w.side == "theirs"
	}
}

// by counts the violations of a side by guarantee.
func (h *history) by(side string) map[string]int {
	counts := map[string]int{}
	for _, w := range h.wrong {
		if w.side == side {
			counts[w.what]++
		}
	}
	return counts
}

// judge fails the test for violations by our side, or by an unknown one. Cilium's violations
// are only reported.
func (h *history) judge(t *testing.T) {
	t.Helper()
	for _, w := range h.wrong {
		text := fmt.Sprintf("revision %d: %s: %s, by %q", w.revision, w.what, w.text, w.node)
		if w.side == "theirs" {
			t.Log(text)
		} else {
			t.Error(text)
		}
	}
}

// spoilt reports whether Cilium has caused a violation for a key.
func (h *history) spoilt(key string) bool {
	return slices.ContainsFunc(h.wrong, func(w wrong) bool { return w.key == key && w.side == "theirs" })
}

// figures are the figures of a trial.
func (h *history) figures() []interop.Figure {
	theirs, ours := h.by("theirs"), 0
	for _, n := range h.by("ours") {
		ours += n
	}
	return []interop.Figure{
		figure("mappings made", h.made), figure("mappings deleted", h.deleted), figure("revisions looked at", int(h.revisions)),
		figure("violations by mesh-agent", ours), figure("violations by Cilium", theirs[twoIDs]+theirs[twoKeys]+theirs[deletedUsed]),
		figure("references that Cilium took of a mapping that was gone", theirs[noMapping]),
	}
}

func figure(name string, n int) interop.Figure {
	return interop.Figure{Name: name, Value: fmt.Sprint(n)}
}
