package findings

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/identities"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// duplicates finds label sets, in any order, that have several numbers in one cluster. There may be a million
// identities, so only a hash of each is kept. When two hashes are equal, the identities are read from the table.
type duplicates struct {
	find      func(cluster string, id uint32) *identities.Identity // nil when there is none
	seed      maphash.Seed
	hashes    map[uint64]uint64   // of each identity, by cluster ID and number
	numbers   map[uint64]uint32   // by hash: one number with this hash
	several   map[uint64][]uint32 // by hash: all numbers with this hash, sorted, where there are several
	cluster   map[uint64]string   // by hash, where there are or were several, until they are judged
	subject   map[uint64]string   // by hash: the key of the conflict that was found
	touched   map[uint64]bool     // hashes to be judged again
	conflicts *conflictSet
}

func newDuplicates(find func(cluster string, id uint32) *identities.Identity) *duplicates {
	return &duplicates{
		find: find, seed: maphash.MakeSeed(),
		hashes: make(map[uint64]uint64), numbers: make(map[uint64]uint32), several: make(map[uint64][]uint32),
		cluster: make(map[uint64]string), subject: make(map[uint64]string), touched: make(map[uint64]bool), conflicts: newConflictSet(),
	}
}

// set takes in an identity after a change or its deletion.
func (d *duplicates) set(i *identities.Identity, deleted bool) {
	at, hash := uint64(i.ClusterID)<<32|uint64(i.ID), d.hash(i)
	old, known := d.hashes[at]
	if known && (deleted || old != hash) {
		d.remove(old, i.ID)
		delete(d.hashes, at)
	}
	if !deleted && (!known || old != hash) {
		d.hashes[at] = hash
		d.add(hash, i)
	}
}

// hash returns a hash of the cluster and the labels, independent of their order.
func (d *duplicates) hash(i *identities.Identity) uint64 {
	sum := maphash.String(d.seed, i.Cluster)
	for l := range i.Labels.All() {
		sum += maphash.Comparable(d.seed, l)
	}
	return sum
}

func (d *duplicates) add(hash uint64, i *identities.Identity) {
	all := d.several[hash]
	if all == nil {
		first, taken := d.numbers[hash]
		if !taken {
			d.numbers[hash] = i.ID
			return
		}
		all = []uint32{first}
	}
	at, there := slices.BinarySearch(all, i.ID)
	if !there {
		all = slices.Insert(all, at, i.ID)
	}
	d.several[hash], d.cluster[hash], d.touched[hash] = all, i.Cluster, true
}

func (d *duplicates) remove(hash uint64, id uint32) {
	all := d.several[hash]
	if all == nil {
		delete(d.numbers, hash)
		return
	}
	if at, there := slices.BinarySearch(all, id); there {
		all = slices.Delete(all, at, at+1)
	}
	d.several[hash], d.touched[hash] = all, true
	d.numbers[hash] = all[0]
	if len(all) == 1 {
		delete(d.several, hash)
	}
}

// look judges the touched hashes.
func (d *duplicates) look(v *verdicts) {
	for hash := range d.touched {
		c := d.twice(d.cluster[hash], d.several[hash])
		old := d.subject[hash]
		if old != "" && (c == nil || c.Key() != old) {
			d.conflicts.set(old, nil, v)
			delete(d.subject, hash)
		}
		if c != nil {
			d.conflicts.set(c.Key(), c, v)
			d.subject[hash] = c.Key()
		}
		if d.several[hash] == nil {
			delete(d.cluster, hash)
		}
	}
	clear(d.touched)
	d.conflicts.judgeMore(d.touch)
}

// touch marks the identities of a conflict to be judged again.
func (d *duplicates) touch(key string) {
	cluster, number, _ := strings.Cut(subjectOf(key), "/")
	id, _ := strconv.ParseUint(number, 10, 32)
	if i := d.find(cluster, uint32(id)); i != nil {
		hash := d.hash(i)
		d.cluster[hash], d.touched[hash] = cluster, true
	}
}

// maxNumbers is how many numbers of one label set are named. maxAsked is how many are read from the table and compared;
// more equal hashes than that are counted without a comparison.
const (
	maxNumbers = 4
	maxAsked   = 16
	maxLabels  = 200 // how many bytes of a label set are shown
)

// twice returns the conflict between some numbers of a cluster; nil when fewer than two of the existing ones have equal
// labels.
func (d *duplicates) twice(cluster string, numbers []uint32) *Conflict {
	var labels string
	var equal []string
	for n, id := range numbers {
		if n < maxAsked {
			i := d.find(cluster, id)
			if i == nil {
				continue
			}
			switch text := sorted(i.Labels); {
			case len(equal) == 0:
				labels = text
			case text != labels:
				continue
			}
		}
		equal = append(equal, strconv.FormatUint(uint64(id), 10))
	}
	if len(equal) < 2 {
		return nil
	}
	if len(labels) > maxLabels {
		labels = strings.ToValidUTF8(labels[:maxLabels], "") + "…"
	}
	return &Conflict{
		Kind: KindIdentity, Code: codes.IdentityTwice, Subject: cluster + "/" + equal[0], Clusters: []string{cluster},
		Message: fmt.Sprintf("%s has allocated %d identities for the same labels: %s, for %s. All of them are valid and have the same policies; the conflict should end when the unused ones are garbage-collected",
			cluster, len(equal), printer.List(equal, maxNumbers), labels),
	}
}

// sorted returns the labels as one text, in a fixed order.
func sorted(ls identities.Labels) string {
	all := ls.Wire()
	slices.SortFunc(all, func(a, b wire.Label) int {
		return strings.Compare(a.Key+"="+a.Source+"="+a.Value, b.Key+"="+b.Source+"="+b.Value)
	})
	return all.String()
}
