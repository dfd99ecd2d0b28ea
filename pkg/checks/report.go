package checks

import (
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// What would become of an entry of the mesh directory.
const (
	WouldConnect = "connect" // its cluster would be connected
	WouldFail    = "fail"    // its cluster would be there, and fail
	WouldIgnore  = "ignore"  // it is no remote cluster's
)

// Report is what a mesh directory is.
type Report struct {
	Directory  string `json:"directory"`
	OwnCluster string `json:"ownCluster"`
	Files      []File `json:"files"` // every entry, sorted by name
	// Findings are those of the directory as a whole.
	Findings []codes.Finding `json:"findings"`
	// Errors, Warnings and Notes count all findings.
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
	// Connected tells whether the servers were asked.
	Connected bool  `json:"connected"`
	Diff      *Diff `json:"diff,omitempty"` // nil when no agent was asked
}

// File is one entry of a mesh directory.
type File struct {
	File    string `json:"file"`
	Cluster string `json:"cluster,omitempty"` // empty for what is ignored
	Verdict string `json:"verdict"`           // one of the Would constants
	Reason  string `json:"reason,omitempty"`  // why it is ignored
	// Endpoints, User and CertificateExpires are known of a file that can be
	// read; the last one only with a client certificate.
	Endpoints          []Endpoint `json:"endpoints,omitempty"`
	User               string     `json:"user,omitempty"`
	CertificateExpires *time.Time `json:"certificateExpires,omitempty"`
	// ContentHash tells contents apart within the report, with a key of its own
	// ([api.KeyedHash]): those of the file and of the authorities, certificate and
	// key that it names. Empty when the file cannot be read.
	ContentHash string `json:"contentHash,omitempty"`
	contents    string // the hash without a key, which is shown to nobody
	// ClusterID and EtcdClusterID are what the server says, when it was asked.
	ClusterID     uint32 `json:"clusterID,omitempty"`
	EtcdClusterID string `json:"etcdClusterID,omitempty"`

	Findings []codes.Finding `json:"findings"`
}

// Endpoint is where a cluster's etcd is.
type Endpoint struct {
	URL string `json:"url"`
	TLS bool   `json:"tls"`
}

// add adds a finding of the directory.
func (r *Report) add(code codes.Code, message string) {
	r.Findings = append(r.Findings, code.Found(message, ""))
}

// add adds a finding. Without a remedy of its own it has that of its code.
func (f *File) add(code codes.Code, message, remedy string) {
	f.Findings = append(f.Findings, code.Found(message, remedy))
}

// has tells whether the finding is there already.
func (f *File) has(code codes.Code) bool {
	return slices.ContainsFunc(f.Findings, func(found codes.Finding) bool { return found.Code == code })
}

// isFailure tells whether a finding is an error, or with strict a warning.
func isFailure(f codes.Finding, strict bool) bool {
	return f.Severity == codes.Error || strict && f.Severity == codes.Warning
}

// fails tells whether one of the findings is a failure.
func fails(findings []codes.Finding, strict bool) bool {
	return slices.ContainsFunc(findings, func(f codes.Finding) bool { return isFailure(f, strict) })
}

// count sets the counters.
func (r *Report) count() {
	n := make(map[codes.Severity]int)
	for _, findings := range append([]File{{Findings: r.Findings}}, r.Files...) {
		for _, f := range findings.Findings {
			n[f.Severity]++
		}
	}
	r.Errors, r.Warnings, r.Notes = n[codes.Error], n[codes.Warning], n[codes.Info]
}
