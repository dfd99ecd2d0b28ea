package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// allocation checks, at each revision of the kvstore of a cluster whose nodes allocate identities, that labels have one
// number and a number has one set of labels.
type allocation struct {
	of     wire.Expect
	mu     sync.Mutex
	labels map[string]string            // by number
	inUse  map[string]map[string]string // the number that a node uses, by labels and node
	// spoiled: another client has changed the kvstore. Two numbers of the same labels can stay then, until an operator heals
	// them, and a backup can bring references back, whose leases the nodes keep alive until they end.
	spoiled bool
}

func newAllocation(of wire.ClusterInfo) *allocation {
	return &allocation{of: model.Expect(of.Name, of.ID, 0), labels: make(map[string]string), inUse: make(map[string]map[string]string)}
}

// record adds the changes of one revision; none: everything was lost.
func (a *allocation) record(changes []kvstore.Event) (wrong error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(changes) == 0 {
		a.labels, a.inUse, a.spoiled = make(map[string]string), make(map[string]map[string]string), true
	}
	for _, e := range changes {
		key, value := string(e.Key), string(e.Value)
		if id, is := strings.CutPrefix(key, wire.IdentityAllocation.Mappings()); is {
			if e.Type == kvstore.EventDelete {
				delete(a.labels, id)
			} else {
				a.labels[id] = value
			}
		} else if ref, is := strings.CutPrefix(key, wire.IdentityAllocation.References()); is {
			labels, node := ref[:strings.LastIndex(ref, "/")], ref[strings.LastIndex(ref, "/")+1:]
			if a.inUse[labels] == nil {
				a.inUse[labels] = make(map[string]string)
			}
			if e.Type == kvstore.EventDelete {
				delete(a.inUse[labels], node)
			} else {
				a.inUse[labels][node] = value
			}
		} else if name, is := strings.CutPrefix(key, wire.IPs.Prefix("", false)); is && e.Type == kvstore.EventPut && !a.spoiled {
			wrong = a.address(name, e.Value)
		}
	}
	if a.spoiled || wrong != nil {
		return wrong
	}
	return a.wrong()
}

// wrong returns labels with two numbers, or a use of a number that does not have the labels. mu is held.
func (a *allocation) wrong() error {
	numbers := make(map[string]string)
	for _, id := range slices.Sorted(maps.Keys(a.labels)) {
		labels := a.labels[id]
		if other := numbers[labels]; other != "" {
			return fmt.Errorf("%q have the numbers %s and %s", labels, other, id)
		}
		numbers[labels] = id
	}
	for labels, nodes := range a.inUse {
		for node, id := range nodes {
			if numbers[labels] != id {
				return fmt.Errorf("the node %s uses the number %s of %q, which have the number %q", node, id, labels, numbers[labels])
			}
		}
	}
	return nil
}

// address checks that a pod has the number of labels that it can have ([description.number]). mu is held.
func (a *allocation) address(name string, value []byte) error {
	pair, err := wire.DecodeIP(name, value, a.of)
	if err != nil || pair.Pod == "" {
		return nil // another client has written it
	}
	labels, is := a.labels[fmt.Sprint(pair.Identity)]
	number, err := strconv.Atoi(appOf(labels))
	if pod, _ := strconv.Atoi(pair.Pod[1:]); is && (err != nil || number%5 != pod%5) {
		return fmt.Errorf("%s, the address of the pod %s, has the identity %d, which means %q", name, pair.Pod, pair.Identity, labels)
	}
	return nil
}

// appOf returns the number in the label of an application; empty: there is none.
func appOf(labels string) string {
	_, app, _ := strings.Cut(labels, "k8s:app=a")
	app, _, _ = strings.Cut(app, ";")
	return app
}

// app is the same of an identity.
func (a *allocation) app(id uint32) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return appOf(a.labels[fmt.Sprint(id)])
}

// spoil notes that another client changes the kvstore.
func (a *allocation) spoil() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spoiled = true
}

// mend notes that the effects of that are over if everything is right.
func (a *allocation) mend(apps map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spoiled = a.spoiled && (a.wrong() != nil || a.difference(apps, true) != "")
}

// unallocated returns the first application without a number, or a number without a pod, or a second one; empty: there is none.
// Numbers that are not collected yet count if all is set.
func (a *allocation) unallocated(apps map[string]bool, all bool) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.difference(apps, all && !a.spoiled)
}

func (a *allocation) difference(apps map[string]bool, all bool) string {
	have := make(map[string]string)
	for _, id := range slices.Sorted(maps.Keys(a.labels)) {
		app := appOf(a.labels[id])
		switch other := have[app]; {
		case other != "" && all:
			return fmt.Sprintf("the application %s has the numbers %s and %s", app, other, id)
		case all && !apps[app]:
			return fmt.Sprintf("the number %s of the application %q, which no pod has, is left, used by %d nodes", id, app, len(a.inUse[a.labels[id]]))
		}
		have[app] = id
	}
	for app := range apps {
		if have[app] == "" {
			return fmt.Sprintf("the application %s has no number", app)
		}
	}
	return ""
}
