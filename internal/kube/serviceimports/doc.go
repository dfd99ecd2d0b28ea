// Package serviceimports writes the objects of the MCS API (KEP-1645) into the own cluster: ServiceImports of what
// clusters export, the derived Services with their addresses, slices of the own backends for these, and the conditions
// of the own ServiceExports. internal/kube/mcs computes the wanted objects; this package follows the tables and writes
// the objects through internal/kube/kubewrite.
//
// # What keeps imports from vanishing
//
// Nothing happens before the mesh is ready and the own cluster's objects are listed. If a configured cluster is a part
// of an import and was not read since the start, the import stays merged from the same exports: the cluster may still
// export the service. The own cluster's objects for it are still followed: its namespace, the derived Service with its
// addresses, the status, the own backends.
//
// # Written objects
//
// An object that is already correct is not written, so that a restart, or the next leader, writes nothing. Only objects
// with the label mcs.LabelWritten are changed or deleted: an import of the same name from another writer stays as it
// is, like a Service with the name of a derived one, and both are reported. Of ServiceExports only the status is
// written.
//
// # What remotes can do
//
// They export services into namespaces that the own cluster has, as far as the claim policy grants them
// (docs/claims.md). Each takes a ClusterIP, so [MaxImports] bounds how many there are, and each cluster has a share of
// them. internal/kube/mcs leaves out contents that are not valid in Kubernetes.
//
// Concurrency: [Controller.Run] owns every goroutine.
package serviceimports
