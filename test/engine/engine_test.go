package engine

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/memory"
)

func TestConforms(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(*testing.T) kvtest.Store { return newServer() })
}

// server is a server of which only the keys below the prefix are tested.
type server struct{ m *memory.Store }

const prefix = "part/of/it/"

func newServer() server {
	m := memory.New()
	m.SetPageSize(kvtest.PageSize)
	return server{m}
}

func (s server) Open(t *testing.T) kvstore.Client {
	p := New(s.m.Connect(), prefix, kvstore.WriterOptions{})
	t.Cleanup(p.Close)
	return p
}

func (s server) Writer(t *testing.T, leases *kvstore.Leases) kvstore.Writer {
	p := New(s.m.Connect(), prefix, kvstore.WriterOptions{LeaseTTL: memory.LeaseTTL, LockTTL: memory.LeaseTTL, Leases: leases})
	kvtest.KeepRunning(t, p)
	return p
}

func (s server) Put(_ *testing.T, kvs ...string) int64 {
	var events []kvstore.Event
	for i := 0; i < len(kvs); i += 2 {
		events = append(events, kvstore.Event{KeyValue: kvstore.KeyValue{Key: []byte(prefix + kvs[i]), Value: []byte(kvs[i+1])}})
	}
	return s.m.Write(events...).Revision
}

func (s server) Delete(_ *testing.T, keys ...string) int64 {
	var events []kvstore.Event
	for _, k := range keys {
		events = append(events, kvstore.Event{Type: kvstore.EventDelete, KeyValue: kvstore.KeyValue{Key: []byte(prefix + k)}})
	}
	return s.m.Write(events...).Revision
}

func (s server) ExpireLeases(*testing.T) { s.m.ExpireLeases() }
func (s server) Compact(*testing.T)      { s.m.Compact() }
func (s server) Break(*testing.T)        { s.m.Break(nil) }
func (s server) Replace(*testing.T)      { s.m.Replace() }
func (s server) Wipe(*testing.T)         { s.m.Wipe() }
