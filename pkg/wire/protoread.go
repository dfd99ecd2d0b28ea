package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// The memory of the parts of an endpoint slice, including what pkg/services keeps of them. Each is an upper
// bound, without the texts.
const (
	costEndpoint     = 96
	costFirstAddress = 56 // of an endpoint
	costMoreAddress  = 96 // as their list grows
	costPointer      = 16
	costInterned     = 240 // a text that services keeps once for all slices
	costEndpointPort = 80
	costMapEntry     = 190
	costSliceLabel   = 56 // in services, where it is packed
	costHints        = 24
	costHint         = 64
	costScalar       = 8
)

// sliceReader reads one endpoint slice. It charges all parts that it builds.
type sliceReader struct {
	meter
	slice *EndpointSlice
	// Endpoints share their zones, and often their nodes.
	nodes, zones, others recent
}

// recent holds the texts that were read last.
type recent struct {
	texts [8]*string
	next  int
}

func (r *recent) find(text []byte) *string {
	for _, known := range r.texts {
		if known != nil && *known == string(text) {
			return known
		}
	}
	return nil
}

func (r *recent) add(text *string) {
	r.texts[r.next] = text
	r.next = (r.next + 1) % len(r.texts)
}

// parseProto reads the message ClusterEndpointSlice. Unknown fields are skipped; a repeated field replaces or
// extends the earlier one. Equal texts of endpoints may share their memory.
func (s *EndpointSlice) parseProto(b []byte) error {
	r := sliceReader{meter: newMeter(len(b)), slice: s}
	if err := r.reserve(b); err != nil {
		return err
	}
	return parseMessage(b, r.field)
}

// reserve allocates the lists of endpoints and ports, whose elements are counted first: lists that grow take
// several times as much memory.
func (r *sliceReader) reserve(b []byte) error {
	var endpoints, ports int
	err := parseMessage(b, func(f field) error {
		switch f.number {
		case 8:
			endpoints++
		case 9:
			ports++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := within(amount{endpoints, maxEndpoints, "endpoints"}, amount{ports, maxPorts, "ports"}); err != nil {
		return err
	}
	if err := r.take(endpoints*costEndpoint + ports*costEndpointPort); err != nil {
		return err
	}
	if endpoints > 0 {
		r.slice.Endpoints = make([]Endpoint, 0, endpoints)
	}
	if ports > 0 {
		r.slice.Ports = make([]EndpointPort, 0, ports)
	}
	return nil
}

func (r *sliceReader) field(f field) error {
	s := r.slice
	switch f.number {
	case 1:
		return r.string(f, &s.Cluster)
	case 2:
		s.ClusterID = uint32(f.varint)
		return f.want(protowire.VarintType)
	case 3:
		return r.string(f, &s.Namespace)
	case 4:
		return r.string(f, &s.Name)
	case 5:
		if err := r.take(costSliceLabel + 2*len(f.bytes)); err != nil {
			return err
		}
		return r.entry(f, &s.Labels, "labels")
	case 6:
		return r.entry(f, &s.Annotations, "annotations")
	case 7:
		return r.string(f, &s.AddressType)
	case 8:
		s.Endpoints = append(s.Endpoints, Endpoint{})
		e := &s.Endpoints[len(s.Endpoints)-1]
		return f.message(func(f field) error { return r.endpoint(e, f) })
	case 9:
		s.Ports = append(s.Ports, EndpointPort{})
		p := &s.Ports[len(s.Ports)-1]
		return f.message(func(f field) error { return r.port(p, f) })
	}
	return nil
}

func (r *sliceReader) endpoint(e *Endpoint, f field) error {
	switch f.number {
	case 1:
		return r.address(e, f)
	case 2:
		return f.message(func(f field) error { return r.condition(&e.Conditions, f) })
	case 3:
		return r.text(f, &e.Hostname)
	case 5:
		return r.entry(f, &e.DeprecatedTopology, "topology labels of one endpoint")
	case 6:
		return r.optional(f, &e.NodeName, &r.nodes, costPointer+costInterned)
	case 7:
		return r.optional(f, &e.Zone, &r.zones, costPointer+costInterned)
	case 8:
		if e.Hints == nil {
			if err := r.take(costHints); err != nil {
				return err
			}
			e.Hints = &EndpointHints{}
		}
		return f.message(func(f field) error { return r.hint(e.Hints, f) })
	}
	return nil
}

func (r *sliceReader) address(e *Endpoint, f field) error {
	cost := costFirstAddress
	if len(e.Addresses) > 0 {
		cost = costMoreAddress
	}
	if err := r.take(cost); err != nil {
		return err
	}
	if err := atMost(maxAddresses, len(e.Addresses)+1, "addresses of one endpoint"); err != nil {
		return err
	}
	e.Addresses = append(e.Addresses, "")
	return r.string(f, &e.Addresses[len(e.Addresses)-1])
}

func (r *sliceReader) condition(c *EndpointConditions, f field) error {
	switch f.number {
	case 1:
		return r.bool(f, &c.Ready)
	case 2:
		return r.bool(f, &c.Serving)
	case 3:
		return r.bool(f, &c.Terminating)
	}
	return nil
}

func (r *sliceReader) hint(h *EndpointHints, f field) error {
	if f.number != 1 {
		return nil
	}
	if err := r.take(costHint); err != nil {
		return err
	}
	if err := atMost(maxHintedZones, len(h.ForZones)+1, "zones in the hints of one endpoint"); err != nil {
		return err
	}
	h.ForZones = append(h.ForZones, ForZone{})
	zone := &h.ForZones[len(h.ForZones)-1]
	return f.message(func(f field) error {
		if f.number != 1 {
			return nil
		}
		return r.string(f, &zone.Name)
	})
}

func (r *sliceReader) port(p *EndpointPort, f field) error {
	switch f.number {
	case 1:
		return r.text(f, &p.Name)
	case 2:
		return r.text(f, &p.Protocol)
	case 3:
		if err := r.take(costScalar); err != nil {
			return err
		}
		port := int32(f.varint)
		p.Port = &port
		return f.want(protowire.VarintType)
	case 4:
		return r.text(f, &p.AppProtocol)
	}
	return nil
}

// string reads a text. A text that is equal to the previous one of the field is not allocated again.
func (r *sliceReader) string(f field, to *string) error {
	if *to != string(f.bytes) {
		if err := r.take(costText(len(f.bytes))); err != nil {
			return err
		}
		*to = string(f.bytes)
	}
	return f.want(protowire.BytesType)
}

// text reads a text that may be absent.
func (r *sliceReader) text(f field, to **string) error {
	return r.optional(f, to, &r.others, costPointer)
}

// optional reads a text that may be absent, and is often one of the recent texts. A new one has a cost in
// addition to its bytes.
func (r *sliceReader) optional(f field, to **string, among *recent, cost int) error {
	if err := f.want(protowire.BytesType); err != nil {
		return err
	}
	if *to = among.find(f.bytes); *to != nil {
		return nil
	}
	if err := r.take(cost + costText(len(f.bytes))); err != nil {
		return err
	}
	text := string(f.bytes)
	*to = &text
	among.add(&text)
	return nil
}

func (r *sliceReader) bool(f field, to **bool) error {
	if err := r.take(costScalar); err != nil {
		return err
	}
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

// entry reads an entry of a map; what names the entries in the error when there are too many.
func (r *sliceReader) entry(f field, to *map[string]string, what string) error {
	if err := r.take(costMapEntry); err != nil {
		return err
	}
	var key, value string
	err := f.message(func(f field) error {
		switch f.number {
		case 1:
			return r.string(f, &key)
		case 2:
			return r.string(f, &value)
		}
		return nil
	})
	if *to == nil {
		if err := r.take(costMapEntry); err != nil {
			return err
		}
		*to = map[string]string{}
	}
	(*to)[key] = value
	if err != nil {
		return fmt.Errorf("map entry of field %d: %w", f.number, err)
	}
	return atMost(maxLabels, len(*to), what)
}
