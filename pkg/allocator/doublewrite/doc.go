// Package doublewrite moves the IDs of an allocator to another store, such as another kvstore, another prefix or the
// Kubernetes API, without changing an ID.
//
// A [Backend] combines two others. Reads use one side, the one that is read; writes go to both. Failures on the other
// side are logged and counted, and never returned: the refresh of the keys repairs them. The steps of an operator:
//
//  1. Every writer runs with both sides and reads the primary one. From now on
//     new keys are on both sides; keys in use are copied when they are refreshed.
//  2. [Copy] copies the remaining keys, which are not in use at present.
//  3. [Compare] reports no difference.
//  4. Every writer reads the secondary side, one after another.
//  5. Every writer runs with only the former secondary side.
//
// While some writers read one side and some the other, a key is locked on both sides, the primary first, and an ID is
// taken if it is taken on either side. A key that only the other side has keeps its ID. So no ID is handed out twice
// during step 4.
//
// Concurrency: as for any [allocator.Backend].
//
// # Design
//
// Garbage collection checks the other side, under the key's lock, before it deletes (docs/identity-migration.md).
// CiliumIdentities that this program writes have a label, and do not describe the cluster: agents never treat them as
// Cilium's, and an operator publishes them only in the mode crd.
package doublewrite
