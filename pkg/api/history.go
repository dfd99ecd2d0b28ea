package api

import "time"

// Series is the last hour of a cluster, or of all clusters together.
type Series struct {
	Cluster         string  `json:"cluster" doc:"Empty for all clusters together."`
	IntervalSeconds float64 `json:"intervalSeconds" doc:"The time between two samples. When two samples are further apart, nothing is known about the time between them."`
	Points          []Point `json:"points" doc:"The samples, the oldest first. None is older than an hour or than the start of the agent."`
}

// Point is one sample. A value that was not observed is null.
type Point struct {
	Time     time.Time `json:"time"`
	State    string    `json:"state,omitempty" doc:"The state of the cluster; absent for all clusters together."`
	Changes  *float32  `json:"changesPerSecond" doc:"Changes of keys that became visible, since the sample before. null while the cluster is not connected, and when the time between the samples is in doubt."`
	Lag      *float32  `json:"lagSeconds" doc:"The 99th percentile of how long the latest changes took to become visible; null when there were none since the sample before. For all clusters: the worst."`
	Age      *float32  `json:"ageSeconds" doc:"The age of the data; null when it was never complete. For all clusters: the greatest."`
	Entries  *int32    `json:"entries" doc:"The accepted keys of the kvstore; null before the first list. For all clusters: the sum of those that are known."`
	Clusters uint16    `json:"clusters,omitempty" doc:"For all clusters together: how many there were."`
	Observed uint16    `json:"observed,omitempty" doc:"For all clusters together: of how many the changes are. If it is less than clusters, there may have been more changes."`
}
