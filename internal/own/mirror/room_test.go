package mirror

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestWhatFollowsFromTheSize: one step after another.
func TestWhatFollowsFromTheSize(t *testing.T) {
	t.Parallel()
	const quota = 1000 << 20
	now := time.Now()
	says := func(size, used int64, change ...func(*kvstore.ServerStatus)) kvstore.ServerStatus {
		s := kvstore.ServerStatus{DBSize: size << 20, DBInUse: used << 20, DBQuota: quota, AskedAt: now}
		for _, f := range change {
			f(&s)
		}
		return s
	}
	untold := func(s *kvstore.ServerStatus) { s.DBQuota = 0 }
	alarm := func(s *kvstore.ServerStatus) { s.Alarms = []string{"memberID:1 alarm:NOSPACE "} }
	g := gauge{Room: Room{Quota: quota / 2, StopAt: 80}}
	var reached []codes.Code
	for i, step := range []struct {
		s      kvstore.ServerStatus
		fullAt time.Time
		grant  int64
		code   codes.Code
		why    string
	}{
		{kvstore.ServerStatus{Error: "permission denied"}, time.Time{}, syncstore.Unbounded, codes.OwnEtcdUnknown, "permission denied"},
		{kvstore.ServerStatus{Error: "permission denied"}, now.Add(-time.Second), 0, codes.OwnEtcdFull, "no space left"},
		{kvstore.ServerStatus{Error: "permission denied"}, now.Add(-time.Hour), syncstore.Unbounded, codes.OwnEtcdUnknown, "permission denied"},
		{says(700, 600), time.Time{}, 200 << 20, codes.OwnEtcdRoom, ""},
		{says(700, 700, untold), time.Time{}, 0, codes.OwnEtcdFull, "its file has 700 MiB of 500 MiB"},
		{says(400, 300, untold), time.Time{}, 100 << 20, codes.OwnEtcdRoom, ""},
		{says(400, 0, untold), time.Time{}, 0, codes.OwnEtcdFull, "400 MiB of 500 MiB are in use"}, // an etcd that does not report the size in use
		{says(800, 789), time.Time{}, 0, codes.OwnEtcdFull, ""},
		{says(800, 760), time.Time{}, 0, codes.OwnEtcdFull, ""}, // not below the limit at which it continues
		{says(800, 740), time.Time{}, 60 << 20, codes.OwnEtcdRoom, ""},
		{says(800, 789), time.Time{}, 11 << 20, codes.OwnEtcdRoom, ""},
		{says(800, 791), time.Time{}, 0, codes.OwnEtcdFull, "791 MiB of 1000 MiB are in use; other writes continue below 75%"},
		{says(960, 100), time.Time{}, 0, codes.OwnEtcdFull, ""}, // it has not gone on meanwhile
		{says(900, 100), time.Time{}, 700 << 20, codes.OwnEtcdRoom, ""},
		{says(960, 100), time.Time{}, 0, codes.OwnEtcdFull, "defragment"},
		{says(900, 100, alarm), time.Time{}, 0, codes.OwnEtcdFull, ""},
		{says(900, 100), now.Add(time.Second), 0, codes.OwnEtcdFull, ""}, // it has refused a write since
		{says(900, 100), now.Add(-time.Second), 700 << 20, codes.OwnEtcdRoom, ""},
		{says(900, 100, alarm), time.Time{}, 0, codes.OwnEtcdFull, "NOSPACE"},
	} {
		if grant := g.judge(step.s, step.fullAt, now); grant != step.grant || g.code != step.code || !strings.Contains(g.why, step.why) {
			t.Errorf("step %d: %d MiB are granted, want %d; %s: %s", i, grant>>20, step.grant>>20, g.code, g.why)
		}
		reached = append(reached, g.code)
	}
	codestest.Reached(t, codes.Mirror, reached...)
	g = gauge{Room: Room{Quota: quota}}
	if grant := g.judge(says(999, 999), time.Time{}, now); grant != syncstore.Unbounded {
		t.Error("it stops although it shall not")
	}
}

// TestOurOwnEtcdIsNotFilled: a remote has more than our own etcd may take. The copy stops before the quota, others can
// write, and when the remote has less, and old revisions are compacted, it continues.
func TestOurOwnEtcdIsNotFilled(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	const quota = 12 << 20
	w := newWorld(t, etcdtest.WithConfig(etcdserver.Config{QuotaBytes: quota}))
	a, b := w.remote("a", 1), w.remote("b", 2)
	var raw [36 << 10]byte
	_, err := rand.Read(raw[:])
	must(t, err)
	junk := base64.StdEncoding.AppendEncode(nil, raw[:])
	const many = 4 * quota / (48 << 10)
	name := func(i int) string { return wire.Nodes.Key("a", false, fmt.Sprintf("junk-%d", i)) }
	for i := range many {
		must(t, a.Put(t.Context(), name(i), junk))
	}
	w.join(a)
	m := w.mirror()
	client := w.etcd.Client(t)
	size := func() int64 {
		t.Helper()
		st, err := client.Status(t.Context(), w.etcd.Endpoint())
		must(t, err)
		return st.DbSize
	}
	stopped := func(name string) bool {
		c := m.state(name)
		return c.Code == codes.CopyStopped && strings.Contains(c.Message, "continue below 75%") && c.State != remotecluster.Ready
	}
	waittest.Until(t, "the copy to stop", func() bool {
		code, why := m.Stopped()
		return code == codes.OwnEtcdFull && strings.Contains(why, "in use") && stopped("a")
	})
	w.join(b)
	waittest.Until(t, "the other copy to wait", func() bool { return stopped("b") })
	reg := prometheus.NewPedanticRegistry()
	must(t, reg.Register(NewCollector(m.Mirror)))
	const shown = "mesh_agent_mirror_stopped"
	must(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP mesh_agent_mirror_stopped 1 while nothing but deletions is copied, because the own etcd is nearly full.
# TYPE mesh_agent_mirror_stopped gauge
mesh_agent_mirror_stopped 1
# HELP mesh_agent_mirror_own_etcd_quota_bytes The quota of the own etcd: as it says, or else as --own-kvstore-quota does.
# TYPE mesh_agent_mirror_own_etcd_quota_bytes gauge
mesh_agent_mirror_own_etcd_quota_bytes `+strconv.Itoa(quota)+"\n"), shown, "mesh_agent_mirror_own_etcd_quota_bytes"))
	if n := len(w.cache(wire.Nodes.Prefix("a", true))); n < many/20 || n > many/2 {
		t.Errorf("%d of %d keys were copied", n, many)
	}
	if n := size(); n >= quota {
		t.Errorf("our own etcd has %d bytes, its quota is %d", n, quota)
	}
	alarms, err := client.AlarmList(t.Context())
	must(t, err)
	_, err = client.Put(t.Context(), "cilium/state/identities/v1/id/1000", "k8s:app=new;")
	if err != nil || len(alarms.Alarms) > 0 {
		t.Errorf("an allocator cannot write: %v, %v", err, alarms)
	}

	for i := range many {
		must(t, a.Delete(t.Context(), name(i)))
	}
	waittest.Until(t, "the deletions", func() bool { return len(w.cache(wire.Nodes.Prefix("a", true))) <= a.Cluster().Nodes })
	ctx := t.Context()
	_, err = etcdserver.Compact(ctx, client)
	must(t, err)
	// The file keeps its size, and may be too near the quota by itself.
	_, err = client.Defragment(ctx, client.Endpoints()[0])
	must(t, err)
	// Compacted space counts as free with the next commits: other clients write all the time.
	waittest.Until(t, "it to go on", func() bool {
		_, err := client.Put(ctx, "cilium/.heartbeat", time.Now().String())
		must(t, err)
		code, _ := m.Stopped()
		return code == ""
	})
	_, err = client.Delete(ctx, "cilium/state/identities/v1/id/1000")
	must(t, err)
	w.equal(a, b)
	must(t, a.Put(t.Context(), name(0), bytes.Repeat([]byte("x"), 1000)))
	w.equal(a, b)
}

// TestARemotesChurnLeavesOthersAlone: one writes much more than its rate, and has more keys than its budget; another
// one's writes are copied at the same time, and no more of the first one's than its share.
func TestARemotesChurnLeavesOthersAlone(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	w := newWorld(t)
	a, b := w.remote("a", 1), w.remote("b", 2)
	const many, share = 1500, 600
	for i := range many {
		must(t, a.Put(t.Context(), wire.Nodes.Key("a", false, fmt.Sprintf("junk-%d", i)), []byte("x")))
	}
	w.join(a)
	w.join(b)
	began := time.Now()
	m := w.mirror(func(p *Params) {
		budgets, err := budget.ParseOn(DefaultBudget(), map[string]string{"a.nodes.keys": strconv.Itoa(share)})
		must(t, err)
		p.Budgets, p.Rate = budgets, syncstore.Rate{Writes: 200, WritesAtOnce: 300}
	})
	nodes := func() int { return len(w.cache(wire.Nodes.Prefix("a", true))) }
	waittest.Until(t, "the other copy", func() bool { return len(w.cache(wire.IPs.Prefix("b", true))) == b.Cluster().Addresses })
	must(t, b.Put(t.Context(), wire.Nodes.Key("b", false, "new"), []byte("x")))
	waittest.Until(t, "its change", func() bool { return w.copied()[wire.Nodes.Key("b", true, "new")] == "x" })
	if n, most := nodes(), 300+int(200*time.Since(began).Seconds())+kvstore.MaxWrites; n > most {
		t.Errorf("%d keys were copied before it, the rate allows %d", n, most)
	}
	waittest.Until(t, "the share of the first", func() bool { return nodes() == share })
	waittest.Until(t, "the status to say so", func() bool {
		return m.state("a").Code == codes.OverBudget && strings.Contains(m.state("a").Message, "nodes.keys")
	})
	if n := nodes(); n != share {
		t.Errorf("%d keys were copied, the share is %d", n, share)
	}
}
