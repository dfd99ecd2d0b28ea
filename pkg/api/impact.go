package api

// Impact has the backends that services have in clusters that cannot be confirmed.
type Impact struct {
	Clusters []string `json:"clusters" doc:"The clusters that are not connected, or whose data could not be confirmed for too long."`
	Loss
	Each []ClusterLoss `json:"each" doc:"The same for each of the clusters alone."`
}

// ClusterLoss has the backends that services have in one cluster.
type ClusterLoss struct {
	Cluster string `json:"cluster"`
	Loss
}

// Loss has the services with backends in some clusters.
type Loss struct {
	Only   Losing `json:"only" doc:"Services with all their backends there."`
	Partly Losing `json:"partly" doc:"Services with some of their backends there."`
}

// Losing is the services with the same kind of loss.
type Losing struct {
	Services int      `json:"services"`
	Names    []string `json:"names" doc:"The first of them, as NAMESPACE/NAME; at most 5."`
	Backends int      `json:"backends" doc:"The number of their backends there."`
	Of       int      `json:"of" doc:"The number of all their backends."`
}

// OfCluster returns the loss with one cluster alone; nil when there is none.
func (i *Impact) OfCluster(name string) *Loss {
	if i != nil {
		for at := range i.Each {
			if i.Each[at].Cluster == name {
				return &i.Each[at].Loss
			}
		}
	}
	return nil
}

// Sharing is the clusters that share services with each other.
type Sharing struct {
	Items       []Sharer `json:"items" doc:"The clusters that share a service, by name."`
	Unconfirmed []string `json:"unconfirmed" doc:"Clusters that may share other services by now, or that were never read."`
}

// Sharer is a cluster that shares services.
type Sharer struct {
	Cluster  string         `json:"cluster"`
	Services int            `json:"services" doc:"The number of services that it shares."`
	With     map[string]int `json:"with" doc:"How many of these each other cluster shares as well; clusters with none are left out."`
}
