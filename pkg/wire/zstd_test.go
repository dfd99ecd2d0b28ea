package wire

import (
	"bytes"
	"errors"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestManyFramesAreBoundedTogether(t *testing.T) {
	t.Parallel()
	e := NewSliceEncoder()
	defer e.Close()
	frame := e.zstd.EncodeAll(make([]byte, MaxValue/16), nil)
	if b, err := new(inflater).decompress(bytes.Repeat(frame, 16)); err != nil || len(b) != MaxValue {
		t.Errorf("the bound: %d bytes, %v", len(b), err)
	}
	if _, err := new(inflater).decompress(bytes.Repeat(frame, 17)); !errors.Is(err, zstd.ErrDecoderSizeExceeded) || !tooLarge(err) {
		t.Errorf("more: %v", err)
	}
}

func TestGoldenAReusedEncoderWritesTheSame(t *testing.T) {
	t.Parallel()
	e := NewSliceEncoder()
	defer e.Close()
	for _, v := range golden[[]vector](t, "endpointslices.json") {
		message, err := new(inflater).decompress(v.Base64)
		if err != nil {
			t.Fatal(err)
		}
		var s EndpointSlice
		if err := s.parseProto(message); err != nil {
			t.Fatal(err)
		}
		same(t, v.Note, base64Text(string(e.Encode(&s))), base64Text(string(v.Base64)))
	}
}

func TestProtobufThatCannotBeReadIsRejected(t *testing.T) {
	t.Parallel()
	e := NewSliceEncoder()
	defer e.Close()
	for name, message := range map[string][]byte{
		"a string as a varint":        {1 << 3, 1},
		"a varint as a string":        {2<<3 | 2, 1, 'x'},
		"an endpoint as a varint":     {8 << 3, 1},
		"a map entry cut short":       {5<<3 | 2, 2, 1<<3 | 2, 5},
		"field number zero":           {0, 0},
		"the end of no group":         {1<<3 | 4},
		"a group that does not end":   {100<<3&0x7f | 0x80 | 3, 6},
		"a length beyond the message": {1<<3 | 2, 200, 1},
	} {
		_, err := DecodeEndpointSlice("ns/x", e.zstd.EncodeAll(message, nil), cluster2)
		if r := checkRejected(t, err); r.Reason != ReasonMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTwoMessagesInOneExtendEachOther(t *testing.T) {
	t.Parallel()
	yes, zone := true, "eu-a"
	first := EndpointSlice{Cluster: "x", Labels: map[string]string{"a": "1"}, Endpoints: []Endpoint{{Addresses: []string{"10.0.0.1"}}}}
	second := EndpointSlice{
		Cluster: "cluster2", Labels: map[string]string{"b": "2"},
		Endpoints: []Endpoint{{Zone: &zone, Conditions: EndpointConditions{Ready: &yes}}},
	}
	var s EndpointSlice
	if err := s.parseProto(second.appendProto(first.appendProto(nil))); err != nil {
		t.Fatal(err)
	}
	if s.Cluster != "cluster2" || len(s.Labels) != 2 || len(s.Endpoints) != 2 || *s.Endpoints[1].Zone != "eu-a" {
		t.Errorf("%+v", s)
	}
}
