// Package history remembers the last hour of each cluster in numbers: changes a second, lag, age of the data and entries,
// one sample each ten seconds, for those who look after something has happened. Events are in package findings.
//
// It never says more than was seen: what was not observed is absent, and not zero. That is the time before the agent ran, or
// knew the cluster; the changes of a cluster that was not connected; the lag while nothing came; and rates over a time of
// which the clocks disagree, because the machine slept or somebody set its clock.
//
// Its memory has a bound that nothing from outside moves: a sample has 24 bytes, so that 254 clusters take 2.2 MB and
// [MaxClusters] take 4.4 MB, whatever they do. A cluster that is no longer in the mesh takes its samples with it.
//
// The core is pure; [History] brings it the time and what is said of the clusters.
//
// Concurrency: one goroutine runs Run, and any number of others read.
package history
