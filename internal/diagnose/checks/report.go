// Package checks finds the problems of a mesh directory before it is applied: [Directory] looks at its files as a
// running agent would and connects to nothing, [Report.Connect] asks the servers behind them, and [Report.Compare]
// reports the changes that the directory would cause in a running agent. [Report.JUnit] writes a report for programs
// that collect the results of tests.
//
// Content that the agent's own code refuses is an error, in the words of that code; the other findings are about
// content that it accepts. Every finding has a code (package codes).
//
// # Concurrency
//
// A [Report] belongs to one goroutine. Connect checks all files side by side and
// returns after every goroutine that it started.
//
// # Failure
//
// Only a directory that cannot be read is an error; everything else is a finding.
//
// # Design
//
// The offline checks use the agent's own code, the directory's scan and the client file's reader; this package adds
// only checks of content that they accept (dates, modes, plain text). Connect is package troubleshoot for each file.
// Compare uses /v1/status: it compares contents by the agent's hash of the file and of the files that it names, as
// the agent has read them (configHash), with a key that the agent gives over the unix socket only.
package checks

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/natural"
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// The effect of an entry of the mesh directory.
const (
	WouldConnect = "connect" // its cluster would be connected
	WouldFail    = "fail"    // its cluster would be there, and fail
	WouldIgnore  = "ignore"  // it is no remote cluster's
)

// Report is the result of the check of a mesh directory.
type Report struct {
	Directory  string `json:"directory"`
	OwnCluster string `json:"ownCluster"`
	Files      []File `json:"files"` // every entry, in the natural order of names
	// Findings are those of the directory as a whole.
	Findings []codes.Finding `json:"findings"`
	// Errors, Warnings and Notes count all findings.
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Notes    int `json:"notes"`
	// Connected reports whether the servers were asked.
	Connected bool  `json:"connected"`
	Diff      *Diff `json:"diff,omitempty"` // nil when no agent was asked
}

// File is one entry of a mesh directory.
type File struct {
	File    string `json:"file"`
	Cluster string `json:"cluster,omitempty"` // empty for an ignored file
	Verdict string `json:"verdict"`           // one of the Would constants
	Reason  string `json:"reason,omitempty"`  // why it is ignored
	// Endpoints, User and CertificateExpires are known of a file that can be
	// read; the last one only with a client certificate.
	Endpoints          []Endpoint `json:"endpoints,omitempty"`
	User               string     `json:"user,omitempty"`
	CertificateExpires *time.Time `json:"certificateExpires,omitempty"`
	// ContentHash tells contents apart within the report, with a key of its own
	// ([clientfile.KeyedHash]): those of the file and of the authorities, certificate and
	// key that it names. Empty when the file cannot be read.
	ContentHash string `json:"contentHash,omitempty"`
	contents    string // the hash without a key, which is never shown
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

func (r *Report) add(code codes.Code, message string) {
	r.Findings = append(r.Findings, code.Found(message, ""))
}

// add adds a finding. Without a remedy of its own it has that of its code.
func (f *File) add(code codes.Code, message, remedy string) {
	found := code.Found(message, remedy)
	found.Remedy = codes.Cluster(f.Cluster).Fill(found.Remedy)
	f.Findings = append(f.Findings, found)
}

func (f *File) has(code codes.Code) bool {
	return slices.ContainsFunc(f.Findings, func(found codes.Finding) bool { return found.Code == code })
}

func isFailure(f codes.Finding, strict bool) bool {
	return f.Severity == codes.Error || strict && f.Severity == codes.Warning
}

func fails(findings []codes.Finding, strict bool) bool {
	return slices.ContainsFunc(findings, func(f codes.Finding) bool { return isFailure(f, strict) })
}

func (r *Report) count() {
	n := make(map[codes.Severity]int)
	for _, findings := range append([]File{{Findings: r.Findings}}, r.Files...) {
		for _, f := range findings.Findings {
			n[f.Severity]++
		}
	}
	r.Errors, r.Warnings, r.Notes = n[codes.Error], n[codes.Warning], n[codes.Info]
}

// Directory examines every entry of a mesh directory at a moment, with the same
// eyes as a running agent, and connects to nothing. own is the name of the own
// cluster. It fails when the directory cannot be read.
func Directory(dir, own string, now time.Time) (*Report, error) {
	entries, err := clustermesh.Entries(dir, own)
	if err != nil {
		return nil, err
	}
	r := &Report{Directory: dir, OwnCluster: own, Files: []File{}, Findings: []codes.Finding{}}
	slices.SortFunc(entries, func(a, b clustermesh.Entry) int { return natural.Compare(a.Name, b.Name) })
	key := clientfile.NewKey()
	same := make(map[string]string) // the first file with these contents
	for _, e := range entries {
		f := examined(e, own, now)
		f.ContentHash = clientfile.KeyedHash(key, f.contents)
		if other := same[f.contents]; f.contents != "" && other != "" {
			f.add(codes.SameContents, "it has the same contents as "+other, "")
		}
		same[f.contents] = cmp.Or(same[f.contents], e.Name)
		r.Files = append(r.Files, f)
	}
	r.misspelt(own)
	r.count()
	return r, nil
}

// examined returns an entry with its findings.
func examined(e clustermesh.Entry, own string, now time.Time) File {
	f := File{File: e.Path, Verdict: WouldIgnore, Findings: []codes.Finding{}}
	if e.Reason != nil {
		f.Reason = e.Reason.Error()
	}
	switch e.Verdict {
	case clustermesh.EntryOther:
	case clustermesh.EntryOwn:
		f.add(codes.OwnClusterFile, f.Reason, "")
	case clustermesh.EntryMisnamed:
		f.add(codes.ClientFileMisnamed, f.Reason, "")
	case clustermesh.EntryOverlooked:
		f.add(codes.ClientFileOverlooked, f.Reason, "")
	case clustermesh.EntryUnreadable:
		f.Cluster, f.Verdict, f.Reason = e.Name, WouldFail, ""
		f.add(cmp.Or(hint.Code(e.Reason), codes.ClientFileUnreadable), e.Reason.Error(), hint.Text(e.Reason))
	case clustermesh.EntryClient:
		f.Cluster, f.Verdict = e.Name, WouldConnect
		f.contents = fmt.Sprintf("%x", clientfile.FingerprintContent(e.Content))
		f.client(e.Path, own, now)
		if n := clientfile.Documents(e.Content); n > 1 {
			f.add(codes.SeveralDocuments, fmt.Sprintf("it has %d YAML documents, and only the first one counts", n), "")
		}
		if fails(f.Findings, false) {
			f.Verdict = WouldFail
		}
	}
	return f
}

// misspelt looks for names that are those of a cluster but for upper case: to
// rename these files is no remedy.
func (r *Report) misspelt(own string) {
	clusters := []string{own}
	for _, f := range r.Files {
		if f.Cluster != "" {
			clusters = append(clusters, f.Cluster)
		}
	}
	for i := range r.Files {
		f := &r.Files[i]
		name := filepath.Base(f.File)
		if lower := strings.ToLower(name); lower != name && f.has(codes.ClientFileMisnamed) && slices.Contains(clusters, lower) {
			f.Findings = []codes.Finding{codes.NamesDifferInCase.Found(fmt.Sprintf("there is a cluster %s too: %s", lower, f.Reason), "")}
		}
	}
}
