package api

// MediaTypeProblem is the content type of a [Problem] (RFC 9457).
const MediaTypeProblem = "application/problem+json"

// HeaderToken is the header of a list with its position as a token: a watch since the token sends only the changes
// after the list, and no state first. A list of addresses by labels has no token, because its watch cannot be
// resumed.
const HeaderToken = "Resume-Token"

// MaxLimit is the largest page; a larger limit is reduced to it.
const MaxLimit = 5000

// List is the answer of every list endpoint.
type List[T any] struct {
	Revision  uint64               `json:"revision" doc:"The revision of the view that the items show."`
	Freshness map[string]Freshness `json:"freshness,omitempty" doc:"By cluster, the time until which the listed entries are known to equal those of the cluster: the oldest of the resources that the list comes from. Absent for lists that do not come from clusters."`
	Items     []T                  `json:"items" doc:"The items, sorted by name."`
	Next      string               `json:"next" doc:"The cursor of the next page; empty on the last one."`
}

// Problem is the body of every error (RFC 9457).
type Problem struct {
	Type   string `json:"type" doc:"Always about:blank: see the title."`
	Title  string `json:"title" doc:"The kind of problem: the text of the status code."`
	Status int    `json:"status" doc:"The HTTP status code."`
	Detail string `json:"detail" doc:"The error of this request, and its remedy."`
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// Liveness is the answer of /healthz.
type Liveness struct {
	Status string `json:"status" doc:"Always ok: a process that hangs does not answer."`
}

// Readiness is the answer of /readyz. It is a problem document when not ready.
type Readiness struct {
	Type    string            `json:"type,omitempty" doc:"Set when not ready."`
	Title   string            `json:"title,omitempty" doc:"Set when not ready."`
	Status  int               `json:"status,omitempty" doc:"The HTTP status code, when not ready."`
	Detail  string            `json:"detail,omitempty" doc:"When not ready: the clusters and resources that the agent waits for. When ready: those that are missing."`
	Code    string            `json:"code,omitempty" doc:"The stable code of an agent that is ready without some clusters."`
	Ready   bool              `json:"ready" doc:"Whether the agent has synced every configured cluster once, or the sync timeout has passed."`
	Reasons map[string]string `json:"reasons" doc:"By cluster, the resources that the agent waits for, and why. The mesh directory and the local kvstore can be in it too."`
	Without map[string]string `json:"without" doc:"By cluster, the resources that were not synced when the sync timeout passed and still are not, and why."`
}

// WatchEvent is the data of an event of /v1/watch.
type WatchEvent struct {
	Resource string `json:"resource"`
	Object   any    `json:"object,omitempty" doc:"An item of the resource's list; fields that change all the time are null. Absent when the event is synced."`
	Revision uint64 `json:"revision" doc:"The revision of the change in the view."`
}

// LogLevel is the level of the agent's log.
type LogLevel struct {
	Level string `json:"level" enum:"error,warn,info,debug"`
}
