package wire

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
)

// Service is a service as a cluster exports it, in the older of the two formats, which is the one in use
// (wire.md §1.3).
type Service struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Frontends are the cluster IPs; agents ignore them. Empty for headless services.
	Frontends map[string]Ports `json:"frontends"`
	// Backends are the endpoints that are ready or serving. The keys of both
	// maps are IP addresses (checked).
	Backends map[string]Ports `json:"backends"`
	// Hostnames and Zones are keyed like Backends, but their keys are not checked.
	Hostnames       map[string]string `json:"hostnames,omitempty"`
	Zones           map[string]Zone   `json:"zones,omitempty"`
	Labels          map[string]string `json:"labels"`
	Selector        map[string]string `json:"selector"`
	IncludeExternal bool              `json:"includeExternal"` // readers ignore it
	Shared          bool              `json:"shared"`          // false: readers treat the service as absent
	ClusterID       uint32            `json:"clusterID"`
}

// Ports are the ports of one address by name; the unnamed port's name is empty. A value may be nil.
type Ports map[string]*L4

// L4 is a protocol (TCP, UDP, SCTP; not checked) with a port.
type L4 struct {
	Protocol string
	Port     uint16
}

// Zone has the zone of a backend, and the zones for which it is meant.
type Zone struct {
	Zone     string    `json:"zone"`
	ForZones []ForZone `json:"forZones"`
}

// ForZone names a zone in a topology hint.
type ForZone struct {
	Name string `json:"name"`
}

// Key returns the service's key in its cluster's state.
func (s *Service) Key() string { return Services.Key(s.Cluster, false, s.Namespace+"/"+s.Name) }

// Encode returns the value to write. Maps that are nil are written as null;
// Cilium's own writers write empty maps.
func (s *Service) Encode() []byte { return mustJSON(s) }

// DecodeService reads the service with this name ("namespace/name") and checks that it is the
// remote's (wire.md §1.3). The error is a [*RejectError]. Maps that the value does not mention are
// empty, maps that are null are nil. Addresses with the same ports may share one map of them.
func DecodeService(name string, value []byte, e Expect) (*Service, error) {
	if err := bounded(name, value); err != nil {
		return nil, err
	}
	s, err := parseService(value)
	if err != nil {
		return nil, err
	}
	if err := s.validate(name, e); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Service) validate(name string, e Expect) error {
	if err := cmp.Or(required([2]string{"cluster", s.Cluster}, [2]string{"namespace", s.Namespace}, [2]string{"name", s.Name}), e.validID(s.ClusterID)); err != nil {
		return err
	}
	if err := cmp.Or(validAddresses(s.Frontends), validAddresses(s.Backends)); err != nil {
		return &RejectError{Reason: ReasonAddress, Err: err}
	}
	return cmp.Or(e.sameCluster(s.Cluster), sameNamespacedName(s.Namespace, s.Name, name), e.sameID(s.ClusterID), s.CheckNames())
}

// CheckNames checks all texts except the addresses, as [DecodeService] does. It also checks a service that was
// not decoded, before clients can read it. An invalid zone or host name is left out. The error is a
// [*RejectError].
func (s *Service) CheckNames() error {
	var c checks
	c.label("the namespace", s.Namespace)
	c.label("the name", s.Name)
	c.labels("label", s.Labels)
	c.labels("selector", s.Selector)
	c.ports(s.Frontends)
	c.ports(s.Backends)
	c.least(s.Hostnames, func(one *checks, address, host string) {
		if one.host(&host) {
			delete(s.Hostnames, address)
		}
	})
	for address, zone := range s.Zones {
		if c.zone(&zone.Zone) {
			s.Zones[address] = zone
		}
		for i := range zone.ForZones {
			c.zone(&zone.ForZones[i].Name)
		}
	}
	return c.err
}

// ports checks the names and protocols of ports. Most addresses share one map of ports.
func (c *checks) ports(m map[string]Ports) {
	var last uintptr
	for _, ports := range m {
		if at := reflect.ValueOf(ports).Pointer(); at != last {
			last = at
			c.portsOfOne(ports)
		}
	}
}

func (c *checks) portsOfOne(ports Ports) {
	for name, port := range ports {
		c.optional("the port name", name, isLabel, ruleLabel)
		if port != nil {
			c.token("the protocol", port.Protocol)
		}
	}
}

// validAddresses checks the keys of a map. It reports the least of the bad
// ones, so that the same value always gives the same error.
func validAddresses(m map[string]Ports) error {
	var bad string
	var found error
	for key := range m {
		if found != nil && key >= bad {
			continue // another error would cost memory
		}
		if err := validAddress(key); err != nil {
			bad, found = key, err
		}
	}
	return found
}

func validAddress(s string) error {
	addr, err := netip.ParseAddr(s)
	if err == nil && addr.Zone() != "" {
		err = fmt.Errorf("unsupported IPv6 zone in address %s", s)
	}
	return err
}
