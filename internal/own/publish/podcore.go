package publish

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// podCore decides which values are published for pods, and for which labels identities are needed. It is a pure state
// machine: no I/O, clock, goroutine or lock.
//
// A pod keeps the identity that it had until it has the one that it needs, and
// only then the reference of the old one is given up. Of several pods with one
// address the one that was created first has it, among those with an identity.
type podCore struct {
	pods      map[string]*podState
	claims    map[string][]claim // by address; sorted, the first one has it
	published map[string]string  // values by address
	moved     map[numbered]uint32
}

// numbered is a number that labels had, before they got another one.
type numbered struct {
	text     string
	identity uint32
}

// podState is the state of one pod.
type podState struct {
	want      *wantedPod  // nil: nothing is to be published of it
	identity  uint32      // in force; 0 is none
	held      *reference  // that it uses; nil when it has none
	pending   []reference // that it has, does not use, and gives up
	addresses []string    // that it claims
}

// reference is one use of an identity.
type reference struct {
	labels wire.Labels
	text   string
}

// claim is what a pod says of one address.
type claim struct {
	created    time.Time
	pod, value string
}

// podJob is something that has to be done for a pod.
type podJob struct {
	release bool // else allocate
	reference
}

// entry is a change of a published value; nil deletes it.
type entry struct {
	address string
	value   []byte
}

// publish publishes what changed.
func publish(to Target, changes []entry) {
	for _, e := range changes {
		if e.value == nil {
			to.Delete(e.address)
		} else {
			to.Put(e.address, e.value)
		}
	}
}

func newPodCore() *podCore {
	return &podCore{pods: make(map[string]*podState), claims: make(map[string][]claim), published: make(map[string]string), moved: make(map[numbered]uint32)}
}

// renumber gives pods with these labels another number: those that have the earlier
// one, and those that are just being given it.
func (c *podCore) renumber(text string, from, to uint32) (changes []entry) {
	delete(c.moved, numbered{text, to})
	c.moved[numbered{text, from}] = to
	for name, p := range c.pods {
		if p.held != nil && p.held.text == text && p.identity == from {
			p.identity = to
			changes = append(changes, c.claim(name, p)...)
		}
	}
	return changes
}

// number is what a number is that labels were given a moment ago.
func (c *podCore) number(text string, identity uint32) uint32 {
	for {
		to, moved := c.moved[numbered{text, identity}]
		if !moved {
			return identity
		}
		identity = to
	}
}

// want takes what follows from the objects of a pod; nil is nothing.
func (c *podCore) want(name string, w *wantedPod) []entry {
	p := c.pods[name]
	switch {
	case p == nil && w == nil:
		return nil
	case p == nil:
		p = new(podState)
		c.pods[name] = p
	case w == nil, p.want != nil && p.want.uid != w.uid && (p.held == nil || p.held.text != w.text):
		p.giveUp() // another pod of that name has nothing of this one
	}
	p.want = w
	if w != nil && w.identity != 0 {
		p.giveUp()
		p.identity = w.identity
	}
	changes := c.claim(name, p)
	c.forget(name, p)
	return changes
}

// forget deletes a pod of which nothing is left.
func (c *podCore) forget(name string, p *podState) {
	if p.want == nil && len(p.pending) == 0 {
		delete(c.pods, name)
	}
}

// giveUp is when the pod has no use any more for the identity that it had.
func (p *podState) giveUp() {
	if p.held != nil {
		p.pending = append(p.pending, *p.held)
	}
	p.held, p.identity = nil, 0
}

// needs reports whether the pod needs an identity for its labels.
func (p *podState) needs() bool {
	return p.want != nil && p.want.identity == 0 && (p.held == nil || p.held.text != p.want.text)
}

// needs reports whether the pod of this name needs an identity for its labels.
func (c *podCore) needs(name string) bool {
	p := c.pods[name]
	return p != nil && p.needs()
}

// due reports whether something has to be done for a pod.
func (c *podCore) due(name string) bool {
	p := c.pods[name]
	return p != nil && (len(p.pending) > 0 || p.needs())
}

// next is the next job for a pod; false when there is none. Releases come first, since they wait for nothing.
func (c *podCore) next(name string) (podJob, bool) {
	p := c.pods[name]
	switch {
	case p == nil:
		return podJob{}, false
	case len(p.pending) > 0:
		r := p.pending[0]
		p.pending = slices.Delete(p.pending, 0, 1)
		c.forget(name, p)
		return podJob{release: true, reference: r}, true
	case p.needs():
		return podJob{reference: reference{p.want.labels, p.want.text}}, true
	}
	return podJob{}, false
}

// wants reports whether the pod still needs what a job is about.
func (c *podCore) wants(name string, r reference) bool {
	p := c.pods[name]
	return p != nil && p.needs() && p.want.text == r.text
}

// allocated takes a reference that was made for a pod. A reference that is no longer needed, perhaps because the pod
// was deleted, is released.
func (c *podCore) allocated(name string, r reference, identity uint32) []entry {
	p := c.pods[name]
	if !c.wants(name, r) {
		if p == nil {
			p = new(podState)
			c.pods[name] = p
		}
		p.pending = append(p.pending, r)
		return nil
	}
	p.giveUp()
	p.held, p.identity = &r, c.number(r.text, identity)
	return c.claim(name, p)
}

// claim brings the claims of a pod up to date, and returns what that changes.
func (c *podCore) claim(name string, p *podState) (changes []entry) {
	before := p.addresses
	p.addresses = nil
	if p.want != nil && p.identity != 0 {
		for _, pair := range p.want.pairs {
			pair.Identity = p.identity
			address := pair.Name()
			p.addresses = append(p.addresses, address)
			c.drop(address, name)
			c.claims[address] = append(c.claims[address], claim{p.want.created, name, string(pair.Encode())})
			slices.SortFunc(c.claims[address], func(a, b claim) int { return cmp.Or(a.created.Compare(b.created), strings.Compare(a.pod, b.pod)) })
			changes = c.queueAddress(address, changes)
		}
	}
	for _, address := range before {
		if !slices.Contains(p.addresses, address) {
			c.drop(address, name)
			changes = c.queueAddress(address, changes)
		}
	}
	return changes
}

func (c *podCore) drop(address, pod string) {
	c.claims[address] = slices.DeleteFunc(c.claims[address], func(o claim) bool { return o.pod == pod })
}

// queueAddress adds the change of an address to those that are to be published, if
// the claims ask for one.
func (c *podCore) queueAddress(address string, changes []entry) []entry {
	was, published := c.published[address]
	all := c.claims[address]
	switch {
	case len(all) == 0:
		delete(c.claims, address)
		if !published {
			return changes
		}
		delete(c.published, address)
		return append(changes, entry{address: address})
	case published && was == all[0].value:
		return changes
	}
	c.published[address] = all[0].value
	return append(changes, entry{address, []byte(all[0].value)})
}
