// Package codes is the registry of findings: each fact about a mesh that an operator or user may have to act on has a
// [Code], and the registry describes it. Events, conflicts, states of clusters, verdicts, checks and lines of the log
// carry the codes; 'mesh-agent explain' and docs/codes.md are made from it.
//
// A code is never given to another finding: the number of a finding that no longer exists is not used again. The first
// digit is the subject: 1 clusters, 2 services, 3 addresses, 4 identities, 5 nodes, 6 configurations, 7 the agent
// itself.
//
// The registry is the text in codes.txt. The constants and docs/codes.md are generated from it; a test fails when they
// are out of date.
package codes

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:generate go test . -run TestGenerated -update

// Code is the permanent identifier of a finding, as in MESH-2104.
type Code string

// Severity is the severity of a finding.
type Severity string

// The severities.
const (
	Info    Severity = "info"    // no action is required
	Warning Severity = "warning" // it works, but an operator should look
	Error   Severity = "error"   // something does not work until an operator acts
)

// Entry is one finding.
type Entry struct {
	Code     Code     `json:"code"`
	Name     string   `json:"-"`     // of its constant
	Title    string   `json:"title"` // the fact, in a few words
	Severity Severity `json:"severity"`
	Owner    Owner    `json:"-"`
	Cause    string   `json:"cause"`  // when it is reported, and its meaning
	Remedy   string   `json:"remedy"` // how to solve it
}

// All returns every finding, sorted by code.
func All() []Entry { return slices.Clone(registry()) }

// Find returns a finding. The code may be written in any case, and without the
// letters before its number.
func Find(code string) (Entry, bool) {
	full := Code(prefix + strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(code)), prefix))
	all := registry()
	i, found := slices.BinarySearchFunc(all, full, func(e Entry, code Code) int { return strings.Compare(string(e.Code), string(code)) })
	if !found {
		return Entry{}, false
	}
	return all[i], true
}

// Severities returns the severity of each finding. It builds a new map: frequent callers keep the result.
func Severities() map[Code]Severity {
	all := make(map[Code]Severity)
	for _, e := range registry() {
		all[e.Code] = e.Severity
	}
	return all
}

const prefix = "MESH-"

//go:embed codes.txt
var text string

// registry has the entries of codes.txt, which it parses at the first call. Callers must not change them.
var registry = sync.OnceValue(func() []Entry {
	all, err := parse(text)
	if err != nil {
		panic(err) // the text is part of the program, and a test reads it
	}
	return all
})

// parse parses the format that codes.txt describes.
func parse(text string) ([]Entry, error) {
	_, text, _ = strings.Cut(text, "\n-- ")
	var all []Entry
	for entry := range strings.SplitSeq(text, "\n-- ") {
		lines := strings.Split(strings.TrimSpace(entry), "\n")
		header := strings.Fields(lines[0])
		if len(header) != 5 || header[4] != "--" || len(lines) != 4 {
			return nil, fmt.Errorf("codes.txt: %q is no entry", entry)
		}
		all = append(all, Entry{
			Code: Code(header[0]), Name: header[1], Severity: Severity(header[2]), Owner: Owner(header[3]),
			Title: lines[1], Cause: lines[2], Remedy: lines[3],
		})
	}
	return all, nil
}

// Owner is the part of the program that reports a finding. Its tests prove that each of its codes is reached.
type Owner string

// The owners.
const (
	Events    Owner = "events"    // pkg/findings: changes of the clusters
	Conflicts Owner = "conflicts" // pkg/findings: disagreements between clusters
	States    Owner = "states"    // pkg/remotecluster: the cause of a cluster's state
	Reasons   Owner = "reasons"   // internal/diagnose/reasons: why an object is, or is not, as expected
	Policy    Owner = "policy"    // pkg/findings: actions of the disconnect policy

	Checks        Owner = "checks"        // internal/diagnose/checks: a mesh directory before it is applied
	Troubleshoot  Owner = "troubleshoot"  // internal/diagnose/troubleshoot: why a cluster cannot be connected
	IdentityCheck Owner = "identitycheck" // internal/own/identity: the identities in a kvstore
	API           Owner = "api"           // internal/serve/httpapi: the state of the agent
	Listeners     Owner = "listeners"     // internal/serve/transport: the certificates of its listeners
	Mirror        Owner = "mirror"        // internal/own/mirror: how full the own etcd is
	Operate       Owner = "operate"       // internal/own/operate: the objects of its cluster
	Agent         Owner = "agent"         // pkg/findings: changes of the agent's configuration
	Alerts        Owner = "alerts"        // tools/monitoring: alerts of Prometheus
	Imports       Owner = "imports"       // internal/kube/serviceimports: the services that are not imported
	Slices        Owner = "slices"        // internal/kube/endpointslices: the backends that are in no slice
	Boundary      Owner = "boundary"      // internal/base/boundary: bugs of this program that end the work for one
)

// Finding is one finding about one case.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"` // that of the code
	Message  string   `json:"message"`  // the facts of this case
	Remedy   string   `json:"remedy"`   // how to solve it
}

// Found returns a finding. If remedy is empty, it has the remedy of the registry.
func (c Code) Found(message, remedy string) Finding {
	e, known := Find(string(c))
	if !known {
		e.Severity = Info
	}
	if remedy == "" {
		remedy = e.Remedy
	}
	return Finding{Code: c, Severity: e.Severity, Message: message, Remedy: remedy}
}

// Notice is a problem that will occur, or may: it has no effect yet.
type Notice struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
}

// Notice returns a notice with the remedy of the registry.
func (c Code) Notice(message string) Notice {
	e, _ := Find(string(c))
	return Notice{Code: string(c), Message: message, Remedy: e.Remedy}
}

// String returns the finding on one line, with its code at the end.
func (f Finding) String() string { return f.Message + " [" + string(f.Code) + "]" }
