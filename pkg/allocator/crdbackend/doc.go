// Package crdbackend keeps what an allocator hands out as objects of Kubernetes:
// an [allocator.Backend] over the Kubernetes API.
//
//	mapping          CiliumIdentity (cilium.io/v2); its name is the number,
//	                 security-labels are the key
//	node references  one Lease (coordination.k8s.io/v1) for each process, whose
//	                 annotation lists the numbers that it uses
//	lock of a key    a Lease, created by whoever holds it and deleted by whoever
//	                 gives it up
//
// Every object that is made here has the label [ManagedBy]. Mappings of others,
// such as Cilium, are read, and never changed or collected. Mappings of ours have
// the hash of their key as a label too, so that a key is found by one request.
//
// What ends with its owner: a process renews its Lease of references. One that is
// not renewed for as long as it says is void; garbage collection judges this by its
// own clock, from when it saw the Lease change last, so clocks may differ.
//
// What is weaker than in a kvstore: Kubernetes has no transaction over two objects. Whoever holds a
// lock gives its requests a deadline before the lock runs out, and a request that the API server
// executes after that is not prevented. Of two numbers of one key that would come of it the one in
// use counts, and the other is collected.
//
// Concurrency: everything may be called by any number of goroutines.
// [Backend.Run] renews the references.
package crdbackend
