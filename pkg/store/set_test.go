package store

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// decodeText accepts every value except those that begin with "bad".
func decodeText(_ string, value []byte) (*string, error) {
	text := string(value)
	if len(text) >= 3 && text[:3] == "bad" {
		return nil, &wire.RejectError{Reason: wire.ReasonMalformed, Err: errors.New(text)}
	}
	return &text, nil
}

// view is the table that results from the changes of a set.
type view map[string]string

func (v view) apply(t interface{ Fatalf(string, ...any) }, ch Change[string]) {
	old, known := v[ch.Name]
	if known != (ch.Old != nil) || (known && old != *ch.Old) {
		t.Fatalf("change %s says old is %v, the table has %q (%t)", ch.Name, ch.Old, old, known)
	}
	if ch.New == nil {
		if !known {
			t.Fatalf("deletion of %s, which the table does not have", ch.Name)
		}
		delete(v, ch.Name)
		return
	}
	if known && old == *ch.New {
		t.Fatalf("change of %s to the value it has", ch.Name)
	}
	v[ch.Name] = *ch.New
}

type kv struct {
	value string
	rev   int64
}

// model is a naive kvstore with a naive reader.
type model struct {
	kvstore map[string]kv
	rev     int64
	want    map[string]string // the expected values in force
}

// TestSetMachine drives a Set with random writes, event deliveries, complete
// and aborted lists and changes of the server, and compares it with a model.
func TestSetMachine(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := NewSet[string]()
		m := model{kvstore: map[string]kv{}, want: map[string]string{}}
		table := view{}
		names := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		values := rapid.SampledFrom([]string{"1", "2", "3", "bad1", "bad2"})
		upsert := func(name string, e kv) {
			ch, ok, _ := s.Upsert([]byte(name), []byte(e.value), e.rev, decodeText)
			if ok {
				table.apply(t, ch)
			}
			if _, err := decodeText(name, []byte(e.value)); err == nil {
				m.want[name] = e.value
			}
		}
		listOnce := func() {
			s.Begin()
			for name, e := range m.kvstore {
				upsert(name, e)
			}
			for ch := range s.Done() {
				table.apply(t, ch)
			}
			clear(m.want)
			for name, e := range m.kvstore {
				if _, err := decodeText(name, []byte(e.value)); err == nil {
					m.want[name] = e.value
				}
			}
		}
		listOnce()
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				m.rev++
				name := names.Draw(t, "name")
				m.kvstore[name] = kv{values.Draw(t, "value"), m.rev}
				upsert(name, m.kvstore[name])
			},
			"delete": func(t *rapid.T) {
				m.rev++
				name := names.Draw(t, "name")
				delete(m.kvstore, name)
				if ch, ok := s.Delete([]byte(name), m.rev); ok {
					table.apply(t, ch)
				}
				delete(m.want, name)
			},
			"replay an old event": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if e, ok := m.kvstore[name]; ok {
					if ch, ok, _ := s.Upsert([]byte(name), []byte("old"), e.rev, decodeText); ok {
						t.Fatalf("an event that was applied already changed %s to %s", name, *ch.New)
					}
				}
			},
			"list": func(t *rapid.T) { listOnce() },
			"list after an outage": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "writes") {
					m.rev++
					name := names.Draw(t, "name")
					if rapid.Bool().Draw(t, "delete") {
						delete(m.kvstore, name)
					} else {
						m.kvstore[name] = kv{values.Draw(t, "value"), m.rev}
					}
				}
				listOnce()
			},
			"list from another server": func(t *rapid.T) {
				m.rev = 0
				for name, e := range m.kvstore {
					m.rev++
					m.kvstore[name] = kv{e.value, m.rev}
				}
				before := maps.Clone(table)
				listOnce()
				for name, old := range before {
					if _, there := m.want[name]; there && m.want[name] != old {
						t.Fatalf("the same contents changed %s", name)
					}
				}
			},
			"aborted list": func(t *rapid.T) {
				s.Begin()
				for name, e := range m.kvstore {
					if rapid.Bool().Draw(t, "listed") {
						upsert(name, e)
					}
				}
				// The next list must sweep as if this one had not happened.
				listOnce()
			},
			"drain": func(t *rapid.T) {
				for ch := range s.Drain() {
					table.apply(t, ch)
				}
				if len(table) != 0 || s.Len() != 0 || s.Rejected() != 0 {
					t.Fatalf("left after a drain: %v, %d in force, %d rejected", table, s.Len(), s.Rejected())
				}
				listOnce()
			},
			"": func(t *rapid.T) {
				if diff := cmp.Diff(m.want, map[string]string(table)); diff != "" {
					t.Fatalf("in force (-want +table):\n%s", diff)
				}
				bad := 0
				for name, e := range m.kvstore {
					if _, err := decodeText(name, []byte(e.value)); err != nil {
						bad++
					}
				}
				if s.Len() != len(m.want) || s.Rejected() != bad || s.Rejections()[wire.ReasonMalformed] != bad {
					t.Fatalf("counts: %d in force of %d, %d rejected (%v) of %d", s.Len(), len(m.want), s.Rejected(), s.Rejections(), bad)
				}
			},
		})
	})
}

func TestAnUnchangedValueIsNotDecodedAgain(t *testing.T) {
	t.Parallel()
	decoded := 0
	decode := func(name string, value []byte) (*string, error) {
		decoded++
		return decodeText(name, value)
	}
	s := NewSet[string]()
	for list := range 3 { // each from a server with its own revisions
		s.Begin()
		for i := range 100 {
			if _, _, err := s.Upsert(fmt.Appendf(nil, "k%d", i), []byte("v"), int64(1000-list*100+i), decode); err != nil {
				t.Fatal(err)
			}
		}
		for ch := range s.Done() {
			t.Errorf("swept %s", ch.Name)
		}
	}
	if decoded != 100 {
		t.Errorf("%d values decoded, want 100", decoded)
	}
}

func TestAListTrustsValuesNotRevisions(t *testing.T) {
	t.Parallel()
	s := NewSet[string]()
	s.Begin()
	s.Upsert([]byte("k"), []byte("before"), 500, decodeText)
	for range s.Done() {
	}
	// The same etcd, restored from a backup: it has an older revision and another value.
	s.Begin()
	ch, ok, _ := s.Upsert([]byte("k"), []byte("restored"), 400, decodeText)
	if !ok || *ch.New != "restored" {
		t.Fatalf("the value of the restored etcd was ignored: %v %v", ok, ch)
	}
	for range s.Done() {
	}
	// Its events count from that revision.
	if ch, ok, _ := s.Upsert([]byte("k"), []byte("next"), 401, decodeText); !ok || *ch.New != "next" {
		t.Fatalf("an event of the restored etcd was ignored: %v %v", ok, ch)
	}
}

func BenchmarkSetRelistUnchanged(b *testing.B) {
	s := NewSet[string]()
	names := make([][]byte, 100_000)
	value := []byte(`{"IP":"10.0.0.1","Mask":null,"HostIP":"192.168.2.10","ID":131172,"Key":0,"Metadata":"","K8sNamespace":"default","K8sPodName":"web-0"}`)
	for i := range names {
		names[i] = fmt.Appendf(nil, "10.%d.%d.%d", i>>16, i>>8&255, i&255)
	}
	list := func() {
		s.Begin()
		for i, n := range names {
			s.Upsert(n, value, int64(i), decodeText)
		}
		for range s.Done() {
		}
	}
	list()
	b.ReportAllocs()
	for b.Loop() {
		list()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(names)), "ns/key")
}

func TestAgrees(t *testing.T) {
	t.Parallel()
	s := NewSet[string]()
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		_, _, _ = s.Upsert([]byte(name), []byte("1"), int64(10-i), decodeText)
	}
	_, _, _ = s.Upsert([]byte("c"), []byte("bad"), 20, decodeText)
	if s.Newest() != "c" || s.Known() != 5 {
		t.Errorf("newest %q of %d, want c of 5", s.Newest(), s.Known())
	}
	kv := func(name, value string, rev int64) kvstore.KeyValue {
		return kvstore.KeyValue{Key: []byte(name), Value: []byte(value), ModRevision: rev}
	}
	a, b, c, d, e := kv("a", "1", 10), kv("b", "1", 9), kv("c", "bad", 20), kv("d", "1", 7), kv("e", "1", 6)
	for _, test := range []struct {
		what  string
		one   string
		count int64
		items []kvstore.KeyValue
		want  bool
	}{
		{"everything", "", 5, []kvstore.KeyValue{a, b, c, d, e}, true},
		{"the first two of five", "", 5, []kvstore.KeyValue{a, b}, true},
		{"the newest", "c", 1, []kvstore.KeyValue{c}, true},
		{"one more than is known", "", 6, []kvstore.KeyValue{a, b}, false},
		{"one less than is known", "", 4, []kvstore.KeyValue{a, b, c, d}, false},
		{"another revision", "", 5, []kvstore.KeyValue{kv("a", "1", 11)}, false},
		{"another value", "", 5, []kvstore.KeyValue{kv("a", "2", 10)}, false},
		{"the value in force, not the refused one that was there", "c", 1, []kvstore.KeyValue{kv("c", "1", 20)}, false},
		{"an unknown key", "", 5, []kvstore.KeyValue{a, kv("aa", "1", 3)}, false},
		{"a known key left out, and one behind in its place", "", 5, []kvstore.KeyValue{a, c}, false},
		{"the newest is gone", "c", 0, nil, false},
		{"nothing", "", 0, nil, false},
	} {
		if got := s.Agrees(test.one, kvstore.Past{Items: test.items, Count: test.count}); got != test.want {
			t.Errorf("%s: %t, want %t", test.what, got, test.want)
		}
	}
	if !NewSet[string]().Agrees("", kvstore.Past{}) {
		t.Error("an empty set does not agree with nothing")
	}
}

func TestExamplesOfRefusals(t *testing.T) {
	t.Parallel()
	s := NewSet[string]()
	refuse := func(name string, _ []byte) (*string, error) {
		return nil, &wire.RejectError{Reason: wire.ReasonKey, Err: errors.New("not " + name)}
	}
	accept := func(string, []byte) (*string, error) { return new(string), nil }
	example := func(name, why string) {
		t.Helper()
		if n, w := s.Example(); n != name || w != why {
			t.Errorf("example %q %q, want %q %q", n, w, name, why)
		}
	}
	for i := 20; i > 0; i-- {
		_, _, err := s.Upsert(fmt.Appendf(nil, "k%02d", i), nil, int64(100-i), refuse)
		if err == nil {
			t.Fatal("accepted")
		}
	}
	if len(s.examples) != maxExamples || s.Rejected() != 20 {
		t.Errorf("%d examples of %d refusals", len(s.examples), s.Rejected())
	}
	example("k13", "key: not k13") // the first by name of those refused first
	if _, ok, err := s.Upsert([]byte("k13"), []byte("good"), 200, accept); !ok || err != nil {
		t.Error(ok, err)
	}
	example("k14", "key: not k14")
	for range s.Drain() {
	}
	example("", "")
}
