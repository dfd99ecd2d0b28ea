// Package crdbackend is an [allocator.Backend] over the Kubernetes API. It keeps the entries of an allocator as
// Kubernetes objects:
//
//	mapping          CiliumIdentity (cilium.io/v2); its name is the ID,
//	                 security-labels are the key
//	node references  one Lease (coordination.k8s.io/v1) for each process, whose
//	                 annotation lists the IDs that it uses
//	lock of a key    a Lease; the holder of the lock creates and deletes it
//
// Every object that this package creates has the label [ManagedBy]. Mappings of other programs, such as Cilium, are
// read, and never changed or collected. Mappings of this package also have a label with the hash of their key, so
// that one request finds a key.
//
// References end with their owner: a process renews its Lease of references. A Lease that is not renewed within its
// duration is void. Garbage collection measures this with its own clock, from the time when it saw the last change of
// the Lease, so clocks may differ.
//
// The guarantees are weaker than in a kvstore, because Kubernetes has no transaction over two objects. The holder of
// a lock gives its requests a deadline before the lock expires. A request that the API server executes after that is
// not prevented. If a key gets two IDs in this way, the ID in use counts, and the other is collected.
//
// Concurrency: everything may be called by any number of goroutines.
// [Backend.Run] renews the references.
package crdbackend
