package syncstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// entryOf returns an entry of about 250 bytes, like those that mirrors copy.
func entryOf(i int) (name string, value []byte) {
	return fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255), fmt.Appendf(nil, `{"IP":"10.%d.%d.%d","Mask":null,"HostIP":"192.168.0.1",`+
		`"ID":%d,"Key":0,"Metadata":"cilium-global:cluster1:node-%d","K8sNamespace":"namespace-%d","K8sPodName":"pod-%08x"}`,
		i>>16, i>>8&255, i&255, 65536+i, i%5000, i%50, i)
}

// requestsOf returns how many requests a takeover may need: each has MaxWrites writes, or half a MiB of them.
func requestsOf(keys int) int64 {
	_, value := entryOf(0)
	most := min(kvstore.MaxWrites, transactionBytes/(len(value)+80))
	return int64((keys + most - 1) / most)
}

// TestATakeoverTakesFewRequests: a new process writes the existing keys again, each once, for its lease.
func TestATakeoverTakesFewRequests(t *testing.T) {
	t.Parallel()
	const n = 20_000
	d := newDesk(t, nil)
	d.mem.SetPageSize(5000)
	s := New(Params{Prefix: "cilium/cache/ip/v1/cluster1/", Outbox: d.outbox})
	var events []kvstore.Event
	for i := range n {
		name, value := entryOf(i)
		events = append(events, kvstore.Event{KeyValue: kvstore.KeyValue{Key: []byte(s.p.Prefix + name), Value: value, Lease: 99}})
		s.Put(name, value)
	}
	d.mem.Write(events...)
	s.Complete()
	var updates atomic.Int64
	d.mem.SetFault(func(_ context.Context, op, _ string) error {
		if op == "update" {
			updates.Add(1)
		}
		return nil
	})
	d.run(s.Run)
	d.clean(s)
	t.Logf("%d keys, %d requests", n, updates.Load())
	if got, most := updates.Load(), requestsOf(n)+8; got > most { // the first requests are smaller
		t.Errorf("%d keys took %d requests, not %d at most", n, got, most)
	}
	if s := requestsOf(464_000) / 100; s >= 10 {
		t.Errorf("a mirror of 464,000 keys takes over within %d s at 100 requests a second", s)
	}
	if spent, least := d.outbox.Spent(), int64(n); spent < least {
		t.Errorf("not every key was written: %d bytes", spent)
	}
}

// TestARefusedPrefixTakesFewRequests: a writer whose writes below a prefix are refused soon uses small transactions for
// it, and other prefixes are written meanwhile.
func TestARefusedPrefixTakesFewRequests(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	var refusals, before atomic.Int64 // before: the refusals until the other prefix is written
	d.mem.SetFault(func(_ context.Context, op, key string) error {
		switch {
		case op != "update":
			return nil
		case !strings.HasPrefix(key, "bad/"):
			before.CompareAndSwap(0, refusals.Load())
			return nil
		}
		refusals.Add(1)
		return errTooLarge
	})
	bad := New(Params{Prefix: "bad/", Outbox: d.outbox})
	for i := range 20 * kvstore.MaxWrites {
		bad.Put(fmt.Sprint(i), []byte("1"))
	}
	bad.Complete()
	d.run(bad.Run)
	eventually(t, func() error {
		if refusals.Load() == 0 {
			return errors.New("nothing is refused")
		}
		return nil
	})
	good := d.sync(Params{Prefix: "good/"})
	good.Put("a", []byte("1"))
	good.Complete()
	d.clean(good)
	if got, most := before.Load(), int64(2*maxInFlight*2*minWrites); got > most {
		t.Errorf("another prefix waited for %d requests that were refused, not %d at most", got, most)
	}
}
