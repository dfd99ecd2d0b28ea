package identity

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Owner is the cluster whose identities are allocated.
type Owner struct {
	// Name and ID are the cluster's; Layout is the mesh's.
	Name   string
	ID     uint32
	Layout wire.Layout
}

// Validate says everything that is wrong.
func (c Owner) Validate() error {
	var errs []error
	if err := wire.ValidateClusterName(c.Name); err != nil {
		errs = append(errs, fmt.Errorf("the cluster name %q: %w", c.Name, err))
	}
	if c.ID > c.Layout.Max() {
		errs = append(errs, fmt.Errorf("the cluster ID %d is above %d", c.ID, c.Layout.Max()))
	}
	return errors.Join(errs...)
}

// Range is the first and the last identity of the cluster.
func (c Owner) Range() (first, last uint32) { return c.Layout.Range(c.ID) }

// ErrLabels is the error for labels that cannot have an identity.
var ErrLabels = errors.New("these labels cannot have an identity")

// Reserved returns the identity that is fixed for these labels, and false when one has to be
// allocated: a set with a label of the source "reserved" is reserved as a whole.
func (c Owner) Reserved(labels wire.Labels) (id uint32, reserved bool, err error) {
	for _, l := range labels {
		if l.Source != wire.LabelSourceReserved {
			continue
		}
		if len(labels) > 1 {
			return 0, true, fmt.Errorf("%w: a reserved label (%s) stands alone", ErrLabels, l)
		}
		if id, ok := reservedID(l.Key); ok {
			return id, true, nil
		}
		return 0, true, fmt.Errorf("%w: no identity is reserved for %s", ErrLabels, l)
	}
	return 0, false, nil
}

// reservedID is the reverse of [wire.ReservedIdentityName]. The identity 0 is none.
func reservedID(name string) (uint32, bool) {
	for id := uint32(1); ; id++ {
		switch n, ok := wire.ReservedIdentityName(id); {
		case !ok:
			return 0, false
		case n == name:
			return id, true
		}
	}
}

// Own returns the labels with the one that names the cluster, which is added if it is missing. The
// error is for labels that name another cluster, for an empty set, and for labels that would not
// survive being stored: a semicolon, and an equals sign in a key (wire.md §1.6).
func (c Owner) Own(labels wire.Labels) (wire.Labels, error) {
	if len(labels) == 0 {
		return nil, fmt.Errorf("%w: there is none", ErrLabels)
	}
	named := false
	for _, l := range labels {
		if l.Key == wire.LabelCluster {
			if l.Source != wire.LabelSourceKubernetes || l.Value != c.Name {
				return nil, fmt.Errorf("%w: %s names another cluster than %q", ErrLabels, l, c.Name)
			}
			named = true
		}
	}
	if !named {
		labels = append(slices.Clone(labels), wire.Label{Source: wire.LabelSourceKubernetes, Key: wire.LabelCluster, Value: c.Name})
	}
	if !survive(labels) {
		return nil, fmt.Errorf("%w: %s would be read as other labels; no part may have a semicolon, and no key an equals sign", ErrLabels, labels)
	}
	return labels, nil
}

// survive reports whether labels are read as they are written. Of two with one bare
// key the last is written.
func survive(labels wire.Labels) bool {
	want := make(map[string]wire.Label, len(labels))
	for _, l := range labels {
		want[l.Key] = l
	}
	read := wire.ParseLabels(labels.Encode())
	for _, l := range read {
		if want[l.Key] != l {
			return false
		}
	}
	return len(read) == len(want)
}

// NodeSuffix is the name under which a node holds its references: its address,
// the IPv4 one if it has one (wire.md §5).
func NodeSuffix(addresses ...netip.Addr) (string, error) {
	var six netip.Addr
	for _, a := range addresses {
		switch a = a.Unmap().WithZone(""); {
		case a.Is4():
			return a.String(), nil
		case a.IsValid() && !six.IsValid():
			six = a
		}
	}
	if !six.IsValid() {
		return "", errors.New("the node has no address, which must end the keys of its references; --node-ip gives one")
	}
	return six.String(), nil
}
