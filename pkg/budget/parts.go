package budget

import (
	"math"
	"runtime/debug"
)

// Part is a percentage of the memory that Go may use (GOMEMLIMIT). All parts are here, so that their sum fits even when
// all are used in full at the same time. The rest is for the program itself, its connections, and garbage that the
// collector has not freed yet.
type Part int64

// The parts.
const (
	RemoteEntries Part = 70 // entries of all remote clusters: the default of --remote-memory
	XDSClients    Part = 8  // the maximum that the agent keeps for xDS clients
	SlowReaders   Part = 8  // old versions that slow readers of the API keep
	LargeObjects  Part = 8  // large objects while they are encoded
)

// Bytes returns the part in bytes; without a memory limit, more than any machine has.
func (p Part) Bytes() int64 { return debug.SetMemoryLimit(-1) / 100 * int64(p) }

// IsLimited reports whether there is a memory limit.
func IsLimited() bool { return debug.SetMemoryLimit(-1) != math.MaxInt64 }
