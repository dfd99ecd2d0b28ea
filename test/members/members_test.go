package members

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/buildtest"
	"github.com/mesh-agent/mesh-agent/simtest/members"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

var must = waittest.Must

func start(t *testing.T, change func(*members.Settings)) *members.Mesh {
	t.Helper()
	s := members.DefaultSettings()
	s.Program = buildtest.Agent(t)
	var err error
	if s.Dir, err = os.MkdirTemp("", "members-"); err != nil { // short, for the sockets' paths
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(s.Dir) })
	change(&s)
	m, err := members.Start(s)
	t.Cleanup(func() {
		if err := m.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			logs(t, m)
		}
	})
	must(t, err)
	return m
}

// logs shows the log lines of the processes, except those of level info.
func logs(t *testing.T, m *members.Mesh) {
	t.Helper()
	for _, c := range m.Clusters {
		for _, p := range c.Processes() {
			text, _ := os.ReadFile(p.Log) // without a log there are no lines
			for line := range strings.Lines(string(text)) {
				if !strings.Contains(line, "level=info") {
					t.Logf("%s %s: %s", c.Name, p.Name, line)
				}
			}
		}
	}
}

// TestThreeClustersWithoutCilium: every agent sees every cluster, through the mirrors. Global services fail over by
// their affinity when backends disappear, and fail back.
func TestThreeClustersWithoutCilium(t *testing.T) {
	t.Parallel()
	waittest.Long(t)
	m := start(t, func(*members.Settings) {})
	var agents []*members.Process
	for _, c := range m.Clusters {
		agents = append(agents, c.Agents...)
	}
	for _, agent := range agents {
		waittest.Try(t, agent.Socket+" to see everything", func() error { return sees(t, m, agent) })
	}
	t.Cleanup(func() { noneIsRefused(t, m) })
	first, second := m.Clusters[0], m.Clusters[1]
	near, far := first.Agents[1], second.Agents[0]
	for agent, want := range map[*members.Process][2]string{
		near: {"MEMBER1 member2 member3", "member1 MEMBER2 MEMBER3"},
		far:  {"member1 MEMBER2 member3", "MEMBER1 member2 MEMBER3"},
	} {
		uses(t, agent, "web", want[0])
		uses(t, agent, "cart", want[1])
		if _, err := agentapi.Get[api.Service](t.Context(), agent.Socket, "services", members.Namespace, "stock"); err != nil {
			t.Errorf("the service of its own cluster alone: %v", err)
		}
	}

	d := first.Describe(m.Nodes)
	d.Service("web").Down, d.Service("cart").Down = true, true
	write(t, first, d)
	uses(t, near, "web", "member2 member3")  // local affinity without local backends: the remotes
	uses(t, near, "cart", "MEMBER2 MEMBER3") // remote affinity: as before
	uses(t, far, "web", "MEMBER2 member3")
	uses(t, far, "cart", "member2 MEMBER3")

	d.Service("web").Down, d.Service("cart").Down = false, false
	d.Service("cart").Global = false
	write(t, first, d)
	uses(t, near, "web", "MEMBER1 member2 member3")
	uses(t, near, "cart", "member1 member2 member3") // they are shown, but only the local ones are used
	uses(t, far, "cart", "member2 MEMBER3")
}

// noneIsRefused: no process was denied a request with the rights of its user.
func noneIsRefused(t *testing.T, m *members.Mesh) {
	t.Helper()
	for _, c := range m.Clusters {
		for _, p := range c.Processes() {
			text, err := os.ReadFile(p.Log)
			if err != nil {
				t.Error(err)
			}
			if strings.Contains(string(text), "permission denied") {
				t.Errorf("%s %s wants more than it may:\n%s", c.Name, p.Name, text)
			}
		}
	}
}

func write(t *testing.T, c *members.Cluster, d *members.Description) {
	t.Helper()
	must(t, d.Write(c.Manifests()))
}

// leader finds the process that leads.
func leader(t *testing.T, of []*members.Process) (leads *members.Process, others []*members.Process) {
	t.Helper()
	waittest.Try(t, "a leader", func() error {
		leads, others = nil, nil
		for _, p := range of {
			st, err := agentapi.Get[api.Status](t.Context(), p.Socket, "status")
			switch {
			case err != nil:
				others = append(others, p)
			case st.Agent.Leads == nil:
				return fmt.Errorf("%s does not say whether it leads", p.Name)
			case *st.Agent.Leads && leads != nil:
				return fmt.Errorf("%s and %s lead", leads.Name, p.Name)
			case *st.Agent.Leads:
				leads = p
			default:
				others = append(others, p)
			}
		}
		if leads == nil {
			return fmt.Errorf("nobody leads")
		}
		return nil
	})
	return leads, others
}

// TestTheStandbysTakeOver: the leaders are frozen, so that they do not notice the end of their lease; others lead
// within the lease. When the frozen ones continue they write nothing. Then the new leaders are killed, and the first
// ones lead again. No key is lost in all that time.
func TestTheStandbysTakeOver(t *testing.T) {
	t.Parallel()
	waittest.Long(t)
	m := start(t, func(s *members.Settings) { s.Clusters, s.Nodes, s.Standbys = 2, 1, 1 })
	c, other := m.Clusters[0], m.Clusters[1]
	waittest.Try(t, "everything", func() error { return sees(t, m, c.Agents[0]) })
	operates, standsBy := leader(t, c.Operators)
	mirrors, _ := leader(t, c.Mirrors)
	if len(standsBy) != 1 {
		t.Fatalf("%d stand by", len(standsBy))
	}
	from := head(t, c) + 1

	operates.Signal(syscall.SIGSTOP)
	mirrors.Signal(syscall.SIGSTOP)
	began := time.Now()
	d, od := c.Describe(1), other.Describe(1)
	d.Service("web").Down, od.Service("web").Down = true, true
	write(t, c, d)
	write(t, other, od)
	// changed reports whether both changes are in the etcd of c: that of operate, and
	// that of the mirror.
	changed := func(down bool) error {
		for _, key := range []string{
			wire.Services.Key(c.Name, false, members.Namespace+"/web"), wire.Services.Key(other.Name, true, members.Namespace+"/web"),
		} {
			resp, err := rootOf(t, c).Get(t.Context(), key)
			if err != nil {
				return err
			}
			if len(resp.Kvs) != 1 || strings.Contains(string(resp.Kvs[0].Value), `"backends":{}`) != down {
				return fmt.Errorf("%s is not as described", key)
			}
		}
		return nil
	}
	waittest.Try(t, "the standbys to write", func() error { return changed(true) })
	t.Logf("the standbys wrote after %s", time.Since(began))
	handover := head(t, c)
	operates.Signal(syscall.SIGCONT)
	mirrors.Signal(syscall.SIGCONT)
	waittest.Try(t, "the frozen ones to stand by", func() error {
		for _, p := range []*members.Process{operates, mirrors} {
			if st, err := agentapi.Get[api.Status](t.Context(), p.Socket, "status"); err != nil || *st.Agent.Leads {
				return fmt.Errorf("%s leads, %w", p.Name, err)
			}
		}
		return nil
	})

	operates2, _ := leader(t, c.Operators)
	mirrors2, _ := leader(t, c.Mirrors)
	if operates2 == operates || mirrors2 == mirrors {
		t.Fatal("who was frozen leads")
	}
	operates2.Kill()
	mirrors2.Kill()
	d.Service("web").Down, od.Service("web").Down = false, false
	write(t, c, d)
	write(t, other, od)
	waittest.Try(t, "the first ones to write again", func() error { return changed(false) })
	judge(t, c, from, handover)
}

// rootOf returns a client with all rights.
func rootOf(t *testing.T, c *members.Cluster) *clientv3.Client {
	t.Helper()
	cfg, err := yaml.NewConfig(c.ClientFile("root"))
	must(t, err)
	client, err := clientv3.New(*cfg)
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func head(t *testing.T, c *members.Cluster) int64 {
	t.Helper()
	resp, err := rootOf(t, c).Get(t.Context(), "x")
	must(t, err)
	return resp.Header.Revision
}

// judge reads the whole history of the etcd since a revision. Only locks were deleted. A key returned to the leases of
// before the handover only when the second leader was gone.
func judge(t *testing.T, c *members.Cluster, from, handover int64) {
	t.Helper()
	if _, err := rootOf(t, c).Put(t.Context(), "cilium/end", ""); err != nil {
		t.Fatal(err)
	}
	ctx := waittest.Context(t)
	owner := map[string][]int64{} // the leases of each key, in order
	for resp := range rootOf(t, c).Watch(ctx, "cilium/", clientv3.WithPrefix(), clientv3.WithRev(from)) {
		for _, e := range resp.Events {
			key := string(e.Kv.Key)
			switch {
			case key == "cilium/end":
				for key, leases := range owner {
					if len(leases) > 2 {
						t.Errorf("%s went from lease to lease: %x", key, leases)
					}
				}
				return
			case strings.HasPrefix(key, wire.OperatorLockPath), strings.HasPrefix(key, wire.KVStoreMeshLockPath), strings.Contains(key, "/locks/"):
			case e.Type == clientv3.EventTypeDelete:
				t.Errorf("%s was deleted at %d (handover at %d)", key, e.Kv.ModRevision, handover)
			default:
				if l := owner[key]; len(l) == 0 || l[len(l)-1] != e.Kv.Lease {
					owner[key] = append(l, e.Kv.Lease)
				}
			}
		}
	}
	t.Fatal("the history has no end")
}
