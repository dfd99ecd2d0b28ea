package budget

import (
	"math"
	"runtime/debug"
	"testing"
)

// TestPartsFit: the sum of all parts leaves memory for the rest of the program.
func TestPartsFit(t *testing.T) {
	before := debug.SetMemoryLimit(1 << 30)
	defer debug.SetMemoryLimit(before)
	all := int64(0)
	for _, s := range []Part{RemoteEntries, XDSClients, SlowReaders, LargeObjects} {
		all += s.Bytes()
	}
	if !IsLimited() || all > 95<<30/100 || all < 80<<30/100 {
		t.Errorf("all parts of 1 GiB are %d MiB", all>>20)
	}
	debug.SetMemoryLimit(math.MaxInt64)
	if IsLimited() || RemoteEntries.Bytes() < 1<<60 {
		t.Errorf("without a limit the part of remote entries is %d", RemoteEntries.Bytes())
	}
}
