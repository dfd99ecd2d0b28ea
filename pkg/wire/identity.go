package wire

import (
	"bytes"
	"errors"
	"strconv"
)

// Identity is a set of labels with the number that its cluster gave it.
type Identity struct {
	ID     uint32
	Labels Labels
}

// identityBase is the common start of the paths of identities.
const identityBase = StatePrefix + "/identities/v1"

// IdentityKey returns the key of an identity in its cluster's state; the value
// is [Labels.Encode] (wire.md §1.6).
func IdentityKey(id uint32) string { return IdentityAllocation.Mapping(uint64(id)) }

// Key returns the identity's key in its cluster's state.
func (i Identity) Key() string { return IdentityKey(i.ID) }

// Encode returns the value to write.
func (i Identity) Encode() []byte { return []byte(i.Labels.Encode()) }

// DecodeIdentityName reads the name of an identity's key and checks that the identity lies in the remote's
// range; no other check is needed when an identity is deleted (wire.md §1.6). Leading zeroes are accepted. The
// error is a [*RejectError].
func DecodeIdentityName(name string, e Expect) (uint32, error) {
	if err := bounded(name, nil); err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(name, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, reject(ReasonRange, "identity %s exceeds 32 bits", name)
	case err != nil:
		return 0, reject(ReasonKey, "the key names no numeric identity: %w", err)
	}
	id := uint32(n)
	if id == 0 {
		return 0, reject(ReasonRange, "identity 0 cannot be allocated")
	}
	if lo, hi := e.Layout.Range(e.ClusterID); e.compares() && (id < lo || id > hi) {
		return 0, reject(ReasonRange, "identity %d is outside cluster %s's range %d to %d", id, e.Cluster, lo, hi)
	}
	return id, nil
}

// DecodeIdentity reads the identity with this name and checks that its number and its cluster label are the
// cluster's (wire.md §1.6); the label is required only of remotes. The labels keep their order. The error is a
// [*RejectError].
func DecodeIdentity(name string, value []byte, e Expect) (Identity, error) {
	id, err := DecodeIdentityName(name, e)
	if err != nil {
		return Identity{}, err
	}
	if len(value) == 0 {
		return Identity{}, reject(ReasonMissing, "the labels are unset")
	}
	labels, err := parseIdentityLabels(value)
	if err != nil {
		return Identity{}, err
	}
	if err := labels.validNames(); err != nil {
		return Identity{}, err
	}
	if !e.Own {
		if err := clusterLabel(labels, e.Cluster); err != nil {
			return Identity{}, err
		}
	}
	return Identity{ID: id, Labels: labels}, nil
}

// costLabel is the memory of a label, including what allocator.Labels keeps of it, without its text.
const costLabel = 80

// parseIdentityLabels is [ParseLabels] for the value of a cluster, with bounds.
func parseIdentityLabels(value []byte) (Labels, error) {
	if err := bounded("", value); err != nil {
		return nil, err
	}
	n := bytes.Count(value, []byte(";")) + 1
	if err := atMost(maxLabels, n, "labels"); err != nil {
		return nil, err
	}
	m := newMeter(len(value))
	if err := m.take(n*costLabel + 4*len(value)); err != nil {
		return nil, err
	}
	return ParseLabels(string(value)), nil
}

// validNames checks all texts.
func (ls Labels) validNames() error {
	var c checks
	for _, l := range ls {
		c.key("the source of a label", l.Source, maxSource)
		c.key("the key of a label", l.Key, maxKey)
		c.printable("the value of a label", l.Value)
	}
	return c.err
}

// clusterLabel checks that the labels name this cluster, and no other.
func clusterLabel(labels Labels, cluster string) error {
	found := false
	for _, l := range labels {
		if l.Key != LabelCluster {
			continue
		}
		if l.Source != LabelSourceKubernetes || l.Value != cluster {
			return reject(ReasonLabels, "unexpected cluster label: got %s, expected %s:%s=%s",
				l, LabelSourceKubernetes, LabelCluster, cluster)
		}
		found = true
	}
	if !found {
		return reject(ReasonLabels, "label %s:%s is missing", LabelSourceKubernetes, LabelCluster)
	}
	return nil
}
