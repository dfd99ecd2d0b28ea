package model

// A peer speaks JSON-RPC (net/rpc/jsonrpc) over its standard input and output, and
// logs to its standard error, a JSON object a line. What follows are the arguments
// and answers of its calls. The role that it plays is its first argument.

// KV is a key with its value.
type KV struct {
	Key   string
	Value []byte
}

// Expect is what a reader expects of the cluster that it reads.
type Expect struct {
	Cluster   string
	ClusterID uint32
}

// About is what a peer says of itself: Peer.About.
type About struct {
	Release string // such as 1.20.2
	Kinds   []Kind // those that the release knows
}

// EncodeReply is the answer of Codec.Encode, whose argument is Objects: their keys
// and values, kind by kind, in order.
type EncodeReply struct{ Entries []KV }

// DecodeArgs are the arguments of Codec.Decode.
type DecodeArgs struct {
	Expect  Expect
	Entries []KV
}

// DecodeReply is the answer of Codec.Decode: what the release's readers made of the
// entries, in order, and what they refused.
type DecodeReply struct {
	Objects  Objects
	Rejected []Rejected
}

// DecodeEachReply is the answer of Codec.DecodeEach, which has the same arguments:
// what was made of each entry alone.
type DecodeEachReply struct{ Each []DecodeReply }

// Rejected is an entry that was refused.
type Rejected struct{ Key, Error string }
