package kvstore_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/internal/etcdserver"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(*testing.T) kvtest.Store {
		m := kvstore.NewMemory()
		m.SetPageSize(kvtest.PageSize)
		return memoryStore{m}
	})
}

type memoryStore struct{ m *kvstore.Memory }

func (s memoryStore) Open(t *testing.T) kvstore.Client {
	c := s.m.Connect()
	t.Cleanup(c.Close)
	return c
}

func (s memoryStore) Writer(t *testing.T, leases *kvstore.Leases) kvstore.Writer {
	m := s.m.ConnectWith(leases)
	keepRunning(t, m)
	return m
}

// session is what both are.
type session interface {
	kvstore.Writer
	Run(ctx context.Context, onProbe func(kvstore.Probe)) error
}

// keepRunning runs a session until the end of the test.
func keepRunning(t *testing.T, s session) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(t.Context(), nil) // it ends with the session, or the test
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
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

func TestEtcdConforms(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(t *testing.T) kvtest.Store { return &etcdStore{etcdtest.Start(t)} })
}

// leaseTTL is short, so that a lease that has ended is noticed soon, and long
// enough for a machine that is busy.
const leaseTTL = 9 * time.Second

type etcdStore struct{ *etcdtest.Server }

func (s *etcdStore) Open(t *testing.T) kvstore.Client {
	c := s.connect(t, nil)
	t.Cleanup(c.Close)
	return c
}

func (s *etcdStore) Writer(t *testing.T, leases *kvstore.Leases) kvstore.Writer {
	c := s.connect(t, leases)
	keepRunning(t, c)
	return c
}

func (s *etcdStore) ExpireLeases(t *testing.T) {
	all, err := s.Local().Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all.Leases {
		if _, err := s.Local().Revoke(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *etcdStore) connect(t *testing.T, leases *kvstore.Leases) *kvstore.Etcd {
	cfg, err := kvstore.NewConfig(s.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	o := kvstore.DefaultOptions()
	o.PageLimit = kvtest.PageSize
	o.Leases, o.LeaseTTL = leases, leaseTTL
	o.Timings.Read, o.Timings.Write = time.Hour, time.Hour // no slow machine fails a call
	c, err := kvstore.Connect(t.Context(), cfg, 0, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *etcdStore) Put(t *testing.T, kvs ...string) int64 {
	var ops []clientv3.Op
	for i := 0; i < len(kvs); i += 2 {
		ops = append(ops, clientv3.OpPut(kvs[i], kvs[i+1]))
	}
	return s.txn(t, ops)
}

func (s *etcdStore) Delete(t *testing.T, keys ...string) int64 {
	var ops []clientv3.Op
	for _, k := range keys {
		ops = append(ops, clientv3.OpDelete(k))
	}
	return s.txn(t, ops)
}

func (s *etcdStore) txn(t *testing.T, ops []clientv3.Op) int64 {
	resp, err := s.Local().Txn(t.Context()).Then(ops...).Commit()
	if err != nil {
		t.Errorf("write: %v", err)
		return 0
	}
	return resp.Header.Revision
}

func (s *etcdStore) Compact(t *testing.T) { s.Server.Compact(t) }

func (s *etcdStore) Break(t *testing.T) { s.restart(t, s.Config()) }

func (s *etcdStore) Replace(t *testing.T) {
	cfg := s.Config()
	cfg.Token, cfg.DataDir = "", t.TempDir()
	s.restart(t, cfg)
}

func (s *etcdStore) Wipe(t *testing.T) {
	cfg := s.Config()
	cfg.DataDir = t.TempDir()
	s.restart(t, cfg)
}

func (s *etcdStore) restart(t *testing.T, cfg etcdserver.Config) {
	s.Close()
	s.Server = etcdtest.Start(t, etcdtest.WithConfig(cfg))
}
