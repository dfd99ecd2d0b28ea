package publish

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/nodes"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// viewed is a world with the view of its services.
type viewed struct {
	*world
	services *services.Services
	log      waittest.Output
}

func newViewed(t *testing.T) *viewed {
	t.Helper()
	v := &viewed{world: newWorld(t)}
	var err error
	v.services, err = services.New(v.db)
	must(t, err)
	log := slog.New(slog.NewTextHandler(&v.log, nil))
	v.start(NewOwnServices(v.cluster, cluster2(), true, v.services, log).Run)
	v.listed()
	return v
}

// untilGlobal waits for a state of the merged service; nil is none.
func (v *viewed) untilGlobal(t *testing.T, what string, ok func(*services.Global) bool) *services.Global {
	t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for {
		g, _, changed, _ := v.services.Global().GetWatch(v.db.ReadTxn(), services.GlobalByName("prod", "a"))
		if ok(g) {
			return g
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("waited in vain for %s; there is %+v", what, g)
		}
	}
}

// used are the addresses of the backends that traffic goes to.
func used(g *services.Global) (out []string) {
	if g == nil {
		return nil
	}
	selection := g.Selection()
	for part, b := range g.Backends() {
		if selection.Takes(part, b) {
			out = append(out, b.IP.String())
		}
	}
	return out
}

func (v *viewed) untilUsed(t *testing.T, want ...string) {
	t.Helper()
	v.untilGlobal(t, "the backends "+strings.Join(want, " "), func(g *services.Global) bool { return cmp.Equal(used(g), want) })
}

// Our affinity annotations decide between our backends and those of another cluster, after any change of ours.
func TestAffinityTakesEffect(t *testing.T) {
	t.Parallel()
	v := newViewed(t)
	remote := &wire.Service{
		Cluster: "far", ClusterID: 9, Namespace: "prod", Name: "a", Shared: true, IncludeExternal: true,
		Backends: map[string]wire.Ports{"10.9.0.1": {}},
	}
	v.services.Apply([]store.Change[services.Service]{{New: services.FromWire(remote, wire.SourceClusterMesh)}})
	service := func(annotations string) {
		set(t, v.cluster.Services, "{metadata: {namespace: prod, name: a, annotations: {"+annotations+"}}, spec: {clusterIP: 10.0.0.1}}")
	}
	const isGlobal = "service.cilium.io/global: 'true'"
	service(isGlobal + ", service.cilium.io/affinity: local")
	v.untilUsed(t, "10.9.0.1") // ours has none
	set(t, v.cluster.EndpointSlices, slice("a-1", "a", "10.2.0.1"))
	v.untilUsed(t, "10.2.0.1")

	// Ours is terminating: it serves, but does not hold the others off.
	terminating := strings.ReplaceAll(slice("a-1", "a", "10.2.0.1"), "addresses:", "conditions: {ready: false, serving: true, terminating: true}, addresses:")
	set(t, v.cluster.EndpointSlices, terminating)
	v.untilUsed(t, "10.2.0.1", "10.9.0.1")
	set(t, v.cluster.EndpointSlices, strings.ReplaceAll(terminating, "serving: true", "serving: false"))
	v.untilUsed(t, "10.9.0.1")
	set(t, v.cluster.EndpointSlices, slice("a-1", "a", "10.2.0.1"))
	v.untilUsed(t, "10.2.0.1")
	remove(v.world, v.cluster.EndpointSlices, "prod/a-1")
	v.untilUsed(t, "10.9.0.1")
	set(t, v.cluster.EndpointSlices, slice("a-1", "a", "10.2.0.1"))

	service(isGlobal + ", service.cilium.io/affinity: remote")
	v.untilUsed(t, "10.9.0.1")
	service(isGlobal)
	v.untilUsed(t, "10.2.0.1", "10.9.0.1")
	// Not shared: the others are still used.
	service(isGlobal + ", service.cilium.io/shared: 'false'")
	g := v.untilGlobal(t, "a service that is not shared", func(g *services.Global) bool { return g != nil && g.Local() != nil && !g.Local().Shared })
	if d := cmp.Diff([]string{"10.2.0.1", "10.9.0.1"}, used(g)); d != "" {
		t.Error(d)
	}
	service("")
	v.untilUsed(t, "10.2.0.1")
	remove(v.world, v.cluster.Services, "prod/a")
	v.untilUsed(t, "10.9.0.1")
}

// TestOwnObjectsFollowTheRulesOfRemotes: files are not checked by an API server, and that does not check everything.
func TestOwnObjectsFollowTheRulesOfRemotes(t *testing.T) {
	t.Parallel()
	v := newViewed(t)
	service := func(labels string) {
		set(t, v.cluster.Services, "{metadata: {namespace: prod, name: a, labels: {"+labels+"}}, spec: {clusterIP: 10.0.0.1}}")
	}
	none := func(g *services.Global) bool { return g == nil }
	service("app: a")
	set(t, v.cluster.EndpointSlices, slice("a-1", "a", "10.2.0.1"))
	v.untilUsed(t, "10.2.0.1")
	service(`app: "a\nserver evil"`)
	v.untilGlobal(t, "no service with such a label", none)
	waittest.Until(t, "the reason", func() bool { return strings.Contains(v.log.String(), "label value") })
	service("app: a")
	v.untilUsed(t, "10.2.0.1")
	withZone := func(zone string) string {
		return strings.ReplaceAll(slice("a-1", "a", "10.2.0.1"), "addresses:", "zone: "+zone+", addresses:")
	}
	set(t, v.cluster.EndpointSlices, withZone(`"a\nb"`))
	v.untilGlobal(t, "no service with such a zone", none)
	set(t, v.cluster.EndpointSlices, withZone(`"rack 7"`)) // which the API server takes
	g := v.untilGlobal(t, "the service", func(g *services.Global) bool { return g != nil && g.NumBackends() == 1 })
	if zone := g.Local().Backends[0].Zone; zone != "" {
		t.Errorf("a zone that no label can have: %q", zone)
	}
}

func TestWhatTheViewKnowsOfAService(t *testing.T) {
	t.Parallel()
	v := newViewed(t)
	set(t, v.cluster.Services, `
metadata: {namespace: prod, name: a, labels: {app: a}, annotations: {service.cilium.io/global: "true"}}
spec: {clusterIP: 10.0.0.1}`)
	set(t, v.cluster.Namespaces, "metadata: {name: prod, annotations: {clustermesh.cilium.io/global: 'false'}}")
	set(t, v.cluster.EndpointSlices, `
metadata: {namespace: prod, name: a-1, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
ports: [{name: http, port: 80}]
endpoints:
- {addresses: [10.2.0.1], nodeName: n1, zone: z1, hostname: h1, conditions: {ready: false, serving: true, terminating: true}}
- {addresses: [10.2.0.2], conditions: {ready: false}}`)
	g := v.untilGlobal(t, "a backend and a namespace that is not global", func(g *services.Global) bool {
		return g != nil && g.NumBackends() == 1 && !g.Local().Shared
	})
	own := g.Local()
	if own.Cluster != "cluster2" || own.ClusterID != 2 || own.Source != wire.SourceKubernetes || !own.IncludeExternal || own.Labels["app"] != "a" {
		t.Errorf("our part is %+v", own)
	}
	b := own.Backends[0]
	if b.Node != "n1" || b.Zone != "z1" || b.Hostname != "h1" || b.Ready() || !b.Serving() || !b.Terminating() || b.Ports[0].Port != 80 {
		t.Errorf("its backend is %+v", b)
	}
}

func TestAnUnknownAffinityIsNoneAndSaidOnce(t *testing.T) {
	t.Parallel()
	v := newViewed(t)
	for _, ip := range []string{"10.0.0.1", "10.0.0.2"} {
		set(t, v.cluster.Services, "{metadata: {namespace: prod, name: a, labels: {ip: "+ip+"}, annotations: {service.cilium.io/global: 'true', service.cilium.io/affinity: nearby}}}")
		v.untilGlobal(t, ip, func(g *services.Global) bool {
			return g != nil && g.Local().Labels["ip"] == ip && g.Affinity() == "none"
		})
	}
	if n := v.log.Count("nearby"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

const (
	kubeNode   = "{metadata: {name: NAME}, status: {addresses: [{type: InternalIP, address: 192.168.0.1}]}}"
	ciliumNode = "{metadata: {name: NAME}, spec: {addresses: [{type: InternalIP, ip: 192.168.0.2}]}}"
)

func TestACiliumNodeIsBeforeTheNodeOfItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	view, err := nodes.New(w.db)
	must(t, err)
	to := newTarget()
	w.start(NewNodes(w.cluster, cluster2(), NodesParams{To: to, View: view.Apply, Log: discard()}).Run)
	node := func(name string) string { return strings.ReplaceAll(kubeNode, "NAME", name) }
	set(t, w.cluster.Nodes, node("n1"))
	set(t, w.cluster.Nodes, node("n2"))
	w.listed()
	to.untilNames(t, "n1", "n2")
	to.until(t, "completeness", func(map[string]string) bool { return to.isComplete() })
	from := func(source string) {
		t.Helper()
		to.until(t, source, func(v map[string]string) bool { return strings.Contains(v["n1"], `"Source":"`+source+`"`) })
		for { // the view gets it right after the target
			n, _, changed, found := view.Table().GetWatch(w.db.ReadTxn(), nodes.ByName("cluster2", "n1"))
			if found && n.Source.String() == source {
				return
			}
			select {
			case <-changed:
			case <-waittest.Context(t).Done():
				t.Fatalf("the view has %+v, want the source %s", n, source)
			}
		}
	}
	from("k8s")
	set(t, w.cluster.CiliumNodes, strings.ReplaceAll(ciliumNode, "NAME", "n1"))
	from("custom-resource")
	remove(w, w.cluster.CiliumNodes, "n1")
	from("k8s")
	remove(w, w.cluster.Nodes, "n1")
	to.untilNames(t, "n2")
}

func TestOnlyOneNodeIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := newTarget()
	w.listed()
	w.start(NewNodes(w.cluster, cluster2(), NodesParams{Only: "n2", To: to, Log: discard()}).Run)
	for _, name := range []string{"n1", "n2", "n3"} {
		set(t, w.cluster.CiliumNodes, strings.ReplaceAll(ciliumNode, "NAME", name))
	}
	to.untilNames(t, "n2")
	remove(w, w.cluster.CiliumNodes, "n2")
	to.untilNames(t)
	if to.puts != 1 {
		t.Errorf("%d nodes were published", to.puts)
	}
}

func TestANodeThatCannotBeReadStaysAsItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := newTarget()
	var log waittest.Output
	w.listed()
	w.start(NewNodes(w.cluster, cluster2(), NodesParams{To: to, Log: slog.New(slog.NewTextHandler(&log, nil))}).Run)
	set(t, w.cluster.CiliumNodes, strings.ReplaceAll(ciliumNode, "NAME", "n1"))
	to.untilNames(t, "n1")
	before := to.get()["n1"]
	for _, bootID := range []string{"x", "z"} {
		set(t, w.cluster.CiliumNodes, "{metadata: {name: n1}, spec: {bootid: "+bootID+", encryption: {key: -1}}}")
		set(t, w.cluster.CiliumNodes, strings.ReplaceAll(ciliumNode, "NAME", bootID)) // after n1
	}
	to.untilNames(t, "n1", "x", "z")
	if got := to.get()["n1"]; got != before {
		t.Errorf("it became %s", got)
	}
	if n := log.Count("encryption key"); n != 1 {
		t.Errorf("said %d times", n)
	}
}
