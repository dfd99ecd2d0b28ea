package api

import "time"

// XDSClients are the xDS clients of an agent.
type XDSClients struct {
	Items []XDSClient `json:"items" doc:"The open streams, the oldest first."`
	Gone  []XDSClient `json:"gone" doc:"Streams of other clients that ended within 10 minutes, the last one first: at most 64, with at most 10 names of each type."`
}

// XDSClient is a gRPC program or an Envoy that follows services by xDS, as one stream. Node and program are what it
// sends about itself.
type XDSClient struct {
	Number  uint64         `json:"number" doc:"The number of the stream, counted from the start of the agent."`
	Peer    string         `json:"peer" doc:"The address of the client; unix for a client of the unix socket."`
	Node    string         `json:"node" doc:"The node ID that the client sends."`
	Program string         `json:"program" doc:"The name and version of the client's program, as the client sends them."`
	Variant string         `json:"variant" enum:"state of the world,incremental"`
	Since   time.Time      `json:"since"`
	Gone    *time.Time     `json:"gone,omitempty" doc:"The end of the stream, in the list gone."`
	Follows []XDSFollowing `json:"follows" doc:"The subscriptions of the client, by type."`
}

// XDSFollowing is what a client follows of one type of resource.
type XDSFollowing struct {
	Type            string     `json:"type" enum:"listeners,routes,clusters,endpoints"`
	All             bool       `json:"all" doc:"The subscription has no names: it covers all resources of the type."`
	Names           []string   `json:"names"`
	WithoutBackends []string   `json:"withoutBackends" doc:"Subscribed names of endpoints that have no backend now. Connections to them fail."`
	Sent            string     `json:"sent" doc:"The last version that the agent sent; empty when it sent none."`
	Confirmed       string     `json:"confirmed" doc:"The last version that the client accepted (ACK); empty when it accepted none."`
	Rejected        uint64     `json:"rejected" doc:"How often the client rejected a version (NACK)."`
	Reason          string     `json:"reason" doc:"The client's error of the last rejection."`
	RejectedAt      *time.Time `json:"rejectedAt" doc:"The time of the last rejection; null when there was none."`
}
