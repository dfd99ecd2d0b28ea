// Package manifests reads the own cluster from a directory of Kubernetes
// manifests, for a machine or a cluster without a Kubernetes API.
//
// Every file *.yaml, *.yml and *.json of the directory is read, but those whose names begin with a dot; directories in
// it are not. A file has any number of documents, each an object or a List of objects; a namespaced object without a
// namespace is in "default". Kinds that are not needed are ignored.
//
// While a document in a file is bad, the previous content of the file stays in use, and the other files still count.
// When there is no previous content, as after a restart, the rest of the file counts, and until each file was without a
// mistake once the description is not whole ([local.Cluster.IsWhole]): a mistake withdraws nothing.
//
// A file that is replaced (a rename, a link that is swapped) counts at once; one that is written in place, is empty or
// was deleted counts when it has stayed the same for half a second; at the start nothing counts before everything has.
// An object that is in two files is that of the first file by name.
//
// Concurrency: Run is one goroutine, which is the one writer of the tables.
package manifests
