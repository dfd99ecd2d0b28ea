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

// parseMessage calls each with the fields in order. Fields of unknown number
// are for each to ignore.
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

func (f field) string(to *string) error {
	*to = string(f.bytes)
	return f.want(protowire.BytesType)
}

func (f field) optional(to **string) error {
	*to = new(string)
	return f.string(*to)
}

func (f field) bool(to **bool) error {
	value := protowire.DecodeBool(f.varint)
	*to = &value
	return f.want(protowire.VarintType)
}

func (f field) message(parse func(field) error) error {
	if err := f.want(protowire.BytesType); err != nil {
		return err
	}
	return parseMessage(f.bytes, parse)
}

func (f field) entry(to *map[string]string) error {
	var key, value string
	err := f.message(func(f field) error {
		switch f.number {
		case 1:
			return f.string(&key)
		case 2:
			return f.string(&value)
		}
		return nil
	})
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[key] = value
	if err != nil {
		return fmt.Errorf("map entry of field %d: %w", f.number, err)
	}
	return nil
}

// parseProto reads the message ClusterEndpointSlice. Unknown fields are
// skipped; a field that appears again replaces or extends what came before.
func (s *EndpointSlice) parseProto(b []byte) error {
	return parseMessage(b, func(f field) error {
		switch f.number {
		case 1:
			return f.string(&s.Cluster)
		case 2:
			s.ClusterID = uint32(f.varint)
			return f.want(protowire.VarintType)
		case 3:
			return f.string(&s.Namespace)
		case 4:
			return f.string(&s.Name)
		case 5:
			return f.entry(&s.Labels)
		case 6:
			return f.entry(&s.Annotations)
		case 7:
			return f.string(&s.AddressType)
		case 8:
			s.Endpoints = append(s.Endpoints, Endpoint{})
			return f.message(s.Endpoints[len(s.Endpoints)-1].parseField)
		case 9:
			s.Ports = append(s.Ports, EndpointPort{})
			return f.message(s.Ports[len(s.Ports)-1].parseField)
		}
		return nil
	})
}

func (e *Endpoint) parseField(f field) error {
	switch f.number {
	case 1:
		e.Addresses = append(e.Addresses, "")
		return f.string(&e.Addresses[len(e.Addresses)-1])
	case 2:
		return f.message(e.Conditions.parseField)
	case 3:
		return f.optional(&e.Hostname)
	case 5:
		return f.entry(&e.DeprecatedTopology)
	case 6:
		return f.optional(&e.NodeName)
	case 7:
		return f.optional(&e.Zone)
	case 8:
		if e.Hints == nil {
			e.Hints = &EndpointHints{}
		}
		return f.message(e.Hints.parseField)
	}
	return nil
}

func (c *EndpointConditions) parseField(f field) error {
	switch f.number {
	case 1:
		return f.bool(&c.Ready)
	case 2:
		return f.bool(&c.Serving)
	case 3:
		return f.bool(&c.Terminating)
	}
	return nil
}

func (h *EndpointHints) parseField(f field) error {
	if f.number != 1 {
		return nil
	}
	h.ForZones = append(h.ForZones, ForZone{})
	zone := &h.ForZones[len(h.ForZones)-1]
	return f.message(func(f field) error {
		if f.number != 1 {
			return nil
		}
		return f.string(&zone.Name)
	})
}

func (p *EndpointPort) parseField(f field) error {
	switch f.number {
	case 1:
		return f.optional(&p.Name)
	case 2:
		return f.optional(&p.Protocol)
	case 3:
		port := int32(f.varint)
		p.Port = &port
		return f.want(protowire.VarintType)
	case 4:
		return f.optional(&p.AppProtocol)
	}
	return nil
}
