package config

// ClusterSizeFlag is the flag for the size of the own cluster.
const (
	ClusterSizeFlag = "cluster-size"
	clusterSizeHelp = "number of nodes of the own cluster: the more there are, the less often each asks a kvstore whether it is well, and the longer it waits " +
		"before it connects again (docs/performance.md); 0 counts them, in the own kvstore or in what describes the own cluster, and without both there is one"
)

// GivenSize is the size of the own cluster that a person gave; 0 for none.
func (c Config) GivenSize() int { return int(c.ClusterSize) }
