package etcd

import (
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// benchKeys is the number of keys that the benchmarks read at a time.
const benchKeys = 20000

const benchValue = `{"IP":"10.0.0.1","Mask":null,"HostIP":"192.168.0.1","ID":131072,"Key":0,"Metadata":"","K8sNamespace":"default","K8sPodName":"pod-abcdef"}`

const benchPrefix = "cilium/state/ip/v1/default/"

// benchServer returns an etcd with n keys, and a session without limits.
func benchServer(b *testing.B, n int) (*etcdtest.Server, *Session) {
	b.Helper()
	srv := etcdtest.Start(b)
	for i := range n {
		srv.Put(b, fmt.Sprintf("%s10.0.%d.%d", benchPrefix, i>>8, i&255), benchValue)
	}
	o := DefaultOptions()
	o.QPS, o.BootstrapQPS = 0, 0
	return srv, connect(b, addresses(b, srv.Endpoint()), o)
}

func benchList(b *testing.B, e *Session) {
	must(b, second(e.List(b.Context(), benchPrefix, func(kvstore.Page) error { return nil })))
}

// BenchmarkList reads 20,000 keys; client and server share the processor.
func BenchmarkList(b *testing.B) {
	_, e := benchServer(b, benchKeys)
	b.ReportAllocs()
	for b.Loop() {
		benchList(b, e)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchKeys, "ns/key")
}

// BenchmarkRecv reads responses of 1,000 events from a server that has them ready.
func BenchmarkRecv(b *testing.B) {
	const n = 1000
	resp := &pb.WatchResponse{Header: header(10 + n)}
	for i := range n {
		resp.Events = append(resp.Events, &mvccpb.Event{Kv: &mvccpb.KeyValue{
			Key: fmt.Appendf(nil, benchPrefix+"10.0.%d.%d", i>>8, i&255), Value: []byte(benchValue),
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
	st := watch(b, e, benchPrefix, position(10))
	b.ReportAllocs()
	for b.Loop() {
		if batch, err := st.Recv(); err != nil || len(batch.Events) != n {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
}
