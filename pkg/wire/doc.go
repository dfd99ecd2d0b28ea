// Package wire encodes and decodes the ClusterMesh kvstore format: every key path and every value, as in Cilium
// v1.20. Comments cite the sections of its description, wire.md.
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
// The contents and the memory of a value are bounded before it is built: see [MaxName], [MaxValue] and
// [MaxCost]. A value beyond a bound is rejected for [ReasonTooLarge]. A test of pkg/clustermesh measures the
// cost of every decoder, including the memory of the tables.
//
// # Names
//
// A key is a full path in the kvstore; a name is a key without the prefix that a reader lists
// ([Resource.Prefix]). Encoders write with encoding/json version 1, because peers read its exact bytes.
//
// Keys and values are Cilium's byte for byte, with one exception: for an endpoint slice this holds for the
// message, before it is compressed. Two releases of the compressor may make different frames of one message
// ([SliceEncoder.Encode]), so values of two writers have to be unpacked before they are compared.
//
// A prefix that is listed and watched ends in a slash, or is one whole key. A reader's rights end exactly
// there, so the prefix of c1 never includes the keys of c10. The cluster configuration is watched as a single
// key.
package wire
