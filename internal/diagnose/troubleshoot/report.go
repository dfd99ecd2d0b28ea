package troubleshoot

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

// State is the result of a step.
type State string

// The states, from good to bad.
const (
	Skipped State = "skipped" // not tried, or not needed: the detail says why
	OK      State = "ok"
	Warning State = "warning" // it works, and is dangerous or will not work for long
	Failed  State = "failed"
)

func (s State) rank() int { return slices.Index([]State{Skipped, OK, Warning, Failed}, s) }

// The steps, in their order. Those from StepResolve to StepEtcd are there for each endpoint.
const (
	StepFile              = "client-file"           // found and understood
	StepAuthorities       = "authorities"           // of trusted-ca-file
	StepCertificate       = "client-certificate"    // its dates, and that its key belongs to it
	StepResolve           = "resolve"               // the endpoint's addresses
	StepTCP               = "tcp"                   // a connection to each address
	StepTLS               = "tls"                   // a handshake
	StepServerCertificate = "server-certificate"    // its chain, names and dates
	StepAccepted          = "client-accepted"       // the server accepts our certificate, or none
	StepEtcd              = "etcd"                  // it answers, and to us
	StepRights            = "rights"                // we may read the needed keys
	StepHeartbeat         = "heartbeat"             // the cluster's state is being written
	StepConfiguration     = "cluster-configuration" // there, and one that we can work with
)

// Step is one step of a check.
type Step struct {
	Name string `json:"name"` // one of the Step constants
	// Endpoint is the URL that the step is about, empty for steps that are about
	// the whole configuration.
	Endpoint string `json:"endpoint,omitempty"`
	State    State  `json:"state"`
	// Detail is the result; of a skipped step, the reason.
	Detail string `json:"detail,omitempty"`
	// Findings are the problems of a step that has failed or is a warning.
	Findings []codes.Finding `json:"findings,omitempty"`
	// Code is that of the worst finding, the first of them. Cause and Remedy have the texts of all findings.
	Code   codes.Code `json:"code,omitempty"`
	Cause  string     `json:"cause,omitempty"`
	Remedy string     `json:"remedy,omitempty"`
}

// Report is the result of the check of one configuration.
type Report struct {
	Name       string `json:"name"`  // of the cluster; the own one for the local kvstore
	Local      bool   `json:"local"` // it is the local kvstore
	ConfigFile string `json:"configFile,omitempty"`
	State      State  `json:"state"` // the worst of the steps'
	Steps      []Step `json:"steps"` // in the order in which they depend on each other
	// ClusterID, and Cached, that the etcd has a copy of the cluster, come from the cluster configuration;
	// EtcdClusterID, hexadecimal, comes from the etcd. They are zero when they are not known.
	ClusterID     uint32 `json:"clusterID,omitempty"`
	Cached        bool   `json:"cached,omitempty"`
	EtcdClusterID string `json:"etcdClusterID,omitempty"`
	// EtcdMark tells etcds of equal IDs apart, which are common where one manifest
	// made them: the revision and the value of the heartbeat. Empty without one.
	EtcdMark string `json:"-"`
}

// In returns the names of the steps in a state, each once, in their order.
func (r *Report) In(state State) []string {
	var names []string
	for _, s := range r.Steps {
		if s.State == state && (len(names) == 0 || names[len(names)-1] != s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// tell adds a finding. Its code determines the severity, and the remedy unless a better one is given.
func (s *Step) tell(code codes.Code, cause, remedy string) {
	f := code.Found(joined("", cause), joined("", remedy))
	state := Warning
	if f.Severity == codes.Error {
		state = Failed
	}
	if state.rank() > s.State.rank() {
		s.State, s.Code = state, code
	}
	s.Cause = joined(s.Cause, f.Message)
	s.Remedy = joined(s.Remedy, f.Remedy)
	if i := slices.IndexFunc(s.Findings, func(o codes.Finding) bool { return o.Code == code }); i >= 0 {
		same := &s.Findings[i]
		same.Message, same.Remedy = joined(same.Message, f.Message), joined(same.Remedy, f.Remedy)
		return
	}
	s.Findings = append(s.Findings, f)
}

// failed adds an error, as the finding that it is known to be and with the remedy
// that is known for it, or else as this one.
func (s *Step) failed(err error, code codes.Code, remedy string) {
	s.tell(cmp.Or(hint.Code(err), code), err.Error(), cmp.Or(hint.Text(err), remedy))
}

func (s *Step) skip(why string) { s.State, s.Detail = Skipped, joined(s.Detail, why) }

// after says that the step is not tried because of another one.
func (s *Step) after(other string) { s.skip("not tried: " + other + " failed") }

func (s *Step) found(text string) { s.Detail = joined(s.Detail, text) }

// joined puts texts on one line, each once and without user and password of a URL.
func joined(text, more string) string {
	spaced := func(line string) string { return strings.Join(strings.Fields(line), " ") }
	more = clientfile.Redact(printer.Join(strings.Split(strings.TrimSpace(more), "\n"), "; ", spaced))
	switch {
	case text == "" || more == "":
		return text + more
	case strings.Contains(text, more):
		return text
	}
	return text + "; " + more
}
