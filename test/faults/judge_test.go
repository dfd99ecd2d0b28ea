package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// judge compares claims with the recorded histories and returns the false ones, up to a few.
func judge(claims []asOfClaim) (lies []error) {
	spans := map[*witness]func(asOf, taken time.Time) span{}
	for _, c := range claims {
		if spans[c.of] == nil {
			spans[c.of] = c.of.spans()
		}
		if err := c.judge(spans[c.of](c.AsOf, c.taken)); err != nil {
			lies = append(lies, fmt.Errorf("%w; faults: %s", err, c.faults()))
		}
		if len(lies) == 10 {
			return lies
		}
	}
	return lies
}

// judge returns an error if the claim is false. Each key must show a value that it had within the span. While the etcd
// cannot be asked, no resource is known as of a time in that period. The sampler checks that none stays synced for
// longer than the bound after its time; so a disconnected cluster does not stay synced either.
func (c asOfClaim) judge(within span) error {
	for i, number := range c.shown {
		key := c.of.keys[c.resource][i]
		versions := c.of.between(key, within)
		if !slices.ContainsFunc(versions, func(v version) bool { return v.number == number }) {
			return fmt.Errorf("%s of %s (%s) are said to be known as of %s, and %s after that %s shows %d; from position %d to %d it had %v",
				c.resource, c.of.name, c.State, c.AsOf.Format(time.StampMicro), c.taken.Sub(c.AsOf), key, number, within.low, within.high, versions)
		}
	}
	for _, s := range c.of.struck {
		if s.fault.away && s.lasts(c.asked) && s.lasts(c.taken) && c.AsOf.After(s.from) {
			return fmt.Errorf("%s of %s (%s) are said to be known as of %s, which is %s after %s had begun, and it lasts",
				c.resource, c.of.name, c.State, c.AsOf.Format(time.StampMicro), c.AsOf.Sub(s.from), s.fault.name)
		}
	}
	return nil
}

// faults names the present faults, and the last one before.
func (c asOfClaim) faults() string {
	last := "none so far"
	for _, s := range c.of.struck {
		if s.lasts(c.taken) {
			return s.fault.name
		}
		if !s.from.After(c.taken) {
			last = fmt.Sprintf("none, %s ended %s before", s.fault.name, c.taken.Sub(s.to))
		}
	}
	return last
}

// The test of the judge: a history of four writes, a second apart, each of which took half a second: 1 and 2 change a
// key, 3 deletes it, and 4 is the loss by a change to another etcd.
func TestJudge(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	h := &witness{cluster: &cluster{name: "c1"}, history: newHistory(), keys: map[wire.Resource][]string{wire.Nodes: {"k"}}}
	put := func(revision int64, number int, value string) {
		events := []*clientv3.Event{{Kv: &mvccpb.KeyValue{Key: []byte(numberKey), Value: []byte(value), ModRevision: revision}}}
		e := &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte("k"), ModRevision: revision}}
		if number == 0 {
			e.Type = clientv3.EventTypeDelete
		}
		h.record(h.base, append(events, e))
	}
	for i, number := range []int{1, 2, 0} {
		h.begin()
		put(int64(i+2), number, fmt.Sprint(i+1))
		h.acknowledge(int64(i + 2))
	}
	h.lost(h.begin())
	h.begin()
	put(2, 5, "5") // without an answer
	for i := range h.began {
		h.began[i] = at(float64(i))
	}
	for i := range h.history.acks {
		h.history.acks[i].at = at(float64(i) + 1.5)
	}
	if err := h.complete(); err != nil {
		t.Fatal(err)
	}
	h.struck = []struck{{fault: fault{name: "freeze", away: true}, from: at(5.2), to: at(7)}}
	for _, c := range []struct {
		shows       int
		asOf, taken float64
		lie         string // a part of the error; empty for a true claim
	}{
		{0, 0.5, 0.6, ""},
		{0, 1.6, 1.7, "shows 0; from position 2 to 2 it had [{2 1}]"},
		{1, 1.2, 1.3, ""},        // the write is in progress
		{0, 1.2, 1.3, ""},        // the same
		{1, 1.6, 9, ""},          // at least this is known
		{2, 1.6, 2.1, ""},        // newer than required
		{2, 1.6, 1.9, "shows 2"}, // not written yet
		{1, 2.6, 2.7, "shows 1; from position 3 to 3"},
		{2, 3.6, 3.7, "shows 2"},
		{0, 3.6, 3.7, ""},
		{2, 4.6, 4.7, "shows 2"},
		{5, 4.6, 5.1, ""},
		{0, 5.1, 5.3, ""}, // the write had no answer
		{5, 5.3, 5.4, "after freeze had begun"},
		{5, 5.3, 7.1, ""}, // the answer came late
	} {
		claim := asOfClaim{of: h, resource: wire.Nodes, asked: at(c.taken), taken: at(c.taken), shown: []int{c.shows}}
		claim.Freshness = remotecluster.Freshness{State: remotecluster.FreshnessSynced, AsOf: at(c.asOf)}
		lies := judge([]asOfClaim{claim})
		if said := fmt.Sprint(lies); (c.lie == "") != (len(lies) == 0) || !strings.Contains(said, c.lie) {
			t.Errorf("%d as of %g, taken at %g: %s, want %q", c.shows, c.asOf, c.taken, said, c.lie)
		}
	}
	put(9, 1, "1")
	if err := h.complete(); err == nil {
		t.Error("a record with a gap counts as complete")
	}
}
