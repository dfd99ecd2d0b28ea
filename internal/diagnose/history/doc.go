// Package history remembers the last hour of each cluster in numbers: changes a second, lag, age of the data and
// entries, one sample each ten seconds, to find the cause of a problem afterwards. Events are in package findings.
//
// It has only observed values: a value that was not observed is absent, and not zero. Absent are all values before
// the agent ran, or knew the cluster; the changes of a cluster that was not connected; the lag while no event came;
// and rates over a time for which the clocks disagree, because the machine slept or its clock was set.
//
// Its memory has a bound that remote clusters cannot change: a sample has 24 bytes, so that 254 clusters take 2.2 MB
// and [MaxClusters] take 4.4 MB. The samples of a cluster that is no longer in the mesh are deleted.
//
// The core is pure; [History] gives it the time and the statuses of the clusters.
//
// Concurrency: one goroutine runs Run, and any number of others read.
package history
