package simulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/simtest/agents"
)

// member is a node that registers itself, and its process, if one runs.
type member struct {
	*agents.Member
	c      *cluster
	net    network
	cancel context.CancelFunc // nil: none runs
	ended  chan error
}

func newMembers(c *cluster, seed uint64) (all []*member) {
	for i, one := range c.Members {
		m := &member{Member: one, c: c}
		m.net.store, m.net.seen, m.net.rng = one.Route, c.w.seen, rand.New(rand.NewPCG(seed, uint64(100*c.Own.ID)+uint64(2000+i))) //nolint:gosec // not negative
		one.Route.SetFault(m.net.fault)
		all = append(all, m)
	}
	return all
}

// start starts a process of the node, if none runs.
func (m *member) start() {
	if m.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(m.c.w.ctx)
	m.cancel, m.ended = cancel, make(chan error, 1)
	ended := m.ended
	go func() { ended <- m.Run(ctx) }()
}

// stop ends the process, if one runs.
func (m *member) stop() {
	if m.cancel == nil {
		return
	}
	m.cancel()
	if err := <-m.ended; !errors.Is(err, context.Canceled) {
		m.c.note(fmt.Errorf("the node %s of %s ended with %w", m.Name, m.c.Own.Name, err))
	}
	m.cancel = nil
}

// ofMember begins the names of the faults of a node that registers itself.
const ofMember = "member-"

// memberFaults are the faults of nodes that register themselves. Some last longer than the leases of a node.
func memberFaults() []fault {
	all := []fault{{
		name: ofMember + "stop", lasts: 2 * time.Minute,
		begin: func(c *cluster, r *rand.Rand) {
			m := c.members[r.IntN(len(c.members))]
			if r.IntN(2) == 0 { // without a last word
				m.net.change(func() { m.net.away = true })
			}
			m.stop()
			m.net.change(func() { m.net.away = false })
		},
		end: func(c *cluster, _ *rand.Rand) {
			for _, m := range c.members {
				m.start()
			}
		},
	}}
	for _, f := range networkFaults() {
		f.lasts *= 3
		all = append(all, f.over(ofMember+f.name, func(c *cluster, r *rand.Rand) *network { return &c.members[r.IntN(len(c.members))].net }))
	}
	return all
}

// clusterOf returns the cluster of a step: the faults of members are those of a cluster that has some.
func (w *world) clusterOf(s Step) *cluster {
	c := w.clusters[s.Cluster%len(w.clusters)]
	if name, _ := cutEnding(s.Do); strings.HasPrefix(name, ofMember) && len(c.members) == 0 {
		return w.clusters[1]
	}
	return c
}

// isSpoiling reports whether a fault changes the contents of a kvstore as no node does.
func isSpoiling(name string) bool {
	for _, one := range []string{"deletion", "replace", "wipe", "backup", "hostile"} {
		if strings.HasPrefix(name, one) {
			return true
		}
	}
	return false
}

// putMember puts one of the nodes that register themselves.
func (d description) putMember() {
	m := d.c.Members[d.IntN(len(d.c.Members))]
	put(d.c.Source.Nodes, m.Name, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: m.Address.String()},
			{Type: corev1.NodeExternalIP, Address: fmt.Sprintf("10.%d.250.%d", d.c.Own.ID, d.IntN(200))},
		}},
	})
}

// numApps is the number of applications of pods that get their identities from nodes: many applications have no pod at times.
const numApps = 50

// appOf draws an application for a pod. The remainder of the number of both by 5 is the same.
func (d description) appOf(n int) string { return fmt.Sprint("a", 5*d.IntN(numApps/5)+n%5) }

// rollout gives many pods the labels of one application, so that all nodes need a number for the same labels at once.
func (d description) rollout() {
	some := d.IntN(5)
	app := d.appOf(some)
	for n := some; n < d.max.Pods; n += 5 {
		if name, ip := d.podOf(n); d.IntN(2) == 0 {
			d.putMemberPod(name, ip, app)
		}
	}
}

// putMemberPod puts a pod of a node that registers itself, perhaps one that was on another node.
func (d description) putMemberPod(name, ip, app string) {
	m := d.c.Members[d.IntN(len(d.c.Members))]
	put(d.c.Source.Pods, full(name), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(name), Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{NodeName: m.Name},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, HostIP: m.Address.String(), PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}},
	})
}
