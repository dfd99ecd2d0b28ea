package view

import "github.com/mesh-agent/mesh-agent/pkg/remotecluster"

// OldBytes is about how many bytes of old versions the ring keeps: versions of objects that were changed or deleted
// since. The newest change is always kept, even above this limit. Above it, the oldest changes are dropped, of the kind
// whose old versions take the most. A reader that follows that kind and has not read them yet is sent the differences,
// or the state again; see [Stream.catchUp].
const OldBytes int64 = 16 << 20

// oldVersions counts the old versions that the ring keeps alive. The old version of a change is its object before: the
// object itself is the newest version, or counts with the change after it.
type oldVersions struct {
	of      []oldOfKind // by index of the kind
	sum     int64       // bytes
	dropped uint64      // changes that were dropped from the ring because of the limit in bytes

	ever    int64   // bytes of all versions that were replaced since the start
	marks   []int64 // the value of ever before each change of the ring
	current int64   // bytes of the newest versions of all objects
}

type oldOfKind struct {
	bytes  int64
	oldest uint64 // position before the oldest change that is not dropped, or an earlier one
}

func (o *oldVersions) add(e *feedEntry) {
	o.of[e.resource].bytes += int64(e.cost)
	o.sum += int64(e.cost)
	o.ever += int64(e.cost)
}

// forget subtracts an entry that leaves the ring.
func (o *oldVersions) forget(e *feedEntry) {
	o.of[e.resource].bytes -= int64(e.cost)
	o.sum -= int64(e.cost)
}

// most returns the kind whose old versions take the most.
func (o *oldVersions) most() int {
	most := 0
	for i := range o.of {
		if o.of[i].bytes > o.of[most].bytes {
			most = i
		}
	}
	return most
}

// thin drops changes until the old versions fit; mu is held. A kind that takes less than its share loses no changes.
func (f *feed) thin() {
	for f.old.sum > f.room && f.dropOldest(f.old.most()) {
	}
}

// dropOldest drops the oldest changes of a kind, up to the first one that keeps an old version alive: those before it
// may have the same version as their object. It returns false when only the newest change keeps one.
func (f *feed) dropOldest(resource int) bool {
	kind := &f.old.of[resource]
	for p := max(kind.oldest, f.seq-uint64(len(f.ring))); p+1 < f.seq; p++ {
		e := &f.ring[p%f.size]
		kind.oldest = p + 1
		if e.resource != resource || e.object == nil {
			continue
		}
		cost := e.cost
		f.old.forget(e)
		*e = feedEntry{resource: resource}
		f.lost[resource] = p + 1
		f.old.dropped++
		if cost > 0 {
			return true
		}
	}
	return false
}

// About how much memory objects take that are in no table, without their texts, which are bounded.
const (
	costCluster = 2048
	costSource  = 512
	costHealth  = 512
)

func clusterCost(c remotecluster.Status) int {
	return costCluster + costSource*len(c.Families) + len(c.Message) + len(c.LastError)
}

func healthCost(h HealthItem) int { return costHealth + len(h.Message) }
