package etcd

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// maxParts bounds the number of keys or events in one message: several times the number that a correct server sends.
const maxParts = 1 << 16

// maxNesting is the maximum depth of nested transactions in an answer. Our
// transactions have two levels.
const maxNesting = 8

// answerCodec is gRPC's codec for protobuf that counts the parts of an answer before it allocates
// them: an empty key is two bytes in a message and more than a hundred in memory.
type answerCodec struct {
	encoding.CodecV2
	ranged, watched, status, txn parts
}

// parts are the repeated fields of a message, with the repeated fields of each; nil for none.
type parts map[protowire.Number]parts

func newAnswerCodec() *answerCodec {
	c := &answerCodec{
		CodecV2: encoding.GetCodecV2(proto.Name),
		ranged:  parts{2: nil},  // kvs
		watched: parts{11: nil}, // events
		status:  parts{8: nil},  // errors
		txn:     parts{},
	}
	// responses: of a range, of a deletion with the previous keys, of a transaction
	c.txn[3] = parts{1: c.ranged, 3: {3: nil}, 4: c.txn}
	return c
}

// Unmarshal implements [encoding.CodecV2].
func (c *answerCodec) Unmarshal(data mem.BufferSlice, v any) error {
	of := c.partsOf(v)
	if of == nil {
		return c.CodecV2.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	n, err := of.count(whole.ReadOnlyData(), maxNesting)
	if err != nil {
		return err
	}
	if n > maxParts {
		return fmt.Errorf("%s: %d keys or events, %d at most", tooManyParts, n, maxParts)
	}
	if page, is := v.(*pb.RangeResponse); is {
		return readPage(whole.ReadOnlyData(), n, page)
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{whole}, v)
}

// tooManyParts is the beginning of the error's text. The error is recognised by it, because gRPC keeps only the text.
const tooManyParts = "message larger than max in parts"

// partsOf returns the parts of answers that can be large; nil for all other answers, which have no
// repeated field or come from our own etcd (users).
func (c *answerCodec) partsOf(v any) parts {
	switch v.(type) {
	case *pb.RangeResponse:
		return c.ranged
	case *pb.WatchResponse:
		return c.watched
	case *pb.TxnResponse:
		return c.txn
	case *pb.StatusResponse:
		return c.status
	}
	return nil
}

// count returns the number of parts in a message, including the parts of its parts.
func (p parts) count(message []byte, nesting int) (n int, err error) {
	if nesting == 0 {
		return 0, errors.New("transactions are nested too deeply")
	}
	for len(message) > 0 {
		num, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return 0, protowire.ParseError(tag)
		}
		size := protowire.ConsumeFieldValue(num, kind, message[tag:])
		if size < 0 {
			return 0, protowire.ParseError(size)
		}
		if of, counts := p[num]; counts {
			n++
			if of != nil && kind == protowire.BytesType {
				part, _ := protowire.ConsumeBytes(message[tag:])
				within, err := of.count(part, nesting-1)
				if err != nil {
					return 0, err
				}
				n += within
			}
		}
		message = message[tag+size:]
	}
	return n, nil
}
