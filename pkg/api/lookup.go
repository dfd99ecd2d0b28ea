package api

// Lookup is the answer of /v1/lookup.
type Lookup struct {
	IP          string        `json:"ip"`
	Match       *IP           `json:"match" doc:"The longest prefix that contains the address; null when no cluster claims the address."`
	Identity    *Identity     `json:"identity" doc:"The match's identity; null when it is not known."`
	Node        *Node         `json:"node" doc:"The node that hosts it; null when it is not known."`
	Services    []ServiceName `json:"services" doc:"The services that have the address as a backend."`
	Candidates  []Candidate   `json:"candidates" doc:"The claims of prefixes that contain the address, the winner first. For a prefix with more than 128 claims: the best one of each cluster and kind."`
	Why         Explanation   `json:"why" doc:"The evidence for the match, with the keys in the kvstore."`
	Freshness   *Freshness    `json:"freshness" doc:"The time until which the match is known to be true; null without a match."`
	Unconfirmed []string      `json:"unconfirmed" doc:"Clusters whose addresses are not known as of now: they may claim the address, or may have withdrawn a claim."`
}

// ServiceName is the name of a service.
type ServiceName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Candidate is one claim that covers the address.
type Candidate struct {
	Entry  IP     `json:"entry"`
	Won    bool   `json:"won"`
	Reason string `json:"reason" doc:"The rule that decided."`
}
