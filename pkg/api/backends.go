package api

// ServiceBackends is the backends for connections to a service.
type ServiceBackends struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Port      string         `json:"port" doc:"The requested port, by name or number; empty for all ports."`
	Zone      string         `json:"zone" doc:"The zone of the client; empty when not known."`
	Node      string         `json:"node" doc:"The node of the client; empty when its backends are not preferred."`
	Affinity  string         `json:"affinity" enum:"none,local,remote"`
	Groups    []BackendGroup `json:"groups" doc:"The groups, the best first. Connections go to the first group with backends; the other groups are for failover."`
	// Unconfirmed clusters may have other backends now.
	Unconfirmed []string `json:"unconfirmed" doc:"Clusters whose services or endpoint slices are not known as of now."`
}

// BackendGroup is backends that are equally good.
type BackendGroup struct {
	Use      string          `json:"use" enum:"full,demoted,withdrawn" doc:"How the disconnect policy uses the backends of these clusters."`
	Side     string          `json:"side" enum:"any,local,remote" doc:"Whether they are local or remote, when the affinity prefers one side."`
	Near     string          `json:"near" enum:"node,zone,anywhere" doc:"The topology distance from the client."`
	Backends []ChosenBackend `json:"backends" doc:"Backends for new connections."`
	Draining []ChosenBackend `json:"draining" doc:"Backends that terminate: they keep existing connections and get no new ones."`
}

// ChosenBackend is a backend that takes or keeps connections.
type ChosenBackend struct {
	IP       string `json:"ip"`
	Cluster  string `json:"cluster"`
	Local    bool   `json:"local" doc:"Whether it belongs to the own cluster."`
	Ports    []Port `json:"ports" doc:"The requested ports."`
	Hostname string `json:"hostname"`
	Zone     string `json:"zone"`
	Node     string `json:"node"`
}
