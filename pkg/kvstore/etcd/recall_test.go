package etcd

import (
	"bytes"
	"fmt"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestRecallOfLargeValues: Recall returns fewer keys if they are too large for one message.
func TestRecallOfLargeValues(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), 1<<20)
	e := respond(func(r *pb.RangeRequest) *pb.RangeResponse {
		resp := &pb.RangeResponse{Header: header(10), Count: 64, More: true}
		for i := range r.Limit {
			kv := key(fmt.Sprintf("p/%02d", i), 2)
			kv.Value = large
			resp.Kvs = append(resp.Kvs, kv)
		}
		if r.CountOnly {
			return &pb.RangeResponse{Header: header(10)}
		}
		return resp
	}).start(t, quick())
	past, err := e.Recall(waittest.Context(t), "p/", "", position(10), 32)
	must(t, err)
	if n := len(past.Items); n != 8 || past.Count != 64 {
		t.Errorf("%d keys of %d", n, past.Count)
	}
}
