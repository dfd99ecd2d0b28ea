package troubleshoot

import (
	"slices"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

// State is what became of a step.
type State string

// The states, from good to bad.
const (
	Skipped State = "skipped" // not tried, or not needed: the detail says why
	OK      State = "ok"
	Warning State = "warning" // it works, and is dangerous or will not work for long
	Failed  State = "failed"
)

// rank orders the states.
func (s State) rank() int { return slices.Index([]State{Skipped, OK, Warning, Failed}, s) }

// The steps, in their order. Those from StepResolve to StepEtcd are there for
// each endpoint.
const (
	StepFile              = "client-file"           // found and understood
	StepAuthorities       = "authorities"           // of trusted-ca-file
	StepCertificate       = "client-certificate"    // its dates, and that its key belongs to it
	StepResolve           = "resolve"               // the endpoint's addresses
	StepTCP               = "tcp"                   // a connection to each address
	StepTLS               = "tls"                   // a handshake
	StepServerCertificate = "server-certificate"    // its chain, names and dates
	StepAccepted          = "client-accepted"       // the server takes our certificate, or none
	StepEtcd              = "etcd"                  // it answers, and to us
	StepRights            = "rights"                // we may read what is needed
	StepHeartbeat         = "heartbeat"             // somebody writes the cluster's state
	StepConfiguration     = "cluster-configuration" // there, and one that we can work with
)

// Step is one step of a check.
type Step struct {
	Name string `json:"name"` // one of the Step constants
	// Endpoint is the URL that the step is about, empty for steps that are about
	// the whole configuration.
	Endpoint string `json:"endpoint,omitempty"`
	State    State  `json:"state"`
	// Detail is what was found; of a skipped step, why.
	Detail string `json:"detail,omitempty"`
	// Cause says what is wrong and Remedy what to do, both of a step that has
	// failed or is a warning.
	Cause  string `json:"cause,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Report is what is known of one configuration.
type Report struct {
	Name       string `json:"name"`  // of the cluster; the own one for the local kvstore
	Local      bool   `json:"local"` // it is the local kvstore
	ConfigFile string `json:"configFile,omitempty"`
	State      State  `json:"state"` // the worst of the steps'
	Steps      []Step `json:"steps"` // in the order in which they depend on each other
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

// fail adds something that is wrong.
func (s *Step) fail(cause, remedy string) { s.add(Failed, cause, remedy) }

// warn adds something that works all the same.
func (s *Step) warn(cause, remedy string) { s.add(Warning, cause, remedy) }

// failed adds an error, with the remedy that is known for it or else this one.
func (s *Step) failed(err error, otherwise string) {
	remedy := kvstore.Hint(err)
	if remedy == "" {
		remedy = otherwise
	}
	s.fail(err.Error(), remedy)
}

func (s *Step) add(state State, cause, remedy string) {
	if state.rank() > s.State.rank() {
		s.State = state
	}
	s.Cause = joined(s.Cause, cause)
	s.Remedy = joined(s.Remedy, remedy)
}

// skip says why the step is not tried.
func (s *Step) skip(why string) { s.State, s.Detail = Skipped, joined(s.Detail, why) }

// after says that the step is not tried because of another one.
func (s *Step) after(other string) { s.skip("not tried: " + other + " failed") }

// found adds to the detail.
func (s *Step) found(text string) { s.Detail = joined(s.Detail, text) }

// joined puts texts on one line, each once and without user and password of a
// URL.
func joined(text, more string) string {
	lines := strings.Split(strings.TrimSpace(more), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	more = kvstore.Redact(strings.Join(lines, "; "))
	switch {
	case text == "" || more == "":
		return text + more
	case strings.Contains(text, more):
		return text
	}
	return text + "; " + more
}
