package ipcache

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// TestSnapshotsAreSharedAndYoung: all readers share one snapshot for 10 ms, and for longer while nothing changes. A
// reader never gets an older one, also when the writer is idle.
func TestSnapshotsAreSharedAndYoung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New(Rules{})
		claim := func(addr string) {
			c.Apply([]Op{{New: NewEntry(Spec{Prefix: netip.MustParsePrefix(addr), Cluster: &Claimant{"a", 1}})}})
		}
		claim("10.0.0.1/32")
		first := c.Snapshot()
		if first.Len() != 1 || first.Revision() != c.Revision() {
			t.Fatalf("the first snapshot has %d prefixes at %d", first.Len(), first.Revision())
		}
		claim("10.0.0.2/32")
		<-time.After(snapshotAge - 1)
		if c.Snapshot() != first {
			t.Error("another snapshot within 10 ms")
		}
		<-time.After(1)
		second := c.Snapshot()
		if second.Len() != 2 || second.Revision() != c.Revision() {
			t.Errorf("after 10 ms the snapshot has %d prefixes, want 2", second.Len())
		}
		<-time.After(time.Hour)
		if c.Snapshot() != second {
			t.Error("another snapshot of an unchanged cache")
		}
		claim("10.0.0.2/32") // again: no change
		if c.Snapshot() != second {
			t.Error("another snapshot after a change that was none")
		}
		claim("10.0.0.3/32")
		if got := c.Snapshot().Len(); got != 3 {
			t.Errorf("the change after an idle hour is not seen: %d prefixes, want 3", got)
		}
		if first.Len() != 1 || second.Len() != 2 {
			t.Error("a snapshot changed")
		}
	})
}
