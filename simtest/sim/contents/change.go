package contents

// Step makes one change like those of real clusters, and returns the operations to write: mostly pods that are added,
// removed, or give their address to another pod, with their services; sometimes an identity or a label of a node. It
// returns no operations when the cluster is too small for any change.
func (m *Model) Step() []Op {
	kind := m.rng.IntN(100)
	for _, try := range []struct {
		below int
		do    func() []Op
	}{
		{68, m.movePods},
		{88, m.replacePod},
		{94, m.relabelNode},
		{100, m.changeIdentity},
		{100, m.movePods},
		{100, m.relabelNode},
	} {
		if kind >= try.below {
			continue
		}
		if ops := try.do(); len(ops) > 0 {
			return ops
		}
	}
	return nil
}

// movePods adds or removes a pod, and stays near the described number.
func (m *Model) movePods() []Op {
	slack := m.c.Addresses/10 + 2
	add := m.rng.IntN(2) == 0
	if m.live < m.c.Addresses-slack {
		add = true
	} else if m.live > m.c.Addresses+slack {
		add = false
	}
	if m.c.Addresses == 0 {
		return nil
	}
	if add {
		return m.addPod()
	}
	return m.removePod()
}

// addPod adds a pod of a workload that lost one, like a Deployment; if there is none, some workload grows.
func (m *Model) addPod() []Op {
	n := int32(m.rng.IntN(len(m.nodes)))
	if !m.hasRoom(n) {
		return nil
	}
	w := m.nextWorkload()
	i := m.place(w, n, len(m.workloads[w].backends) < m.c.Backends && len(m.workloads[w].services) > 0)
	ops := []Op{m.podOp(i)}
	if m.pods[i].serves {
		ops = append(ops, m.changedServices(w)...)
	}
	return ops
}

func (m *Model) nextWorkload() int32 {
	if k := len(m.missing); k > 0 {
		at := m.rng.IntN(k)
		w := m.missing[at]
		m.missing[at] = m.missing[k-1]
		m.missing = m.missing[:k-1]
		return w
	}
	return int32(m.rng.IntN(len(m.workloads)))
}

func (m *Model) removePod() []Op {
	i, ok := m.anyPod()
	if !ok {
		return nil
	}
	w, served := m.pods[i].workload, m.pods[i].serves
	ops := []Op{{Key: m.podKey(i)}}
	m.unserve(i)
	m.remove(i)
	m.missing = append(m.missing, w)
	if served {
		ops = append(ops, m.changedServices(w)...)
	}
	return ops
}

// replacePod gives the address of a pod to a new one, mostly of the same workload.
func (m *Model) replacePod() []Op {
	i, ok := m.anyPod()
	if !ok {
		return nil
	}
	p := &m.pods[i]
	old, served := p.workload, p.serves
	m.unserve(i)
	m.serial++
	p.serial = m.serial
	if len(m.missing) > 0 && m.rng.IntN(4) == 0 {
		p.workload = m.nextWorkload()
		m.missing = append(m.missing, old)
	}
	w := &m.workloads[p.workload]
	if len(w.services) > 0 && len(w.backends) < m.c.Backends {
		p.serves = true
		w.backends = append(w.backends, i)
	}
	ops := []Op{m.podOp(i)}
	if served {
		ops = append(ops, m.changedServices(old)...)
	}
	if p.serves && (!served || p.workload != old) {
		ops = append(ops, m.changedServices(p.workload)...)
	}
	return ops
}

// anyPod picks a live pod, but never the first one, which stays so that people can look it up.
func (m *Model) anyPod() (int32, bool) {
	if m.live <= 1 {
		return 0, false
	}
	for {
		i := 1 + m.rng.IntN(len(m.pods)-1)
		if m.pods[i].workload != gone {
			return int32(i), true
		}
	}
}

func (m *Model) relabelNode() []Op {
	if len(m.nodes) == 0 {
		return nil
	}
	i := m.rng.IntN(len(m.nodes))
	m.nodes[i].cordoned = !m.nodes[i].cordoned
	return []Op{m.nodeOp(i)}
}

// changeIdentity allocates an identity without a pod, like the one that a finished job leaves behind, or removes the
// oldest of these.
func (m *Model) changeIdentity() []Op {
	if m.c.Identities == 0 {
		return nil
	}
	most := min(m.c.Identities/10+2, spareIdentities/2)
	if len(m.spares) < most && (len(m.spares) == 0 || m.rng.IntN(2) == 0) {
		first, last := m.layout.Range(m.id)
		free := int(last-first+1) - m.c.Identities
		serial := m.c.Identities + m.spareSeen%free
		m.spareSeen++
		s := spare{slot: m.Slots.Take(), identity: m.identityNumber(serial), serial: serial}
		m.spares = append(m.spares, s)
		return []Op{m.spareOp(s)}
	}
	s := m.spares[0]
	m.spares = m.spares[1:]
	m.Slots.Give(s.slot)
	return []Op{{Key: m.spareOp(s).Key}}
}

// changedServices writes the services of workload w again, after its backends changed.
func (m *Model) changedServices(w int32) []Op {
	var ops []Op
	for _, s := range m.workloads[w].services {
		sv := &m.services[s]
		for len(sv.sliceSlots) < m.sliceCount(sv) {
			sv.sliceSlots = append(sv.sliceSlots, m.Slots.Take())
		}
		for k := len(sv.sliceSlots); k > m.sliceCount(sv); k-- {
			ops = append(ops, Op{Key: m.sliceKey(int(s), k-1)})
			m.Slots.Give(sv.sliceSlots[k-1])
			sv.sliceSlots = sv.sliceSlots[:k-1]
		}
		ops = append(ops, m.serviceOps(s, false)...)
	}
	return ops
}
