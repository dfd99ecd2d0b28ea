package live

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

// churnFor is how long the mixed mesh changes: a minute, or INTEROP_CHURN.
func churnFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("INTEROP_CHURN")
	if text == "" {
		return time.Minute
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("INTEROP_CHURN: %v", err)
	}
	return d
}

// member is a cluster of the mixed mesh.
type member struct {
	etcd    *etcdtest.Process
	world   *world
	p       publisher
	entries *ours.Reader // this project's stores read it
}

// mesh has two clusters: Cilium publishes c2, and we publish c3. Agents of two others, Cilium's of c1 and ours of c4,
// read both.
type mesh struct {
	t       *testing.T
	members []*member
	files   map[string]string
	cilium  ciliumReader
	agent   *interop.Agent
	quieted []interop.LogLine // the complaints of readers that have ended
	cycles  int
	changes int // objects that were written or deleted
}

// TestMixedMeshUnderChurn: objects of all kinds are created, changed and deleted in both clusters
// while etcds are killed and frozen, and readers killed and started again. After
// that all readers see all objects.
func TestMixedMeshUnderChurn(t *testing.T) {
	t.Parallel()
	seed, over := interop.Seed(t), churnFor(t)
	m := &mesh{t: t, files: map[string]string{}}
	for i, name := range []string{"c2", "c3"} {
		etcd := etcdtest.StartProcess(t)
		m.files[name] = etcd.ConfigFile(t)
		id := uint32(2 + i)
		one := &member{etcd: etcd, world: newWorld(newMaker(seed, name, id).apart(i*few), few)}
		if name == "c2" {
			one.p = interop.Publish(t, interop.Newest, m.files[name], interop.Config(name, id))
		} else {
			one.p = ours.Publish(t, m.files[name], interop.Config(name, id))
		}
		one.entries = ours.Read(t, m.files[name], wire.Expect{Cluster: name, ClusterID: id}, false)
		m.members = append(m.members, one)
		one.p.Put(t, one.world.objects())
		one.p.Synced(t, model.Published()...)
	}
	m.cilium = readWithCilium(t, m.files)
	m.agent = m.newAgent()
	m.seen("at first")
	end := time.Now().Add(over)
	for time.Now().Before(end) {
		m.cycle()
	}
	m.seen("at last")
	m.quiet()
	t.Logf("%d cycles, %d changes", m.cycles, m.changes)
	if t.Failed() {
		return
	}
	interop.KeepTrial(t, interop.Trial{
		Name: "A mesh of two clusters, one published by each side, with changes and faults", Release: interop.Newest,
		Figures: []interop.Figure{
			{Name: "duration", Value: over.String()},
			{Name: "cycles, each with a fault", Value: strconv.Itoa(m.cycles)},
			{Name: "objects written or deleted", Value: strconv.Itoa(m.changes)},
			{Name: "differences at the end", Value: "0"},
			{Name: "seed", Value: strconv.FormatUint(seed, 10)},
		},
	})
}

// cycleChanges is how many objects of each kind are changed, and deleted, in a cycle.
const cycleChanges = few / 10

// cycle changes both clusters before, during and after a fault.
func (m *mesh) cycle() {
	m.t.Helper()
	first, second := m.members[m.cycles%2], m.members[(m.cycles+1)%2]
	m.churn()
	switch m.cycles % 4 {
	case 0:
		first.etcd.Kill(m.t)
		m.churn()
		first.etcd.Restart(m.t)
	case 1:
		second.etcd.Freeze(m.t)
		m.churn()
		second.etcd.Thaw(m.t)
	case 2:
		m.quieted = append(m.quieted, m.cilium.Complaints()...)
		m.cilium.Kill()
		m.churn()
		m.cilium = readWithCilium(m.t, m.files)
	case 3:
		m.quieted = append(m.quieted, m.agent.Complaints(m.t)...)
		m.agent.Kill()
		m.churn()
		m.agent = m.newAgent()
	}
	m.churn()
	m.cycles++
	if m.cycles%4 == 0 { // later changes must not hide a lost one
		m.seen("after " + strconv.Itoa(m.cycles) + " cycles")
	}
}

// churn changes both clusters.
func (m *mesh) churn() {
	m.t.Helper()
	for _, one := range m.members {
		changed, deleted := one.world.churn(cycleChanges, cycleChanges)
		one.p.Put(m.t, changed)
		one.p.Delete(m.t, deleted)
		m.changes += changed.Len() + deleted.Len()
	}
}

// seen waits until all readers see all objects.
func (m *mesh) seen(when string) {
	m.t.Helper()
	var all model.Objects
	for _, one := range m.members {
		objects := one.world.objects()
		all.Add(objects)
		entriesSee(m.t, one.entries, "everything "+when, soon, objects)
	}
	m.cilium.see(m.t, "everything "+when, soon, all)
	interop.Until(m.t, "our agent to see everything "+when, soon,
		sparing(func(ctx context.Context) error { return agentShows(ctx, m.agent, all) }))
}

func (m *mesh) newAgent() *interop.Agent {
	return interop.StartAgent(m.t, "run", "--cluster-name", "c4", "--cluster-id", "4",
		"--clustermesh-config", clusterDir(m.t, m.files), "--kvstore-opt", "etcd.qps=100000")
}

// quiet fails the test if a reader has logged any problem except unreachable etcds.
func (m *mesh) quiet() {
	m.t.Helper()
	interop.Quiet(m.t, "a reader that was ended", m.quieted, append(ciliumIsAway(), weAreAway()...)...)
	interop.Quiet(m.t, "Cilium's reader", m.cilium.Complaints(), ciliumIsAway()...)
	interop.Quiet(m.t, "our agent", m.agent.Complaints(m.t), weAreAway()...)
	interop.Quiet(m.t, "Cilium's publisher", m.members[0].p.(interop.Publisher).Complaints(), ciliumIsAway()...)
}
