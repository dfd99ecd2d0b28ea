package syncstore

type leaseName uint32

const (
	noLease leaseName = iota
	firstLease
)

// leaseNames has short names for the leases of the present keys, and whether each lease is ours.
type leaseNames struct {
	byID map[int64]leaseName
	all  []namedLease // by name, from firstLease on
	free []leaseName
	none bool // our keys have no lease
}

type namedLease struct {
	id   int64
	keys int // number of keys with this lease
	ours bool
}

func newLeaseNames() leaseNames { return leaseNames{byID: make(map[int64]leaseName)} }

func (n *leaseNames) name(id int64, owns func(int64) bool) leaseName {
	if id == 0 {
		return noLease
	}
	name, known := n.byID[id]
	if !known {
		if last := len(n.free) - 1; last >= 0 {
			name, n.free = n.free[last], n.free[:last]
		} else {
			name = firstLease + leaseName(len(n.all)) //nolint:gosec // far fewer
			n.all = append(n.all, namedLease{})
		}
		n.byID[id] = name
		*n.of(name) = namedLease{id: id, ours: owns(id)}
	}
	n.of(name).keys++
	return name
}

func (n *leaseNames) of(name leaseName) *namedLease { return &n.all[name-firstLease] }

func (n *leaseNames) forget(name leaseName) {
	if name < firstLease {
		return
	}
	l := n.of(name)
	if l.keys--; l.keys == 0 {
		delete(n.byID, l.id)
		n.free = append(n.free, name)
	}
}

// ours reports whether this is the lease of a key of ours, which may be none.
func (n *leaseNames) ours(name leaseName) bool {
	if n.none {
		return name == noLease
	}
	return name >= firstLease && n.of(name).ours
}

// refresh determines again which leases are ours, and reports whether this has changed.
func (n *leaseNames) refresh(owns func(int64) bool) (changed bool) {
	for id, name := range n.byID {
		if is := owns(id); is != n.of(name).ours {
			n.of(name).ours, changed = is, true
		}
	}
	return changed
}
