package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// The values that fields of a service export may have (wire.md §1.5).
const (
	ServiceExportClusterSetIP = "ClusterSetIP"
	ServiceExportHeadless     = "Headless"

	SessionAffinityClientIP = "ClientIP"
	SessionAffinityNone     = "None"

	InternalTrafficCluster = "Cluster"
	InternalTrafficLocal   = "Local"

	PreferClose    = "PreferClose"
	PreferSameZone = "PreferSameZone"
	PreferSameNode = "PreferSameNode"
)

// ServiceExport is a service exported through the MCS API (wire.md §1.5).
type ServiceExport struct {
	Cluster     string            `json:"cluster"`
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	inCapitals
	// ExportCreationTimestamp decides conflicts: the oldest export wins.
	ExportCreationTimestamp ExportTime             `json:"exportCreationTimestamp"`
	Ports                   []ServiceExportPort    `json:"ports"`
	Type                    string                 `json:"type"`            // ServiceExportClusterSetIP or ServiceExportHeadless
	SessionAffinity         string                 `json:"sessionAffinity"` // SessionAffinityClientIP or SessionAffinityNone
	SessionAffinityConfig   *SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`
	IPFamilies              []string               `json:"ipFamilies,omitempty"`            // not checked
	InternalTrafficPolicy   *string                `json:"internalTrafficPolicy,omitempty"` // nil when unset
	TrafficDistribution     *string                `json:"trafficDistribution,omitempty"`   // nil when unset
}

// inCapitals exists only on the wire: the labels and annotations a second time, for readers of version 1.18.
// encoding/json takes the field whose name matches exactly, else the first that matches in another letter case.
type inCapitals struct {
	LegacyLabels      map[string]string `json:"Labels,omitempty"`
	LegacyAnnotations map[string]string `json:"Annotations,omitempty"`
}

// DerivedServiceName returns the name of the derived Service: each cluster that imports a service through the
// MCS API has one in the same namespace (mcs.md B). Its cluster IPs are the addresses of the import.
func DerivedServiceName(namespace, name string) string {
	const length = 10
	hash := sha256.Sum256([]byte(namespace + "/" + name))
	return "derived-" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(hash[:]))[:length]
}

// ServiceExportPort is one port of an exported service.
type ServiceExportPort struct {
	Name        string  `json:"name,omitempty"`
	Protocol    string  `json:"protocol,omitempty"`
	AppProtocol *string `json:"appProtocol,omitempty"`
	Port        int32   `json:"port"`
}

// SessionAffinityConfig configures the affinity of clients.
type SessionAffinityConfig struct {
	ClientIP *ClientIPConfig `json:"clientIP,omitempty"`
}

// ClientIPConfig configures affinity by client address.
type ClientIPConfig struct {
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`
}

// ExportTime is a time in seconds and UTC; the zero time is null.
type ExportTime struct{ time.Time }

// MarshalJSON implements [json.Marshaler].
func (t ExportTime) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UTC().Format(time.RFC3339))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *ExportTime) UnmarshalJSON(b []byte) error {
	var text *string
	err := json.Unmarshal(b, &text)
	t.Time = time.Time{}
	if err == nil && text != nil {
		t.Time, err = time.Parse(time.RFC3339, *text)
	}
	return err
}

// Key returns the export's key in its cluster's state.
func (s *ServiceExport) Key() string {
	return ServiceExports.Key(s.Cluster, false, s.Namespace+"/"+s.Name)
}

// Encode returns the value to write.
func (s *ServiceExport) Encode() []byte {
	written := *s
	written.inCapitals = inCapitals{s.Labels, s.Annotations}
	return mustJSON(written)
}

// DecodeServiceExport reads the service export with this name ("namespace/name") and checks that it
// is the remote's (wire.md §1.5). The error is a [*RejectError]. Exports carry no cluster ID.
func DecodeServiceExport(name string, value []byte, e Expect) (*ServiceExport, error) {
	s := new(ServiceExport)
	if err := unmarshal(name, value, s); err != nil {
		return nil, err
	}
	if len(s.Annotations) == 0 {
		s.Annotations = s.LegacyAnnotations
	}
	if len(s.Labels) == 0 {
		s.Labels = s.LegacyLabels
	}
	s.inCapitals = inCapitals{}
	if err := s.validate(); err != nil {
		return nil, err
	}
	if err := cmp.Or(e.sameCluster(s.Cluster), sameNamespacedName(s.Namespace, s.Name, name)); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *ServiceExport) validate() error {
	if err := cmp.Or(within(
		amount{len(s.Ports), maxPorts, "ports"},
		amount{len(s.Labels), maxLabels, "labels"},
		amount{len(s.Annotations), maxLabels, "annotations"},
		amount{len(s.IPFamilies), maxIPFamilies, "IP families"},
	), required([2]string{"cluster", s.Cluster}, [2]string{"name", s.Name}, [2]string{"namespace", s.Namespace})); err != nil {
		return err
	}
	if s.ExportCreationTimestamp.IsZero() {
		return reject(ReasonMissing, "exportCreationTimestamp is unset")
	}
	if err := s.CheckNames(); err != nil {
		return err
	}
	return cmp.Or(
		oneOf("type", &s.Type, ServiceExportClusterSetIP, ServiceExportHeadless),
		oneOf("session affinity", &s.SessionAffinity, SessionAffinityClientIP, SessionAffinityNone),
		oneOf("internal traffic policy", s.InternalTrafficPolicy, InternalTrafficCluster, InternalTrafficLocal),
		oneOf("traffic distribution", s.TrafficDistribution, PreferClose, PreferSameZone, PreferSameNode),
	)
}

// CheckNames checks all texts except those with a fixed set of values, as [DecodeServiceExport] does. The error
// is a [*RejectError].
func (s *ServiceExport) CheckNames() error {
	var c checks
	c.label("the namespace", s.Namespace)
	c.label("the name", s.Name)
	c.texts("label", s.Labels)
	c.annotations(s.Annotations)
	for i := range s.Ports {
		p := &s.Ports[i]
		c.optional("the port name", p.Name, isLabel, ruleLabel)
		c.token("the protocol", p.Protocol)
		c.optional("the application protocol", textOf(p.AppProtocol), isQualified, ruleQualified)
	}
	for _, family := range s.IPFamilies {
		c.token("the address family", family)
	}
	return c.err
}

// oneOf rejects a value that is set and not allowed.
func oneOf(field string, value *string, allowed ...string) error {
	if value == nil || slices.Contains(allowed, *value) {
		return nil
	}
	return reject(ReasonValue, "%s is unknown: %.80s", field, *value)
}
