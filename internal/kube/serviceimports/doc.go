// Package serviceimports writes the objects of the MCS API (KEP-1645) into the own cluster: ServiceImports
// of what clusters export, the derived Services with their addresses, slices of the own backends for these,
// and the conditions of the own ServiceExports. What they should be is said by internal/kube/mcs; this follows the
// tables and carries it out through internal/kube/kubewrite.
//
// # What keeps imports from vanishing
//
// Nothing happens before the mesh is ready and the own cluster's objects are listed. An import of which a
// cluster is a part that is configured and was not read since the start stays what it is a merger of: the
// cluster may well export it still. What the own cluster has of it is followed meanwhile: its namespace, the
// derived Service with its addresses, the status, the own backends.
//
// # What is written
//
// What is as it should be is not written, so that a restart, or the next leader, writes nothing. Only
// objects with the label mcs.LabelWritten are changed or deleted: an import of the same name that somebody
// else made stays as it is, as does a Service with the name of a derived one, and both are reported. Of
// ServiceExports only the status is written.
//
// # What remotes can do
//
// They export services into namespaces that the own cluster has, as far as the claim policy grants them
// (docs/claims.md). Each takes a ClusterIP, so [MaxImports] bounds how many there are, and
// each cluster has a share of them. What an object of
// Kubernetes cannot have is left out by internal/kube/mcs.
//
// Concurrency: [Controller.Run] owns every goroutine.
package serviceimports
