// Package identity hands out the numeric identities of the own cluster: one for
// each set of labels, the same on every node (wire.md §1.6, §2.3, §5).
//
// An [Allocator] adds to the allocation of numbers what makes a number an identity: the cluster's
// range and its bits in the number, the label that names the cluster, the identities that are
// reserved and so never allocated, and the name under which a node holds its references.
//
// [Check] reads the identities in the kvstore and finds their problems.
//
// Concurrency: everything may be called by any number of goroutines.
package identity
