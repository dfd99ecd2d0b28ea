package etcd

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
)

// The numbers of the fields in the messages of a page.
const (
	rangeHeader protowire.Number = 1
	rangeKvs    protowire.Number = 2
	rangeMore   protowire.Number = 3
	rangeCount  protowire.Number = 4

	kvKey            protowire.Number = 1
	kvCreateRevision protowire.Number = 2
	kvModRevision    protowire.Number = 3
	kvVersion        protowire.Number = 4
	kvValue          protowire.Number = 5
	kvLease          protowire.Number = 6
)

// readPage reads the answer of a range request that has n keys. It works like the codec of
// protobuf, but drops unknown fields, and allocates once for each key instead of three times:
// when an agent starts, lists are most of the data that it reads. A key and its value share an
// array of their own, so a kept key does not keep the memory of the page.
func readPage(message []byte, n int, resp *pb.RangeResponse) error {
	resp.Reset()
	if n > 0 {
		resp.Kvs = make([]*mvccpb.KeyValue, 0, n)
	}
	kvs := make([]mvccpb.KeyValue, n)
	return eachField(message, func(num protowire.Number, number uint64, content []byte) error {
		switch {
		case num == rangeMore && content == nil:
			resp.More = protowire.DecodeBool(number)
		case num == rangeCount && content == nil:
			resp.Count = int64(number)
		case num == rangeHeader && content != nil:
			if resp.Header == nil {
				resp.Header = new(pb.ResponseHeader)
			}
			return proto.UnmarshalOptions{Merge: true, DiscardUnknown: true}.Unmarshal(content, resp.Header)
		case num == rangeKvs && content != nil:
			kv := &kvs[len(resp.Kvs)]
			resp.Kvs = append(resp.Kvs, kv)
			return readKeyValue(content, kv)
		}
		return nil
	})
}

func readKeyValue(message []byte, kv *mvccpb.KeyValue) error {
	var key, value []byte
	err := eachField(message, func(num protowire.Number, number uint64, content []byte) error {
		switch {
		case num == kvKey && content != nil:
			key = content
		case num == kvValue && content != nil:
			value = content
		case content != nil:
		case num == kvCreateRevision:
			kv.CreateRevision = int64(number)
		case num == kvModRevision:
			kv.ModRevision = int64(number)
		case num == kvVersion:
			kv.Version = int64(number)
		case num == kvLease:
			kv.Lease = int64(number)
		}
		return nil
	})
	if err != nil {
		return err
	}
	both := make([]byte, 0, len(key)+len(value))
	both = append(append(both, key...), value...)
	if len(key) > 0 {
		kv.Key = both[:len(key):len(key)]
	}
	if len(value) > 0 {
		kv.Value = both[len(key):]
	}
	return nil
}

// eachField calls give with each field that is a number or has a content; a content is never
// nil. It skips fields of other types, because the fields above do not have them.
func eachField(message []byte, give func(num protowire.Number, number uint64, content []byte) error) error {
	for len(message) > 0 {
		num, kind, size := protowire.ConsumeTag(message)
		switch {
		case size < 0:
			return protowire.ParseError(size)
		case num > protowire.MaxValidNumber:
			return errors.New("a field has a number that cannot be one")
		}
		message = message[size:]
		var err error
		switch kind {
		case protowire.VarintType:
			var number uint64
			if number, size = protowire.ConsumeVarint(message); size >= 0 {
				err = give(num, number, nil)
			}
		case protowire.BytesType:
			var content []byte
			if content, size = protowire.ConsumeBytes(message); size >= 0 {
				err = give(num, 0, content[:len(content):len(content)])
			}
		default:
			size = protowire.ConsumeFieldValue(num, kind, message)
		}
		if err != nil {
			return err
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		message = message[size:]
	}
	return nil
}
