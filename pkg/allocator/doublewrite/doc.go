// Package doublewrite moves what an allocator has handed out to another place, such
// as another kvstore, another prefix or the Kubernetes API, without changing a number.
//
// A [Backend] stands over two others. Reads follow one side, the one that is
// read; writes go to both. What fails on the other side is logged and counted,
// and never returned: it is made good when the keys are refreshed. The steps of
// an operator:
//
//  1. Every writer runs with both sides and reads the primary one. From now on
//     what is new is on both; what is in use gets there as it is refreshed.
//  2. [Copy] brings what nobody uses at present.
//  3. [Compare] says that nothing differs.
//  4. Every writer reads the secondary side, one after another.
//  5. Every writer runs with what was the secondary side alone.
//
// While some writers read one side and some the other, a key is locked on both,
// the primary first, and a number is taken if it is taken on either. A key that only
// the other side has keeps its number. So nothing is handed out twice during step 4.
//
// Concurrency: as for any [allocator.Backend].
//
// # Design
//
// Garbage collection asks the other place, under the key's lock, before it deletes
// (docs/identity-migration.md). CiliumIdentities that this program writes carry a
// label and are no description of the cluster: agents never treat them as
// Cilium's, and an operator publishes them in the mode crd alone.
package doublewrite
