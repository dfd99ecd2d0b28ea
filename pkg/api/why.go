package api

import (
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Explanation is the reasons for the state of an object.
type Explanation struct {
	Verdict Verdict `json:"verdict"`
	Steps   []Step  `json:"steps" doc:"The evidence for the verdict, the most important first."`
}

// Verdict is the result of an explanation.
type Verdict struct {
	Code codes.Code `json:"code" doc:"The stable code of the finding."`
	Text string     `json:"text" doc:"The message of the finding."`
}

// Step is one thing that was checked.
type Step struct {
	Code    codes.Code `json:"code" doc:"The rule that applied."`
	Cluster string     `json:"cluster" doc:"The cluster that the evidence is about."`
	Text    string     `json:"text" doc:"The text of the finding."`
	Keys    []Key      `json:"keys" doc:"The keys in the kvstore, as the agent read them."`
	AsOf    *time.Time `json:"asOf" doc:"The time until which this is known to be true; null when it never was, or needs no proof."`
}

// Key is a key of a kvstore, with its known contents.
type Key struct {
	Key      string     `json:"key"`
	Revision int64      `json:"revision" doc:"The mod revision of the last read value."`
	Read     *time.Time `json:"read" doc:"The latest time at which the agent may have read the value; null when not known."`
	Refused  string     `json:"refused,omitempty" doc:"Why the agent refuses the value."`
}
