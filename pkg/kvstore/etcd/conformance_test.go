package etcd_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestEtcdConforms(t *testing.T) {
	t.Parallel()
	kvtest.Run(t, func(t *testing.T) kvtest.Store { return &etcdStore{etcdtest.Start(t)} })
}

// leaseTTL is short, so that the end of a lease is noticed soon, and long enough for
// a busy machine, which pauses for less than two thirds of it.
const leaseTTL = 15 * time.Second

type etcdStore struct{ *etcdtest.Server }

func (s *etcdStore) Open(t *testing.T) kvstore.Client {
	c := s.connect(t, nil)
	t.Cleanup(c.Close)
	return c
}

func (s *etcdStore) Writer(t *testing.T, leases *kvstore.Leases) kvstore.Writer {
	c := s.connect(t, leases)
	kvtest.KeepRunning(t, c)
	return c
}

func (s *etcdStore) ExpireLeases(t *testing.T) {
	all, err := s.Local().Leases(t.Context())
	waittest.Must(t, err)
	for _, l := range all.Leases {
		if _, err := s.Local().Revoke(t.Context(), l.ID); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *etcdStore) connect(t *testing.T, leases *kvstore.Leases) *etcd.Session {
	cfg, err := clientfile.New(s.Endpoint())
	waittest.Must(t, err)
	o := etcd.DefaultOptions()
	o.PageLimit = kvtest.PageSize
	o.Leases, o.LeaseTTL = leases, leaseTTL
	tm := &o.Timings // long, so that a slow machine fails no call
	for _, limit := range []*time.Duration{&tm.Connect, &tm.Dial, &tm.Read, &tm.Page, &tm.Write, &tm.Lock, &tm.WatchOpen, &tm.Probe} {
		*limit = time.Hour
	}
	c, err := etcd.Connect(t.Context(), cfg, 0, o)
	waittest.Must(t, err)
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
