package api

import (
	"net/http"
	"reflect"
	"time"
)

// XDSClients are the xDS clients of an agent.
type XDSClients struct {
	Items []XDSClient `json:"items" doc:"The streams that are open, in the order in which they came."`
}

// XDSClient is a gRPC program or an Envoy that follows services by xDS, as a stream of it. Node and
// program are what it says of itself.
type XDSClient struct {
	Number  uint64         `json:"number" doc:"Of the stream, since the start of the agent."`
	Peer    string         `json:"peer" doc:"Its address; unix over a unix socket."`
	Node    string         `json:"node" doc:"The ID that it gives itself."`
	Program string         `json:"program" doc:"With its version, as it says."`
	Variant string         `json:"variant" enum:"state of the world,incremental"`
	Since   time.Time      `json:"since"`
	Follows []XDSFollowing `json:"follows" doc:"What it has asked for, by type."`
}

// XDSFollowing is what a client follows of one type of resource.
type XDSFollowing struct {
	Type            string     `json:"type" enum:"listeners,routes,clusters,endpoints"`
	All             bool       `json:"all" doc:"Everything that there is, by no name."`
	Names           []string   `json:"names"`
	WithoutBackends []string   `json:"withoutBackends" doc:"Those of the names of endpoints that lead to no backend now: connections to them fail."`
	Sent            string     `json:"sent" doc:"The version that it was sent last; empty: none."`
	Confirmed       string     `json:"confirmed" doc:"The version that it took last; empty: none."`
	Rejected        uint64     `json:"rejected" doc:"How often it did not take what it was sent."`
	Reason          string     `json:"reason" doc:"Of the last time, as it says."`
	RejectedAt      *time.Time `json:"rejectedAt" doc:"When that was; null: never."`
}

func (s *Server) xdsClientsRoute() route {
	return route{
		path: "/v1/xds/clients", id: "xdsClients", summary: "Clients that follow services by xDS, and the versions that each has confirmed or rejected.",
		answer: reflect.TypeFor[XDSClients](), errors: []int{http.StatusNotFound}, handle: s.serveXDSClients,
	}
}

func (s *Server) serveXDSClients(w http.ResponseWriter, _ *http.Request) error {
	var all []XDSClient
	if s.XDSClients != nil {
		all = s.XDSClients()
	}
	if all == nil {
		return notFound("this agent does not serve xDS: give it --xds ADDRESS")
	}
	writeJSON(w, XDSClients{all})
	return nil
}
