package wire

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		must(t, err)
		var s EndpointSlice
		must(t, s.parseProto(message))
		samePromised(t, v.Note, e.Encode(&s), v.Base64)
	}
}

// samePromised checks that both values are the same endpoint slice in the promised form: one frame with a checksum
// around the same message. If no part of it could be compressed, the frames are identical too. Otherwise another
// release of the compressor may produce another frame.
func samePromised(t *testing.T, what string, got, want []byte) {
	t.Helper()
	var messages [2][]byte
	for i, value := range [][]byte{got, want} {
		var h zstd.Header
		if err := h.Decode(value); err != nil || !h.HasCheckSum || h.Skippable {
			t.Errorf("%s: no frame with a checksum: %+v, %v", what, h, err)
			return
		}
		message, err := new(inflater).decompress(value)
		must(t, err)
		messages[i] = message
	}
	same(t, what+", the message", base64Text(string(messages[0])), base64Text(string(messages[1])))
	if len(want) > len(messages[1]) { // stored without compression
		same(t, what, base64Text(string(got)), base64Text(string(want)))
	}
}

// TestALargeSliceIsItsMessage: the message is the same for every compressor. Other levels of the library stand for
// other releases.
func TestALargeSliceIsItsMessage(t *testing.T) {
	t.Parallel()
	s := EndpointSlice{Cluster: "cluster2", ClusterID: 2, Namespace: "ns", Name: "web-1", AddressType: AddressTypeIPv4}
	for i := range 1000 {
		node, yes := "node"+strings.Repeat("x", i%13), i%2 == 0
		s.Endpoints = append(s.Endpoints, Endpoint{
			Addresses: []string{netip.AddrFrom4([4]byte{10, 2, byte(i * 7919 >> 8), byte(i * 7919)}).String()}, NodeName: &node, Conditions: EndpointConditions{Ready: &yes},
		})
	}
	ours, different := s.Encode(), false
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedBetterCompression, zstd.SpeedBestCompression} {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1))
		must(t, err)
		theirs := w.EncodeAll(s.appendProto(nil), nil)
		_ = w.Close()
		different = different || !bytes.Equal(ours, theirs)
		samePromised(t, level.String(), theirs, ours)
		got, err := DecodeEndpointSlice("ns/web-1", theirs, cluster2)
		must(t, err)
		if d := cmp.Diff(&s, got); d != "" {
			t.Error(level, d)
		}
	}
	if !different {
		t.Error("all compressors make the same of it, which shows nothing")
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
	must(t, s.parseProto(second.appendProto(first.appendProto(nil))))
	if s.Cluster != "cluster2" || len(s.Labels) != 2 || len(s.Endpoints) != 2 || *s.Endpoints[1].Zone != "eu-a" {
		t.Errorf("%+v", s)
	}
}
