// Package wire knows the bytes of the ClusterMesh kvstore format: every key path and every value,
// as Cilium v1.20 speaks it. Comments cite the sections of its description, wire.md.
//
// Everything here is a pure function of its arguments and may be called from any number
// of goroutines.
//
// # Failure
//
// A Decode function that reads an entry of a remote cluster fails with a [*RejectError], whose
// [Reason] comes from a small closed set and may label a metric. A rejected entry is neither an
// upsert nor a deletion: the previous value of its key stays in force (wire.md §1). Decoders never
// panic and never keep a reference to the value that they were given.
//
// # Cost
//
// What a value may hold and how much memory it may take is bounded before it is built: see
// [MaxName], [MaxValue] and [MaxCost]. Beyond a bound it is rejected for [ReasonTooLarge]. A test
// of pkg/clustermesh measures the cost of every decoder, with what the tables keep.
//
// # Names
//
// A key is a full path in the kvstore; a name is a key without the prefix that
// a reader lists ([Resource.Prefix]). Encoders write with encoding/json
// version 1, because peers see its exact bytes.
//
// Keys and values are Cilium's byte for byte, with one exception: of an endpoint
// slice that is the message, before it is compressed. Two releases of the compressor
// may make different frames of one message ([SliceEncoder.Encode]), so whoever
// compares what two writers have written unpacks it first.
//
// What is listed and watched ends in a slash, or is one whole key: a reader's rights end exactly
// there, and c1 never sees c10. The cluster configuration is watched as a single key.
package wire
