package wire

import (
	"cmp"
	"encoding/json"
	"slices"
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
	Cluster, Name, Namespace string
	Annotations, Labels      map[string]string
	// ExportCreationTimestamp has a resolution of one second on the wire. The
	// oldest export wins a conflict.
	ExportCreationTimestamp time.Time
	Ports                   []ServiceExportPort
	Type                    string // ServiceExportClusterSetIP or ServiceExportHeadless
	SessionAffinity         string // SessionAffinityClientIP or SessionAffinityNone
	SessionAffinityConfig   *SessionAffinityConfig
	IPFamilies              []string // not checked
	InternalTrafficPolicy   *string  // nil when unset
	TrafficDistribution     *string  // nil when unset
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

// exportJSON is what is written and read. Labels and annotations are there twice: with
// capital letters for readers of version 1.18. encoding/json takes the field whose name
// matches exactly, else the first that does but for the case of its letters.
type exportJSON struct {
	Cluster                 string                 `json:"cluster"`
	Name                    string                 `json:"name"`
	Namespace               string                 `json:"namespace"`
	Annotations             map[string]string      `json:"annotations,omitempty"`
	Labels                  map[string]string      `json:"labels,omitempty"`
	LegacyLabels            map[string]string      `json:"Labels,omitempty"`
	LegacyAnnotations       map[string]string      `json:"Annotations,omitempty"`
	ExportCreationTimestamp exportTime             `json:"exportCreationTimestamp"`
	Ports                   []ServiceExportPort    `json:"ports"`
	Type                    string                 `json:"type"`
	SessionAffinity         string                 `json:"sessionAffinity"`
	SessionAffinityConfig   *SessionAffinityConfig `json:"sessionAffinityConfig,omitempty"`
	IPFamilies              []string               `json:"ipFamilies,omitempty"`
	InternalTrafficPolicy   *string                `json:"internalTrafficPolicy,omitempty"`
	TrafficDistribution     *string                `json:"trafficDistribution,omitempty"`
}

// exportTime is a time in seconds and UTC; none is null.
type exportTime struct{ time.Time }

// MarshalJSON implements [json.Marshaler].
func (t exportTime) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UTC().Format(time.RFC3339))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (t *exportTime) UnmarshalJSON(b []byte) error {
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
	return mustJSON(exportJSON{
		Cluster: s.Cluster, Name: s.Name, Namespace: s.Namespace,
		Annotations: s.Annotations, Labels: s.Labels,
		LegacyLabels: s.Labels, LegacyAnnotations: s.Annotations,
		ExportCreationTimestamp: exportTime{s.ExportCreationTimestamp},
		Ports:                   s.Ports,
		Type:                    s.Type,
		SessionAffinity:         s.SessionAffinity,
		SessionAffinityConfig:   s.SessionAffinityConfig,
		IPFamilies:              s.IPFamilies,
		InternalTrafficPolicy:   s.InternalTrafficPolicy,
		TrafficDistribution:     s.TrafficDistribution,
	})
}

// DecodeServiceExport reads the service export with this name
// ("namespace/name") and checks that it is the remote's (wire.md §1.5). The
// error is a [*RejectError]. Exports carry no cluster ID.
func DecodeServiceExport(name string, value []byte, e Expect) (*ServiceExport, error) {
	var in exportJSON
	if err := unmarshal(name, value, &in); err != nil {
		return nil, err
	}
	if len(in.Annotations) == 0 {
		in.Annotations = in.LegacyAnnotations
	}
	if len(in.Labels) == 0 {
		in.Labels = in.LegacyLabels
	}
	s := &ServiceExport{
		Cluster: in.Cluster, Name: in.Name, Namespace: in.Namespace,
		Annotations: in.Annotations, Labels: in.Labels,
		ExportCreationTimestamp: in.ExportCreationTimestamp.Time,
		Ports:                   in.Ports,
		Type:                    in.Type,
		SessionAffinity:         in.SessionAffinity,
		SessionAffinityConfig:   in.SessionAffinityConfig,
		IPFamilies:              in.IPFamilies,
		InternalTrafficPolicy:   in.InternalTrafficPolicy,
		TrafficDistribution:     in.TrafficDistribution,
	}
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
	return cmp.Or(
		oneOf("type", &s.Type, ServiceExportClusterSetIP, ServiceExportHeadless),
		oneOf("session affinity", &s.SessionAffinity, SessionAffinityClientIP, SessionAffinityNone),
		oneOf("internal traffic policy", s.InternalTrafficPolicy, InternalTrafficCluster, InternalTrafficLocal),
		oneOf("traffic distribution", s.TrafficDistribution, PreferClose, PreferSameZone, PreferSameNode),
	)
}

// oneOf rejects a value that is set to none of those allowed.
func oneOf(field string, value *string, allowed ...string) error {
	if value == nil || slices.Contains(allowed, *value) {
		return nil
	}
	return reject(ReasonValue, "%s is unknown: %s", field, *value)
}
