package memory_test

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	for name, fragment := range map[string]int{"whole batches": 0, "batches in parts": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kvtest.Run(t, func(*testing.T) kvtest.Store {
				m := memory.New()
				m.SetPageSize(kvtest.PageSize)
				m.SetFragmentSize(fragment)
				return memoryStore{m}
			})
		})
	}
}

type memoryStore struct{ m *memory.Store }

func (s memoryStore) Open(t *testing.T) kvstore.Client {
	c := s.m.Connect()
	t.Cleanup(c.Close)
	return c
}

func (s memoryStore) Writer(t *testing.T, leases *kvstore.Leases) kvstore.Writer {
	m := s.m.ConnectWith(leases)
	kvtest.KeepRunning(t, m)
	return m
}

func (s memoryStore) ExpireLeases(*testing.T) { s.m.ExpireLeases() }

func (s memoryStore) Put(_ *testing.T, kvs ...string) int64 {
	var events []kvstore.Event
	for i := 0; i < len(kvs); i += 2 {
		events = append(events, kvstore.Event{KeyValue: kvstore.KeyValue{Key: []byte(kvs[i]), Value: []byte(kvs[i+1])}})
	}
	return s.m.Write(events...).Revision
}

func (s memoryStore) Delete(_ *testing.T, keys ...string) int64 {
	var events []kvstore.Event
	for _, k := range keys {
		events = append(events, kvstore.Event{Type: kvstore.EventDelete, KeyValue: kvstore.KeyValue{Key: []byte(k)}})
	}
	return s.m.Write(events...).Revision
}

func (s memoryStore) Compact(*testing.T) { s.m.Compact() }
func (s memoryStore) Break(*testing.T)   { s.m.Break(nil) }
func (s memoryStore) Replace(*testing.T) { s.m.Replace() }
func (s memoryStore) Wipe(*testing.T)    { s.m.Wipe() }
