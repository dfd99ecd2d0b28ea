package wire

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendProto appends the message ClusterEndpointSlice. Scalars are written
// even when empty, maps in the order of their keys (wire.md §1.4).
func (s *EndpointSlice) appendProto(b []byte) []byte {
	b = appendString(b, 1, s.Cluster)
	b = appendVarint(b, 2, uint64(s.ClusterID))
	b = appendString(b, 3, s.Namespace)
	b = appendString(b, 4, s.Name)
	b = appendMap(b, 5, s.Labels)
	b = appendMap(b, 6, s.Annotations)
	b = appendString(b, 7, s.AddressType)
	for i := range s.Endpoints {
		b = appendMessage(b, 8, s.Endpoints[i].appendProto)
	}
	for i := range s.Ports {
		b = appendMessage(b, 9, s.Ports[i].appendProto)
	}
	return b
}

func (e *Endpoint) appendProto(b []byte) []byte {
	for _, address := range e.Addresses {
		b = appendString(b, 1, address)
	}
	b = appendMessage(b, 2, e.Conditions.appendProto)
	b = appendOptional(b, 3, e.Hostname)
	b = appendMap(b, 5, e.DeprecatedTopology)
	b = appendOptional(b, 6, e.NodeName)
	b = appendOptional(b, 7, e.Zone)
	if e.Hints != nil {
		b = appendMessage(b, 8, e.Hints.appendProto)
	}
	return b
}

func (c *EndpointConditions) appendProto(b []byte) []byte {
	for i, condition := range []*bool{c.Ready, c.Serving, c.Terminating} {
		if condition != nil {
			b = appendVarint(b, protowire.Number(i+1), protowire.EncodeBool(*condition))
		}
	}
	return b
}

func (h *EndpointHints) appendProto(b []byte) []byte {
	for _, zone := range h.ForZones {
		b = appendMessage(b, 1, func(b []byte) []byte { return appendString(b, 1, zone.Name) })
	}
	return b
}

func (p *EndpointPort) appendProto(b []byte) []byte {
	b = appendOptional(b, 1, p.Name)
	b = appendOptional(b, 2, p.Protocol)
	if p.Port != nil {
		b = appendVarint(b, 3, uint64(int64(*p.Port)))
	}
	return appendOptional(b, 4, p.AppProtocol)
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendOptional(b []byte, field protowire.Number, s *string) []byte {
	if s == nil {
		return b
	}
	return appendString(b, field, *s)
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendMessage(b []byte, field protowire.Number, body func([]byte) []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), body(nil))
}

func appendMap(b []byte, field protowire.Number, m map[string]string) []byte {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b = appendMessage(b, field, func(b []byte) []byte {
			return appendString(appendString(b, 1, key), 2, m[key])
		})
	}
	return b
}

// field is one field of a message that is being read.
type field struct {
	number protowire.Number
	kind   protowire.Type
	bytes  []byte // the content when kind is BytesType
	varint uint64 // the content when kind is VarintType
}

// parseMessage calls each with the fields in order. The function each has to ignore fields of unknown number.
func parseMessage(b []byte, each func(field) error) error {
	for len(b) > 0 {
		var f field
		var n int
		if f.number, f.kind, n = protowire.ConsumeTag(b); n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		switch f.kind {
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			f.varint, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(f.number, f.kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// want checks the type of a field's content.
func (f field) want(kind protowire.Type) error {
	if f.kind != kind {
		return fmt.Errorf("proto: wrong wire type %d for field %d", f.kind, f.number)
	}
	return nil
}
