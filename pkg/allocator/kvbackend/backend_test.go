package kvbackend_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/kvbackend"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

const (
	paths = wire.IdentityAllocation
	base  = string(paths)
	keyA  = text("k8s:a=1;")
	keyB  = text("k8s:b=1;")
)

// text is a key that is just a text.
type text string

func (k text) GetKey() string              { return string(k) }
func (k text) String() string              { return string(k) }
func (k text) GetAsMap() map[string]string { return wire.ParseLabels(string(k)).Map() }

func (text) PutKey(s string) (allocator.Key, error) {
	if strings.HasPrefix(s, "bad") {
		return nil, errors.New("it is bad")
	}
	return text(s), nil
}

func (text) PutKeyFromMap(m map[string]string) (allocator.Key, error) {
	return text(wire.LabelsFromMap(m).Encode()), nil
}

func TestAMappingIsCreatedOnce(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		done, err := b.AllocateID(s.Context(), 131072, keyA, nil)
		s.good(done, err, true)
		for _, k := range []text{keyA, keyB} {
			done, err = b.AllocateID(s.Context(), 131072, k, nil)
			s.good(done, err, false)
		}
		s.want("id/131072", "k8s:a=1;")
		for id, want := range map[uint64]allocator.Key{131072: keyA, 131073: nil} {
			if k, err := b.GetByID(s.Context(), id); err != nil || k != want {
				s.Errorf("%d is %v, %v; want %v", id, k, err, want)
			}
		}
	})
}

func TestAReferenceNeedsItsMapping(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		done, err := b.AcquireReference(s.Context(), 131072, keyA, nil)
		s.good(done, err, false)
		s.want()
		s.put(base+"/id/131072", "k8s:b=1;")
		done, err = b.AcquireReference(s.Context(), 131072, keyA, nil)
		s.good(done, err, false) // the number is another key's
		s.put(base+"/id/131072", "k8s:a=1;")
		for range 2 {
			done, err = b.AcquireReference(s.Context(), 131072, keyA, nil)
			s.good(done, err, true)
		}
		s.want("id/131072", "k8s:a=1;", "value/k8s:a=1;/10.0.0.1", "131072")
		kv, _, err := s.client.Get(s.Context(), base+"/value/k8s:a=1;/10.0.0.1")
		if err != nil || kv.Lease == 0 {
			s.Errorf("the reference has the lease %x, %v", kv.Lease, err)
		}
	})
}

func TestAReleaseDeletesThisNodesReferenceAlone(t *testing.T) {
	onBoth(t, func(s *site) {
		one, two := s.backend("10.0.0.1"), s.backend("10.0.0.2")
		s.put(base+"/id/7", "k8s:a=1;", base+"/id/8", "k8s:b=1;")
		for _, b := range []*kvbackend.Backend{one, two} {
			done, err := b.AcquireReference(s.Context(), 7, keyA, nil)
			s.good(done, err, true)
		}
		for range 2 {
			if err := one.Release(s.Context(), 7, keyA); err != nil {
				s.Error(err)
			}
		}
		s.want("id/7", "k8s:a=1;", "id/8", "k8s:b=1;", "value/k8s:a=1;/10.0.0.2", "7")
		if err := two.Release(s.Context(), 9, keyA); err != nil { // a number that this node does not hold
			s.Error(err)
		}
		s.want("id/7", "k8s:a=1;", "id/8", "k8s:b=1;", "value/k8s:a=1;/10.0.0.2", "7")
	})
}

func TestAKeyIsFoundByItsReferences(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		s.put(
			base+"/id/7", "k8s:a=1;", base+"/value/k8s:a=1;/10.0.0.2", "7",
			// A longer key. The path of its references begins with the path of the shorter one.
			base+"/id/8", "k8s:a=1;/k8s:c=1;", base+"/value/k8s:a=1;/k8s:c=1;/10.0.0.2", "8",
			// Keys that share a path.
			base+"/id/9", "k8s:u=http://x;", base+"/value/k8s:u=http:/x;/10.0.0.2", "9",
			base+"/id/10", "k8s:u=http:/x;", base+"/value/k8s:u=http:/x;/10.0.0.3", "10",
			// Inconsistent entries.
			base+"/value/k8s:d=1;/10.0.0.2", "11", base+"/value/k8s:e=1;/10.0.0.2", "x",
			base+"/id/12", "k8s:f=2;", base+"/value/k8s:f=1;/10.0.0.2", "12",
		)
		for key, want := range map[text]uint64{
			"k8s:a=1;": 7, "k8s:a=1;/k8s:c=1;": 8, "k8s:u=http://x;": 9, "k8s:u=http:/x;": 10,
			"k8s:d=1;": 11, "k8s:e=1;": 0, "k8s:f=1;": 0, "k8s:f=2;": 0, "k8s:a=": 0,
		} {
			if id, err := b.Get(s.Context(), key, nil); err != nil || id != want {
				s.Errorf("%s has %d, %v; want %d", key, id, err, want)
			}
		}
	})
}

func TestARefreshPutsBackWhatIsMissing(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		whole := []string{"id/7", "k8s:a=1;", "value/k8s:a=1;/10.0.0.1", "7"}
		refresh := func(reliablyMissing bool) {
			s.Helper()
			if err := b.UpdateKey(s.Context(), 7, keyA, reliablyMissing, nil); err != nil {
				s.Error(err)
			}
			s.want(whole...)
		}
		for _, reliablyMissing := range []bool{true, false} {
			refresh(reliablyMissing)
			s.delete(base + "/id/7")
			refresh(reliablyMissing)
			s.delete(base + "/value/k8s:a=1;/10.0.0.1")
			refresh(reliablyMissing)
		}
		s.put(base+"/value/k8s:a=1;/10.0.0.1", "8") // the wrong ID, and without a lease
		refresh(false)
		if kv, _, err := s.client.Get(s.Context(), base+"/value/k8s:a=1;/10.0.0.1"); err != nil || kv.Lease == 0 {
			s.Errorf("%v, %v has no lease", kv, err)
		}
		rev := s.client.Status().Head
		at, err := s.client.Head(s.Context())
		must(s, err)
		refresh(false)
		if now, err := s.client.Head(s.Context()); err != nil || now != at {
			s.Errorf("a refresh of what is as it should be has moved the kvstore from %v to %v (%v)", rev, now, err)
		}

		s.put(base+"/id/7", "k8s:b=1;")
		s.delete(base + "/value/k8s:a=1;/10.0.0.1")
		for _, reliablyMissing := range []bool{true, false} {
			if err := b.UpdateKey(s.Context(), 7, keyA, reliablyMissing, nil); !errors.Is(err, allocator.ErrTaken) {
				s.Errorf("a number that is another key's was refreshed: %v", err)
			}
		}
		s.want("id/7", "k8s:b=1;")
	})
}

func TestAnAlteredMappingIsRestored(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		s.put(base+"/id/7", "k8s:b=1;")
		done, err := b.Restore(s.Context(), 7, keyA, text("k8s:c=1;"), nil)
		s.good(done, err, false)
		s.want("id/7", "k8s:b=1;")
		done, err = b.Restore(s.Context(), 7, keyA, keyB, nil)
		s.good(done, err, true)
		s.want("id/7", "k8s:a=1;")
	})
}

func TestWithoutTheLockNothingIsDone(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		lock, err := b.Lock(s.Context(), keyA)
		must(s, err)
		done, err := b.AllocateID(s.Context(), 7, keyA, lock)
		s.good(done, err, true)
		done, err = b.AcquireReference(s.Context(), 7, keyA, lock)
		s.good(done, err, true)
		if id, err := b.Get(s.Context(), keyA, lock); id != 7 || err != nil {
			s.Errorf("%d, %v", id, err)
		}
		lock.Unlock()
		whole := []string{"id/7", "k8s:a=1;", "value/k8s:a=1;/10.0.0.1", "7"}
		s.want(whole...)
		for name, call := range map[string]func() error{
			"allocate": func() error { _, err := b.AllocateID(s.Context(), 8, keyB, lock); return err },
			"acquire":  func() error { _, err := b.AcquireReference(s.Context(), 7, keyA, lock); return err },
			"restore":  func() error { _, err := b.Restore(s.Context(), 7, keyB, keyA, lock); return err },
			"update":   func() error { return b.UpdateKey(s.Context(), 7, keyA, false, lock) },
			"get":      func() error { _, err := b.Get(s.Context(), keyA, lock); return err },
		} {
			if err := call(); !errors.Is(err, kvstore.ErrLockLeaseExpired) {
				s.Errorf("%s: %v, want %v", name, err, kvstore.ErrLockLeaseExpired)
			}
		}
		s.want(whole...)
	})
}

func TestEverythingIsDeleted(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		s.put(base+"/id/7", "k8s:a=1;", base+"/value/k8s:a=1;/n", "7", base+"/locks/x/1", "", base+"x", "stays")
		if err := b.DeleteAllKeys(s.Context()); err != nil {
			s.Error(err)
		}
		s.want()
		if kv, _, err := s.client.Get(s.Context(), base+"x"); kv == nil || err != nil {
			s.Errorf("a neighbour is gone: %v", err)
		}
	})
}

// recorder records the calls, and sends them to a channel at the end of each list.
type recorder struct {
	calls chan string
}

func (r *recorder) OnUpsert(id uint64, key allocator.Key) { r.calls <- fmt.Sprintf("%d=%s", id, key) }

func (r *recorder) OnDelete(id uint64, key allocator.Key) { r.calls <- fmt.Sprintf("-%d=%s", id, key) }
func (r *recorder) OnListDone()                           { r.calls <- "listed" }
func (r *recorder) OnReferencesLost()                     { r.calls <- "lost" }

func (r *recorder) next(s *site, n int) []string {
	s.Helper()
	var got []string
	for range n {
		select {
		case x := <-r.calls:
			got = append(got, x)
		case <-s.Context().Done():
			s.Fatalf("only %q", got)
		}
	}
	return got
}

func TestMappingsAreFollowedAndBadOnesSkipped(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		s.put(base+"/id/7", "k8s:a=1;", base+"/id/8", "bad", base+"/id/x", "k8s:x=1;", base+"/id/9", "", base+"/id/010", "k8s:y=1;", base+"/id/0", "k8s:z=1;")
		ctx, cancel := context.WithCancel(s.Context())
		r := &recorder{make(chan string, 100)}
		ended := make(chan error, 1)
		go func() { ended <- b.ListAndWatch(ctx, r) }()
		if diff := cmp.Diff([]string{"7=k8s:a=1;", "listed"}, r.next(s, 2)); diff != "" {
			s.Error(diff)
		}
		s.put(base+"/id/8", "k8s:b=1;", base+"/id/7", "k8s:c=1;", base+"/id/7", "bad")
		s.delete(base + "/id/7")
		if diff := cmp.Diff([]string{"8=k8s:b=1;", "7=k8s:c=1;", "-7=k8s:c=1;"}, r.next(s, 3)); diff != "" {
			s.Error(diff)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			s.Errorf("it ended with %v", err)
		}
	})
}

func TestWhatIsMissingForABackendIsSaid(t *testing.T) {
	t.Parallel()
	client := memory.New()
	good := kvbackend.Config{Paths: paths, Node: "10.0.0.1", Keys: text("")}
	for want, c := range map[string]kvbackend.Config{
		"is no base":          {Node: good.Node, Keys: good.Keys},
		"ends in a slash":     {Paths: "a/", Node: good.Node, Keys: good.Keys},
		"cannot end a path":   {Paths: paths, Keys: good.Keys},
		`"10.0.0.0/8" cannot`: {Paths: paths, Node: "10.0.0.0/8", Keys: good.Keys},
		"type of the keys":    {Paths: paths, Node: good.Node},
	} {
		if _, err := kvbackend.New(client, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if _, err := kvbackend.New(nil, good); err == nil || !strings.Contains(err.Error(), "no kvstore") {
		t.Error(err)
	}
}

// TestWhatIsWrittenAgainIsLogged: a few references written again are logged with a line each; many are not.
func TestWhatIsWrittenAgainIsLogged(t *testing.T) {
	t.Parallel()
	s := &site{t, memory.New()}
	var log bytes.Buffer
	b := s.with(kvbackend.Config{Node: "10.0.0.1", Log: slog.New(slog.NewTextHandler(&log, nil))})
	lines := func() int { return strings.Count(log.String(), "Wrote the reference of this node again") }
	must(s, b.UpdateKey(s.Context(), 7, keyA, false, nil))
	must(s, b.UpdateKey(s.Context(), 7, keyA, false, nil)) // nothing is missing
	if n := lines(); n != 1 || !strings.Contains(log.String(), `id=7 key="k8s:a=1;"`) {
		t.Errorf("%d lines, want 1:\n%s", n, log.String())
	}
	for id := range uint64(100) {
		must(s, b.UpdateKey(s.Context(), 100+id, text(fmt.Sprintf("k8s:n=%d;", id)), false, nil))
	}
	if n := lines(); n > 20 {
		t.Errorf("%d lines for 100 references", n)
	}
}
