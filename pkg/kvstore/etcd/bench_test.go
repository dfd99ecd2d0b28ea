package etcd

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
)

// benchKeys is how many keys the benchmarks read at a time.
const benchKeys = 20000

const benchValue = `{"IP":"10.0.0.1","Mask":null,"HostIP":"192.168.0.1","ID":131072,"Key":0,"Metadata":"","K8sNamespace":"default","K8sPodName":"pod-abcdef"}`

func benchServer(b *testing.B) *Session {
	b.Helper()
	srv := etcdtest.Start(b)
	for i := range benchKeys {
		srv.Put(b, fmt.Sprintf("cilium/state/ip/v1/default/10.0.%d.%d", i>>8, i&255),
			benchValue)
	}
	cfg, err := clientfile.New(srv.Endpoint())
	if err != nil {
		b.Fatal(err)
	}
	e, err := Connect(b.Context(), cfg, 0, DefaultOptions())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(e.Close)
	return e
}

// BenchmarkList reads 20,000 keys; client and server share the processor.
func BenchmarkList(b *testing.B) {
	e := benchServer(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.List(b.Context(), "cilium/state/ip/v1/default/", func(kvstore.Page) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/key")
}

// BenchmarkRecv reads responses of 1,000 events from a server that has them
// ready.
func BenchmarkRecv(b *testing.B) {
	const n = 1000
	resp := &pb.WatchResponse{Header: header(10 + n)}
	for i := range n {
		resp.Events = append(resp.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{
			Key: fmt.Appendf(nil, "cilium/state/ip/v1/default/10.0.%d.%d", i>>8, i&255), Value: []byte(benchValue),
			ModRevision: int64(11 + i), CreateRevision: 2, Version: 2, Lease: 7587,
		}})
	}
	e := (&fake{watchFn: func(s pb.Watch_WatchServer) error {
		err := s.Send(confirmed())
		for err == nil {
			err = s.Send(resp)
		}
		return err
	}}).start(b, DefaultOptions())
	st, err := e.Watch(b.Context(), "cilium/state/ip/v1/default/", position(10))
	if err != nil {
		b.Fatal(err)
	}
	defer st.Close()
	b.ReportAllocs()
	for b.Loop() {
		if batch, err := st.Recv(); err != nil || len(batch.Events) != n {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
}
