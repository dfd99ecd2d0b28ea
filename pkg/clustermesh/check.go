package clustermesh

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// What would become of an entry of the mesh directory.
const (
	CheckConnect = "connect" // its cluster would be connected
	CheckFail    = "fail"    // its cluster would be there, and fail
	CheckIgnore  = "ignore"  // it is no remote cluster's
)

// Checked is what a mesh directory is, as far as can be told without asking
// anybody.
type Checked struct {
	Directory  string        `json:"directory"`
	OwnCluster string        `json:"ownCluster"`
	Files      []CheckedFile `json:"files"`    // every entry, sorted by name
	Errors     int           `json:"errors"`   // of all files
	Warnings   int           `json:"warnings"` // of all files
}

// CheckedFile is one entry of a mesh directory.
type CheckedFile struct {
	File    string `json:"file"`
	Cluster string `json:"cluster,omitempty"` // empty for what is ignored
	Verdict string `json:"verdict"`           // one of the Check constants
	Reason  string `json:"reason,omitempty"`  // why it is ignored
	// Endpoints, User and CertificateExpires are known of a file that can be
	// read; the last one only with a client certificate.
	Endpoints          []CheckedEndpoint `json:"endpoints,omitempty"`
	User               string            `json:"user,omitempty"`
	CertificateExpires *time.Time        `json:"certificateExpires,omitempty"`

	Errors   []string `json:"errors"`   // what keeps it from ever working
	Warnings []string `json:"warnings"` // what is dangerous, or will not work for long
	Notes    []string `json:"notes"`    // what may be meant so
}

// CheckedEndpoint is where a cluster's etcd is.
type CheckedEndpoint struct {
	URL string `json:"url"`
	TLS bool   `json:"tls"`
}

// Check examines every entry of a mesh directory at a moment, with the same
// eyes as a running agent, and connects to nothing. own is the name of the own
// cluster. It fails when the directory cannot be read.
func Check(dir, own string, now time.Time) (*Checked, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the mesh directory: %w", err)
	}
	c := &Checked{Directory: dir, OwnCluster: own, Files: []CheckedFile{}}
	same := make(map[[32]byte]string) // the first file with these contents
	for _, e := range entries {
		f := checkEntry(examine(dir, e.Name(), own), now, same)
		c.Errors += len(f.Errors)
		c.Warnings += len(f.Warnings)
		c.Files = append(c.Files, f)
	}
	return c, nil
}

func checkEntry(e entry, now time.Time, same map[[32]byte]string) CheckedFile {
	f := CheckedFile{File: e.path, Verdict: CheckIgnore, Errors: []string{}, Warnings: []string{}, Notes: []string{}}
	if e.reason != nil {
		f.Reason = e.reason.Error()
	}
	switch e.verdict {
	case verdictOwn, verdictOther:
		return f
	case verdictMisnamed:
		f.fault("%v: rename the file to its cluster", e.reason)
		return f
	case verdictUnreadable:
		f.Cluster, f.Verdict, f.Reason = e.name, CheckFail, ""
		f.fault("%v", e.reason)
		return f
	case verdictClient:
	}
	f.Cluster, f.Verdict = e.name, CheckConnect
	f.checkClient(e.path, now)
	hash := kvstore.HashContent(e.content)
	if other := same[hash]; other != "" {
		f.note("the same contents as %s: right when both clusters are cached in one etcd (KVStoreMesh), else one of them is a copy by mistake", other)
	} else {
		same[hash] = filepath.Base(e.path)
	}
	if len(f.Errors) > 0 {
		f.Verdict = CheckFail
	}
	return f
}

func (f *CheckedFile) fault(format string, args ...any) {
	f.Errors = append(f.Errors, fmt.Sprintf(format, args...))
}

func (f *CheckedFile) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

func (f *CheckedFile) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}
