package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/members"
	"github.com/mesh-agent/mesh-agent/test/interop"
	"github.com/mesh-agent/mesh-agent/test/interop/model"
	"github.com/mesh-agent/mesh-agent/test/interop/ours"
)

// described is a cluster without Cilium: manifests describe it, one mesh-agent operates it, and one runs on its only
// node.
type described struct {
	*members.Cluster
	processes []*interop.Agent
}

func describe(t *testing.T, file string, flags ...string) *described {
	t.Helper()
	d := &described{Cluster: &members.Cluster{Name: "c2", ID: 2, Dir: t.TempDir()}}
	d.write(t, d.Describe(1))
	flags = append([]string{
		"--cluster-name", d.Name, "--cluster-id", fmt.Sprint(d.ID),
		"--kvstore-opt", "etcd.config=" + file, "--local-manifests", d.Manifests(), "--clustermesh-config", t.TempDir(),
	}, flags...)
	d.processes = []*interop.Agent{
		interop.StartAgent(t, "operate", flags...),
		interop.StartAgent(t, "run", append(flags, "--node-name", d.Node(0), "--node-ip", d.NodeAddress(0))...),
	}
	return d
}

func (d *described) write(t *testing.T, as *members.Description) {
	t.Helper()
	interop.Must(t, as.Write(d.Manifests()))
}

// names lists the names of nodes, services, slices and pods, and the apps of identities.
func names(o model.Objects) string {
	var all []string
	for _, n := range o.Nodes {
		all = append(all, "node "+n.Name)
	}
	for _, s := range o.Services {
		all = append(all, fmt.Sprintf("service %s with %d backends", s.Name, len(s.Backends)))
	}
	for _, s := range o.EndpointSlices {
		all = append(all, fmt.Sprintf("slice %s with %d endpoints", s.Name, len(s.Endpoints)))
	}
	for _, i := range o.Identities {
		for _, l := range i.Labels {
			if l.Key == "app" {
				all = append(all, "identity of "+l.Value)
			}
		}
	}
	for _, a := range o.Addresses {
		all = append(all, fmt.Sprintf("address %s of %s", a.Prefix.Addr(), a.Pod))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// TestCiliumSeesAClusterThatWeRun: `mesh-agent operate` and `mesh-agent run` publish the objects of manifests, their
// changes are seen, and when both are killed all keys expire except the numbers of identities, which have no owner
// (spec allocator.md).
func TestCiliumSeesAClusterThatWeRun(t *testing.T) {
	t.Parallel()
	file := etcdtest.Start(t).ConfigFile(t)
	d := describe(t, file, "--kvstore-lease-ttl", shortTTL.String())
	r := readWithCilium(t, map[string]string{"c2": file})
	entries := ours.Read(t, file, wire.Expect{Cluster: "c2", ClusterID: 2}, false)
	sees := func(what string, limit time.Duration, want ...string) {
		t.Helper()
		interop.Until(t, "Cilium to see "+what, limit, sparing(func(context.Context) error {
			got := r.View(t)
			if have := names(got); have != strings.Join(want, "\n") {
				return fmt.Errorf("there is:\n%s", have)
			}
			published, _ := entries.View()
			return interop.Same(interop.KeptByCilium(published), got)
		}))
	}
	pods := []string{"address 10.2.1.10 of web-1", "address 10.2.1.11 of cart-1", "address 10.2.1.12 of stock-1"}
	apps := []string{"identity of cart", "identity of stock", "identity of web", "node c2-node1"}
	sees("what is described", soon, slices.Concat(pods, apps, []string{
		"service cart with 1 backends", "service web with 1 backends", "slice cart-1 with 1 endpoints", "slice web-1 with 1 endpoints",
	})...)

	as := d.Describe(1)
	as.Service("web").Down, as.Service("cart").Global = true, false
	d.write(t, as)
	sees("what is described now", soon, slices.Concat(pods, apps, []string{
		"service web with 0 backends", "slice web-1 with 1 endpoints",
	})...)

	for _, p := range d.processes {
		p.Kill()
	}
	sees("what is left", goneWithin, "identity of cart", "identity of stock", "identity of web")
	for _, p := range d.processes {
		interop.Quiet(t, p.Name, p.Complaints(t))
	}
	interop.Quiet(t, "Cilium's reader", r.Complaints())
}
