package etcd

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// pageOf returns an answer with n keys and values of about 200 bytes.
func pageOf(tb testing.TB, n int) (message []byte, resp *pb.RangeResponse) {
	tb.Helper()
	resp = &pb.RangeResponse{Header: header(10 + int64(n)), Count: int64(n) + 1, More: true}
	for i := range n {
		resp.Kvs = append(resp.Kvs, &mvccpb.KeyValue{
			Key: fmt.Appendf(nil, "cilium/state/ip/v1/default/10.0.%d.%d", i>>8, i&255), Value: []byte(benchValue),
			CreateRevision: 2, ModRevision: int64(3 + i), Version: 4, Lease: 7587,
		})
	}
	message, err := proto.Marshal(resp)
	must(tb, err)
	return message, resp
}

// decoded decodes a message as the codec does.
func decoded(message []byte) (*pb.RangeResponse, error) {
	n, err := newAnswerCodec().ranged.count(message, maxNesting)
	if err != nil || n > maxParts {
		return nil, fmt.Errorf("%d keys: %w", n, err)
	}
	resp := &pb.RangeResponse{Count: 77, Kvs: make([]*mvccpb.KeyValue, 3)} // readPage must reset it
	return resp, readPage(message, n, resp)
}

// sameAsProtobuf returns an error if the codec of protobuf decodes a message differently.
func sameAsProtobuf(message []byte) error {
	want := new(pb.RangeResponse)
	wrong := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(message, want)
	got, err := decoded(message)
	switch {
	case (wrong != nil) != (err != nil):
		return fmt.Errorf("%q: %v, protobuf says %v", message, err, wrong)
	case err == nil && !proto.Equal(got, want):
		return fmt.Errorf("%q is %v, protobuf says %v", message, got, want)
	}
	return nil
}

// oddPages are messages that no etcd sends, and some invalid messages.
func oddPages() [][]byte {
	bytesField := func(num protowire.Number, content []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), content)
	}
	number := func(num protowire.Number, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), n)
	}
	group := append(protowire.AppendTag(nil, 9, protowire.StartGroupType), protowire.AppendTag(nil, 9, protowire.EndGroupType)...)
	kv := append(bytesField(kvKey, []byte("a")), bytesField(kvKey, []byte("bc"))...)
	all := [][]byte{
		nil,
		{0},
		{8},
		{0xff, 0xff},
		group, protowire.AppendTag(nil, 9, protowire.EndGroupType),
		bytesField(rangeKvs, nil), bytesField(rangeKvs, kv), bytesField(rangeKvs, kv[:3]), bytesField(rangeKvs, append(kv, group...)),
		bytesField(rangeKvs, bytesField(kvLease, nil)), bytesField(rangeKvs, number(kvValue, 1)), bytesField(rangeKvs, []byte{0xff}),
		bytesField(rangeKvs, number(kvModRevision, 1<<63)), bytesField(rangeKvs, append(bytesField(kvValue, []byte("v")), bytesField(kvValue, nil)...)),
		number(rangeKvs, 1), number(rangeMore, 2), number(rangeCount, 1<<63), bytesField(rangeCount, nil), bytesField(rangeMore, kv), bytesField(100, kv),
		append(bytesField(rangeHeader, number(1, 5)), bytesField(rangeHeader, number(3, 7))...), bytesField(rangeHeader, nil), bytesField(rangeHeader, []byte{0xff}),
	}
	return all
}

func TestAPageIsReadAsByProtobuf(t *testing.T) {
	t.Parallel()
	large, resp := pageOf(t, 300)
	for _, message := range append(oddPages(), large, large[:len(large)-1]) {
		must(t, sameAsProtobuf(message))
	}
	got, err := decoded(large)
	if err != nil || !proto.Equal(got, resp) {
		t.Fatalf("%v %v", got, err)
	}
	for i := range large { // the page must not refer to the message
		large[i] = 'x'
	}
	if !proto.Equal(got, resp) {
		t.Error("the page changed with the message")
	}
	kv := got.Kvs[0]
	if _ = append(kv.Key, 'y'); !proto.Equal(got, resp) {
		t.Error("the value changed with the key")
	}
}

func FuzzPage(f *testing.F) {
	small, _ := pageOf(f, 2)
	for _, message := range append(oddPages(), small) {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		must(t, sameAsProtobuf(message))
	})
}

// TestAPageAllocatesOnceForEachKey: and only a few times for all keys together. It is not
// parallel, because it counts allocations.
func TestAPageAllocatesOnceForEachKey(t *testing.T) {
	const n, others = 1000, 24
	message, _ := pageOf(t, n)
	allocations := testing.AllocsPerRun(20, func() {
		resp, err := decoded(message)
		must(t, err)
		fromPBs(resp.Kvs)
	})
	if allocations > n+others {
		t.Errorf("%v allocations for %d keys, at most %d are allowed", allocations, n, n+others)
	}
}

// BenchmarkPage compares reading a page of 1,000 keys with the codec of protobuf.
func BenchmarkPage(b *testing.B) {
	message, _ := pageOf(b, 1000)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(b, second(decoded(message)))
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(b, proto.Unmarshal(message, new(pb.RangeResponse)))
		}
	})
}
