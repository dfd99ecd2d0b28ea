package members

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/members"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// same compares the seen names with the wanted ones.
func same(what string, got, want map[string]bool) error {
	for name := range want {
		if !got[name] {
			return fmt.Errorf("%s: %s is missing, there are %v", what, name, slices.Sorted(maps.Keys(got)))
		}
	}
	for name := range got {
		if !want[name] {
			return fmt.Errorf("%s: %s should not be there", what, name)
		}
	}
	return nil
}

// sees reports whether an agent sees every cluster's nodes, pods and their identities, and reports no problem.
func sees(t *testing.T, m *members.Mesh, agent *members.Process) error {
	t.Helper()
	wantNodes, wantPods, wantApps := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, c := range m.Clusters {
		for n := range m.Nodes {
			wantNodes[c.Name+"/"+c.Node(n)+" "+c.NodeAddress(n)] = true
			for s, service := range c.Describe(m.Nodes).Services {
				wantPods[fmt.Sprintf("%s/32 %s %s/%s %s", c.PodAddress(s, n), c.Name, members.Namespace, c.Pod(service.Name, n), c.NodeAddress(n))] = true
				wantApps[c.Name+" "+service.Name] = true
			}
		}
	}
	nodes, err := agentapi.List[api.Node](t.Context(), agent.Socket, "nodes")
	if err != nil {
		return err
	}
	got := map[string]bool{}
	for _, n := range nodes {
		got[n.Cluster+"/"+n.Name+" "+n.Addresses[0].IP] = true
	}
	if err := same("nodes", got, wantNodes); err != nil {
		return err
	}
	ids, err := agentapi.List[api.Identity](t.Context(), agent.Socket, "identities")
	if err != nil {
		return err
	}
	got = map[string]bool{}
	numbers := map[uint32]string{}
	for _, id := range ids {
		app := id.Cluster + " " + id.Labels["k8s:app"]
		got[app], numbers[id.ID] = true, app
	}
	if err := same("identities", got, wantApps); err != nil {
		return err
	}
	ips, err := agentapi.List[api.IP](t.Context(), agent.Socket, "ips")
	if err != nil {
		return err
	}
	got = map[string]bool{}
	for _, ip := range ips {
		if ip.Kind != "endpoint" {
			continue
		}
		got[fmt.Sprintf("%s %s %s/%s %s", ip.Prefix, ip.Cluster, ip.Namespace, ip.Pod, ip.HostIP)] = true
		if app := numbers[ip.Identity]; !strings.HasPrefix(ip.Pod, strings.TrimPrefix(app, ip.Cluster+" ")+"-") {
			return fmt.Errorf("%s of pod %s has identity %d, which is that of %q", ip.Prefix, ip.Pod, ip.Identity, app)
		}
	}
	if err := same("addresses", got, wantPods); err != nil {
		return err
	}
	st, err := agentapi.Get[api.Status](t.Context(), agent.Socket, "status")
	if err == nil && st.State != api.StateReady {
		err = fmt.Errorf("the agent is %s", st.State)
	}
	return err
}

// backends are the clusters whose backends of a service an agent uses, preferred ones in upper case.
func backends(t *testing.T, agent *members.Process, service string) (string, error) {
	t.Helper()
	s, err := agentapi.Get[api.Service](t.Context(), agent.Socket, "services", members.Namespace, service)
	if err != nil {
		return "", err
	}
	var clusters []string
	for _, b := range s.Backends {
		name := b.Cluster
		if b.Preferred {
			name = strings.ToUpper(name)
		}
		if !slices.Contains(clusters, name) {
			clusters = append(clusters, name)
		}
	}
	slices.SortFunc(clusters, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return strings.Join(clusters, " "), nil
}

func uses(t *testing.T, agent *members.Process, service, want string) {
	t.Helper()
	waittest.Try(t, fmt.Sprintf("%s of %s to be %q", service, agent.Name, want), func() error {
		got, err := backends(t, agent, service)
		if err == nil && got != want {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}
