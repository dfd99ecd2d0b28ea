package wire

import (
	"cmp"
	"fmt"
	"net/netip"
)

// The types of addresses that a slice may hold.
const (
	AddressTypeIPv4 = "IPv4"
	AddressTypeIPv6 = "IPv6"
)

// EndpointSlice is one slice of a service's endpoints, ready or not (wire.md §1.4). The JSON names are for
// display; on the wire it is protobuf compressed with zstd.
type EndpointSlice struct {
	Cluster     string            `json:"cluster"`
	ClusterID   uint32            `json:"clusterID"`
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	AddressType string            `json:"addressType"` // AddressTypeIPv4 or AddressTypeIPv6
	Endpoints   []Endpoint        `json:"endpoints"`
	Ports       []EndpointPort    `json:"ports"`
}

// Endpoint is one endpoint, usually with one address. Pointers are nil when the field is unset.
type Endpoint struct {
	Addresses          []string           `json:"addresses"`
	Conditions         EndpointConditions `json:"conditions"`
	Hostname           *string            `json:"hostname,omitempty"`
	DeprecatedTopology map[string]string  `json:"deprecatedTopology,omitempty"`
	NodeName           *string            `json:"nodeName,omitempty"`
	Zone               *string            `json:"zone,omitempty"`
	Hints              *EndpointHints     `json:"hints,omitempty"`
}

// EndpointConditions is the state of an endpoint; nil is unknown.
type EndpointConditions struct {
	Ready       *bool `json:"ready,omitempty"`
	Serving     *bool `json:"serving,omitempty"`
	Terminating *bool `json:"terminating,omitempty"`
}

// EndpointHints has the zones for which an endpoint is meant.
type EndpointHints struct {
	ForZones []ForZone `json:"forZones,omitempty"`
}

// EndpointPort is one port of all endpoints of a slice.
type EndpointPort struct {
	Name        *string `json:"name,omitempty"`
	Protocol    *string `json:"protocol,omitempty"`
	Port        *int32  `json:"port,omitempty"`
	AppProtocol *string `json:"appProtocol,omitempty"`
}

// Key returns the slice's key in its cluster's state.
func (s *EndpointSlice) Key() string {
	return EndpointSlices.Key(s.Cluster, false, s.Namespace+"/"+s.Name)
}

// Encode returns the value to write. A [SliceEncoder] is cheaper for many slices.
func (s *EndpointSlice) Encode() []byte {
	e := NewSliceEncoder()
	defer e.Close()
	return e.Encode(s)
}

// DecodeEndpointSlice reads the slice with this name ("namespace/name") and checks that it is the remote's
// (wire.md §1.4). A value that decompresses to more than [MaxValue] is rejected. The error is a [*RejectError].
// A [SliceDecoder] is cheaper for many slices.
func DecodeEndpointSlice(name string, value []byte, e Expect) (*EndpointSlice, error) {
	if err := bounded(name, value); err != nil {
		return nil, err
	}
	return new(inflater).decode(name, value, e)
}

func (s *EndpointSlice) validate(name string, e Expect) error {
	if err := cmp.Or(required([2]string{"cluster", s.Cluster}, [2]string{"namespace", s.Namespace}, [2]string{"name", s.Name}), e.validID(s.ClusterID)); err != nil {
		return err
	}
	return cmp.Or(s.validateAddresses(), e.sameCluster(s.Cluster), sameNamespacedName(s.Namespace, s.Name, name), e.sameID(s.ClusterID), s.CheckNames())
}

// CheckNames checks all texts except the addresses, as [DecodeEndpointSlice] does. An invalid zone or host name
// is left out. The error is a [*RejectError].
func (s *EndpointSlice) CheckNames() error {
	var c checks
	c.label("the namespace", s.Namespace)
	c.name("the name", s.Name, isSubdomain, ruleSubdomain)
	c.labels("label", s.Labels)
	c.optional("the service", s.Labels[LabelServiceName], isLabel, ruleLabel)
	c.annotations(s.Annotations)
	for i := range s.Ports {
		p := &s.Ports[i]
		c.optional("the port name", textOf(p.Name), isLabel, ruleLabel)
		c.token("the protocol", textOf(p.Protocol))
		c.optional("the application protocol", textOf(p.AppProtocol), isQualified, ruleQualified)
	}
	for i := range s.Endpoints {
		c.endpoint(&s.Endpoints[i])
	}
	return c.err
}

func (c *checks) endpoint(e *Endpoint) {
	c.host(e.Hostname)
	c.optional("the node name", textOf(e.NodeName), isNode, ruleNode)
	c.labels("topology label", e.DeprecatedTopology)
	c.zone(e.Zone)
	if e.Hints != nil {
		for i := range e.Hints.ForZones {
			c.zone(&e.Hints.ForZones[i].Name)
		}
	}
}

// textOf returns a text that may be unset; unset is empty.
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (s *EndpointSlice) validateAddresses() error {
	if s.AddressType != AddressTypeIPv4 && s.AddressType != AddressTypeIPv6 {
		return &RejectError{Reason: ReasonValue, Err: fmt.Errorf("address type is invalid")}
	}
	for i := range s.Endpoints {
		for _, text := range s.Endpoints[i].Addresses {
			addr, err := netip.ParseAddr(text)
			if err != nil || addr.Zone() != "" || addr.Is4() != (s.AddressType == AddressTypeIPv4) {
				return reject(ReasonAddress, "invalid %s endpoint address: %s", s.AddressType, text)
			}
		}
	}
	return nil
}
