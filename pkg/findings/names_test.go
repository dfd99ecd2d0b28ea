package findings

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
)

// TestNamesWithSeveralClusters runs schedules of the clusters behind one name: each step is a time, an etcd, a cluster
// ID and the listed nodes.
func TestNamesWithSeveralClusters(t *testing.T) {
	t.Parallel()
	const conflict = "!"
	for name, schedule := range map[string][]string{
		"one cluster":                                   {"0m a 2 xyz", "1h a 2 xyz", "2h a 2 pqr"},
		"replicas":                                      {"0m a 2 xyz", "1m b 2 xyz", "2m a 2 xyz", "3m b 2 xyz"},
		"replicas while nodes are replaced":             {"0m a 2 xyz", "1m b 2 pyz", "2m a 2 pqz"},
		"replaced by another one":                       {"0m a 2 xyz", "1m b 3 pqr", "2m b 3 pqr"},
		"the etcd was rebuilt, twice":                   {"0m a 2 xyz", "1m b 2 xyz", "2m c 2 xyz"},
		"its ID was changed":                            {"0m a 2 xyz", "1m a 3 xyz"},
		"its ID was changed by mistake":                 {"0m a 2 xyz", "1m a 3 xyz", "2m a 2 xyz"},
		"another cluster in between":                    {"0m a 2 xyz", "1m b 3 pqr", "2m a 2 xyz !", "5m a 2 xyz !", "12m a 2 xyz"},
		"another cluster long ago":                      {"0m a 2 xyz", "1m b 3 pqr", "12m a 2 xyz !", "35m a 2 xyz !", "36m a 2 xyz"},
		"each answers for hours":                        {"0m a 2 xyz", "3h a 2 xyz", "4h b 3 pqr", "9h b 3 pqr", "10h a 2 xyz !", "20h b 3 pqr !", "40h b 3 pqr !", "45h b 3 pqr"},
		"each answers for months":                       {"0m a 2 xyz", "2000h b 3 pqr", "4000h a 2 xyz !", "4023h a 2 xyz !", "4024h a 2 xyz"},
		"clones that answer for hours":                  {"0m a 2 xyz", "5h b 2 pqr", "10h a 2 xyz !"},
		"one that is never synced":                      {"0m a 2 xyz", "1h b 3? -", "2h a 2 xyz !"},
		"a clone that is synced later":                  {"0m a 2 xyz", "1h b 2? xyz", "1h b 2 pqr", "2h a 2? pqr", "2h a 2 xyz !"},
		"a replica that is synced later":                {"0m a 2 xyz", "1h b 2? pqr", "1h b 2 xyz", "2h a 2? xyz"},
		"all nodes are replaced in a month":             {"0m a 2 xyz", "1h b 2 xyz", "700h b 2 pqr", "701h a 2 pqr"},
		"three in turn":                                 {"0m a 2 xyz", "1h b 3 pqr", "2h c 4 uvw", "3h a 2 xyz !"},
		"each time with another etcd":                   {"0m a 2 xyz", "1h b 3 pqr", "2h c 2 xyz", "3h d 3 pqr !"},
		"its ID was changed by mistake, with new etcds": {"0m a 2 xyz", "1h b 3 xyz", "2h c 2 xyz"},
		"two write into one etcd, slowly":               {"0m a 2 xyz", "1h a 3 xyz", "2h a 2 xyz", "3h a 3 xyz !"},
		"another one, then one of two replicas":         {"0m a 2 xyz", "1m b 3 pqr", "2m c 2 xyz", "3m a 2 xyz !"},
		"a clone with the same ID":                      {"0m a 2 xyz", "1m b 2 pqr", "2m a 2 xyz !"},
		"a clone of two nodes":                          {"0m a 2 xy", "1m b 2 pq", "2m a 2 xy"},
		"two write into one etcd":                       {"0m a 2 xyz", "0m a 3 xyz", "1m a 2 xyz", "1m a 3 xyz !", "12m a 3 xyz"},
		"it goes on and on":                             {"0m a 2 xyz", "1m b 3 pqr", "2m a 2 xyz !", "9m a 2 xyz !", "9m b 3 pqr !", "14m a 2 xyz !", "25m a 2 xyz"},
		"another etcd, with an ID that somebody has":    {"0m a 2 xyz", "1m b taken -", "2m a 2 xyz !"},
		"lost in between, and the old ID is still said": {"0m a 2 xyz", "1m b lost -", "2m a 2 xyz"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newClusterNames()
			for _, step := range schedule {
				f := strings.Fields(step)
				after, err := time.ParseDuration(f[0])
				if err != nil {
					t.Fatal(err)
				}
				c := remotecluster.Status{Name: "c2", Connected: true, Ready: true, State: remotecluster.Ready, EtcdClusterID: f[1], Endpoints: []string{"https://x:2379"}}
				switch f[2] {
				case "taken":
					c.Ready, c.State, c.AnsweredID = false, remotecluster.Failed, 7
				case "lost":
					c.Ready, c.Connected, c.State, c.AnsweredID = false, false, remotecluster.Degraded, 7
				default:
					_, _ = fmt.Sscan(strings.TrimSuffix(f[2], "?"), &c.AnsweredID)
					c.Ready = !strings.HasSuffix(f[2], "?")
				}
				found := d.look(epoch.Add(after), []remotecluster.Status{c}, func(string) []*nodes.Node { return nodesNamed(f[3]) })
				if want := f[len(f)-1] == conflict; len(found) > 0 != want {
					t.Errorf("%s: conflicts %v, want one: %t", step, found, want)
				}
			}
			found := d.look(epoch.Add(time.Hour), []remotecluster.Status{{Name: "c2", Endpoints: []string{"https://other:2379"}}}, nil)
			if len(found) > 0 {
				t.Errorf("with other endpoints: %v", found)
			}
			d.look(epoch.Add(time.Hour), nil, nil)
			if len(d.of) > 0 {
				t.Error("what is gone is remembered")
			}
		})
	}
}

// nodesNamed returns a node for each letter.
func nodesNamed(letters string) []*nodes.Node {
	var all []*nodes.Node
	for _, l := range strings.Trim(letters, "-") {
		all = append(all, &nodes.Node{Name: string(l), Addresses: []nodes.Address{{IP: netip.AddrFrom4([4]byte{192, 168, 0, byte(l)})}}})
	}
	return all
}

// TestANameConflictHasTheSameWords: the conflict has the same text for each of the clusters that answer.
func TestANameConflictHasTheSameWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	answer := func(etcd string, id uint32) {
		w.mesh.SetClusters(remotecluster.Status{Name: "c2", Connected: true, Ready: true, State: remotecluster.Ready, EtcdClusterID: etcd, AnsweredID: id})
		w.look()
	}
	for range 20 {
		answer("bb", 3)
		answer("aa", 2)
	}
	w.expectConflicts("two clusters", "cluster-name/c2 c2 since 3s")
	if c := w.conflicts()[0]; !strings.Contains(c.Message, "cluster ID 2 in etcd aa and cluster ID 3 in etcd bb") {
		t.Error(c.Message)
	}
	events := 0
	for e := range w.found.Events().All(w.db.ReadTxn()) {
		if strings.HasPrefix(e.Kind, "conflict") {
			events++
		}
	}
	if events != 1 {
		t.Errorf("%d events about it, want 1", events)
	}
	w.mesh.SetClusters()
	w.look()
	w.expectConflicts("its file is gone")
}

// TestANameTakesLittleMemory: an etcd may report another cluster ID at each connection; the memory stays bounded. A
// cluster that answered rarely is not forgotten while few others answer.
func TestANameTakesLittleMemory(t *testing.T) {
	t.Parallel()
	d := newClusterNames()
	look := func(step int, etcd string, id uint32) bool {
		c := remotecluster.Status{Name: "c2", Connected: true, Ready: true, EtcdClusterID: etcd, AnsweredID: id}
		return len(d.look(epoch.Add(time.Duration(step)*time.Hour), []remotecluster.Status{c}, func(string) []*nodes.Node { return nil })) > 0
	}
	look(0, "first", 9)
	for i := range 1000 {
		look(i+1, []string{"a", "b"}[i%2], 2)
	}
	if !look(2000, "first", 9) {
		t.Error("who answered first is forgotten")
	}
	for i := range 1000 {
		look(i+3000, fmt.Sprint(i), uint32(i+1))
	}
	if n := len(d.of["c2"].list); n > maxAnswers {
		t.Errorf("%d answers are kept", n)
	}
}
