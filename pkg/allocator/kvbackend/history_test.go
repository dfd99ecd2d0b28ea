package kvbackend_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// history is the complete history below the base, checked change by change. The state at each revision is one that a
// client could have read.
type history struct {
	ids   map[string]string            // the mappings: ID to key
	keys  map[string]map[string]bool   // key to its IDs
	refs  map[string]map[string]string // path of a key to its nodes, each with its ID
	wrong []string

	made, deleted, references, locks int
}

func newHistory() *history {
	return &history{ids: map[string]string{}, keys: map[string]map[string]bool{}, refs: map[string]map[string]string{}}
}

// check replays the history of an etcd up to now, and fails the test on each state that the guarantees of the allocator
// (spec allocator.md) exclude.
func check(t *testing.T, client *clientv3.Client) *history {
	t.Helper()
	const end = base + "/end" // keys whose leases end may still be deleted after it
	if _, err := client.Put(t.Context(), end, ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(t.Context()))
	defer cancel()
	h := newHistory()
	for resp := range client.Watch(ctx, base+"/", clientv3.WithPrefix(), clientv3.WithRev(1)) {
		must(t, resp.Err())
		h.revisions(resp.Events)
		if slices.ContainsFunc(resp.Events, func(e *clientv3.Event) bool { return string(e.Kv.Key) == end }) {
			break
		}
	}
	for i, w := range h.wrong {
		if i == 10 {
			t.Errorf("and %d more", len(h.wrong)-i)
			break
		}
		t.Error(w)
	}
	return h
}

// revisions processes events, all events of one revision together.
func (h *history) revisions(events []*clientv3.Event) {
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].Kv.ModRevision == events[0].Kv.ModRevision {
			n++
		}
		for _, e := range events[:n] {
			h.take(e)
		}
		events = events[n:]
	}
}

func (h *history) fail(e *clientv3.Event, format string, args ...any) {
	h.wrong = append(h.wrong, fmt.Sprintf("revision %d: ", e.Kv.ModRevision)+fmt.Sprintf(format, args...))
}

func (h *history) take(e *clientv3.Event) {
	name, _ := bytes.CutPrefix(e.Kv.Key, []byte(base+"/"))
	kind, rest, _ := strings.Cut(string(name), "/")
	gone := e.Type == mvccpb.Event_DELETE
	switch kind {
	case "id":
		h.mapping(e, rest, string(e.Kv.Value), gone)
	case "value":
		i := strings.LastIndexByte(rest, '/')
		h.reference(e, rest[:i], rest[i+1:], string(e.Kv.Value), gone)
	case "locks":
		if h.locks++; gone {
			h.locks -= 2
		}
	}
}

// mapping checks a change of a mapping: a key has one ID, an ID has one key, and a mapping in use is not deleted.
func (h *history) mapping(e *clientv3.Event, id, key string, gone bool) {
	old, known := h.ids[id]
	if gone {
		h.deleted++
		delete(h.ids, id)
		delete(h.keys[old], id)
		for node, uses := range h.refs[old] {
			if uses == id {
				h.fail(e, "%s (%s) was deleted while %s held a reference", id, old, node)
			}
		}
		return
	}
	if known && old != key {
		h.fail(e, "%s was %s and became %s", id, old, key)
	}
	if !known {
		h.made++
	}
	h.ids[id] = key
	if h.keys[key] == nil {
		h.keys[key] = map[string]bool{}
	}
	if h.keys[key][id] = true; len(h.keys[key]) > 1 {
		h.fail(e, "%s has the IDs %v", key, h.keys[key])
	}
}

// reference checks a change of a reference: it has the ID of its key.
func (h *history) reference(e *clientv3.Event, key, node, id string, gone bool) {
	if gone {
		h.references--
		delete(h.refs[key], node)
		return
	}
	if h.refs[key] == nil {
		h.refs[key] = map[string]string{}
	}
	if _, held := h.refs[key][node]; !held {
		h.references++
	}
	h.refs[key][node] = id
	if h.ids[id] != key {
		h.fail(e, "%s uses %s for %s, but that is %q", node, id, key, h.ids[id])
	}
}
