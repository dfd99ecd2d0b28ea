package model

// PublishArgs are the arguments of Publish.Open: the cluster that is published, and
// what is said of it. Publish.Put has Objects as its arguments, Publish.Delete too,
// of which it needs the names alone, and Publish.Synced a list of kinds. They do not
// wait for the etcd.
type PublishArgs struct {
	Flags  []string // Cilium's own, such as --kvstore-opt=etcd.config=/etc/client
	Config ClusterConfig
}

// ReadArgs are the arguments of Read.Open: the cluster that the reader belongs to.
type ReadArgs struct {
	Cluster              string
	ClusterID            uint32
	MaxConnectedClusters uint32
	Dir                  string            // of the client configurations, one for each remote
	Options              map[string]string // --kvstore-opt
}

// Of a reader Read.Clusters tells what it says of the clusters that it reads, by
// name, and Read.View, whose argument is a kind, the objects of the kind that it
// holds. Addresses are without a cluster, because those of all are in one cache.

// RemoteCluster is what a reader says of a cluster that it reads.
type RemoteCluster struct {
	Name             string
	Connected, Ready bool
	Failures         int64          // reconnections
	Status           string         // of the connection, in words
	Entries          map[Kind]int64 // that it counts
	Synced           map[Kind]bool
	Config           *ClusterConfig // nil before it was read; how many clusters may be connected is not said
}
