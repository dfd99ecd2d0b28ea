package sim

// step makes one change of the kind that real clusters see, and returns what
// has to be written: mostly pods that come, go, or give their address to
// another pod, with the services that they stand behind; now and then an
// identity or a label of a node. It returns nothing when the cluster is too
// small for any change.
func (m *model) step() []op {
	kind := m.rng.IntN(100)
	for _, try := range []struct {
		below int
		do    func() []op
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

// movePods adds or removes a pod, staying near the number that was asked for.
func (m *model) movePods() []op {
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

// addPod brings back a pod of a workload that lost one, as a Deployment does;
// when none did, some workload grows.
func (m *model) addPod() []op {
	n := int32(m.rng.IntN(len(m.nodes)))
	if !m.hasRoom(n) {
		return nil
	}
	w := m.nextWorkload()
	i := m.place(w, n, len(m.workloads[w].backends) < m.c.Backends && len(m.workloads[w].services) > 0)
	ops := []op{m.podOp(i)}
	if m.pods[i].serves {
		ops = append(ops, m.changedServices(w)...)
	}
	return ops
}

func (m *model) nextWorkload() int32 {
	if k := len(m.missing); k > 0 {
		at := m.rng.IntN(k)
		w := m.missing[at]
		m.missing[at] = m.missing[k-1]
		m.missing = m.missing[:k-1]
		return w
	}
	return int32(m.rng.IntN(len(m.workloads)))
}

func (m *model) removePod() []op {
	i, ok := m.anyPod()
	if !ok {
		return nil
	}
	w, served := m.pods[i].workload, m.pods[i].serves
	ops := []op{{key: m.podKey(i)}}
	m.unserve(i)
	m.remove(i)
	m.missing = append(m.missing, w)
	if served {
		ops = append(ops, m.changedServices(w)...)
	}
	return ops
}

// replacePod gives the address of a pod to a new one, mostly of the same workload.
func (m *model) replacePod() []op {
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
	ops := []op{m.podOp(i)}
	if served {
		ops = append(ops, m.changedServices(old)...)
	}
	if p.serves && (!served || p.workload != old) {
		ops = append(ops, m.changedServices(p.workload)...)
	}
	return ops
}

// anyPod picks a live pod, but never the first one, which stays for people to
// look up.
func (m *model) anyPod() (int32, bool) {
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

func (m *model) relabelNode() []op {
	if len(m.nodes) == 0 {
		return nil
	}
	i := m.rng.IntN(len(m.nodes))
	m.nodes[i].cordoned = !m.nodes[i].cordoned
	return []op{m.nodeOp(i)}
}

// changeIdentity allocates an identity that no pod has, as a job that is over
// leaves behind, or removes the oldest of them.
func (m *model) changeIdentity() []op {
	if m.c.Identities == 0 {
		return nil
	}
	most := min(m.c.Identities/10+2, spareIdentities/2)
	if len(m.spares) < most && (len(m.spares) == 0 || m.rng.IntN(2) == 0) {
		first, last := m.layout.Range(m.id)
		free := int(last-first+1) - m.c.Identities
		serial := m.c.Identities + m.spareSeen%free
		m.spareSeen++
		s := spare{slot: m.slots.take(), identity: m.identityNumber(serial), serial: serial}
		m.spares = append(m.spares, s)
		return []op{m.spareOp(s)}
	}
	s := m.spares[0]
	m.spares = m.spares[1:]
	m.slots.give(s.slot)
	return []op{{key: m.spareOp(s).key}}
}

// changedServices writes the services of workload w again, after its backends
// changed.
func (m *model) changedServices(w int32) []op {
	var ops []op
	for _, s := range m.workloads[w].services {
		sv := &m.services[s]
		for len(sv.sliceSlots) < m.sliceCount(sv) {
			sv.sliceSlots = append(sv.sliceSlots, m.slots.take())
		}
		for k := len(sv.sliceSlots); k > m.sliceCount(sv); k-- {
			ops = append(ops, op{key: m.sliceKey(int(s), k-1)})
			m.slots.give(sv.sliceSlots[k-1])
			sv.sliceSlots = sv.sliceSlots[:k-1]
		}
		ops = append(ops, m.serviceOps(s, false)...)
	}
	return ops
}
