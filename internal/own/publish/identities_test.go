package publish

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/recorded"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// identitiesAt runs the publishing of identities. Namespaces are global unless they say otherwise.
func identitiesAt(w *world, own wire.ClusterInfo, log *slog.Logger) *target {
	to := newTarget()
	w.start(NewIdentities(w.cluster, own, IdentitiesParams{DefaultGlobalNamespace: true, To: to, Log: log}).Run)
	return to
}

// labelled is a manifest of an identity of cluster2.
func labelled(id, namespace, app string) string {
	return fmt.Sprintf("{metadata: {name: '%s'}, security-labels: {'k8s:app': %s, 'k8s:io.cilium.k8s.policy.cluster': cluster2, 'k8s:io.kubernetes.pod.namespace': %s}}",
		id, app, namespace)
}

func namespace(name, global string) string {
	return fmt.Sprintf("metadata: {name: %s, annotations: {clustermesh.cilium.io/global: '%s'}}", name, global)
}

func TestGoldenIdentitiesArePublishedAsCiliumDoes(t *testing.T) {
	t.Parallel()
	for _, v := range recorded.Entries(t, recorded.Identities) {
		t.Run(v.Note, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			to := identitiesAt(w, v.Cluster, discard())
			w.cluster.CiliumIdentities.Apply([]store.Change[local.CiliumIdentity]{{New: v.Identity}})
			w.listed()
			to.until(t, "completeness", func(map[string]string) bool { return to.isComplete() })
			if got := to.get()[v.Identity.Name]; got != string(v.Value) {
				t.Errorf("published is %s, want %s", got, v.Value)
			}
			if key := wire.Identities.Key("", false, v.Identity.Name); key != v.Key {
				t.Errorf("the key is %s, want %s", key, v.Key)
			}
		})
	}
}

func TestIdentitiesFollowTheirObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := identitiesAt(w, cluster2(), discard())
	set(t, w.cluster.CiliumIdentities, labelled("131072", "prod", "a"))
	set(t, w.cluster.CiliumIdentities, labelled("131073", "prod", "b"))
	if len(to.get()) > 0 {
		t.Error("something is published before everything is listed")
	}
	w.listed()
	to.untilNames(t, "131072", "131073")
	set(t, w.cluster.CiliumIdentities, labelled("131073", "prod", "c"))
	to.until(t, "other labels", func(values map[string]string) bool { return strings.Contains(values["131073"], "k8s:app=c;") })
	remove(w, w.cluster.CiliumIdentities, "131072")
	to.untilNames(t, "131073")
}

// Those of a namespace go and come with what it says; those without one do not
// care; and one that moves to another namespace is as that says.
func TestIdentitiesOfNamespacesThatAreNotGlobalAreWithheld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := identitiesAt(w, cluster2(), discard())
	set(t, w.cluster.Namespaces, namespace("secret", "false"))
	set(t, w.cluster.CiliumIdentities, labelled("131072", "secret", "a"))
	set(t, w.cluster.CiliumIdentities, labelled("131073", "prod", "a"))
	set(t, w.cluster.CiliumIdentities, "{metadata: {name: '131074'}, security-labels: {'cidr:10.0.0.0/8': ''}}")
	w.listed()
	to.untilNames(t, "131073", "131074")
	set(t, w.cluster.Namespaces, namespace("secret", "true"))
	to.untilNames(t, "131072", "131073", "131074")
	set(t, w.cluster.Namespaces, namespace("prod", "false"))
	to.untilNames(t, "131072", "131074")
	set(t, w.cluster.CiliumIdentities, labelled("131073", "secret", "a"))
	to.untilNames(t, "131072", "131073", "131074")
	set(t, w.cluster.Namespaces, namespace("secret", "false"))
	to.untilNames(t, "131074")
	remove(w, w.cluster.Namespaces, "secret")
	to.untilNames(t, "131072", "131073", "131074")
}

// Identities that no other cluster would accept are skipped, and reported once, with one line for all that come
// together.
func TestIdentitiesThatNobodyWouldAcceptAreSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	said := new(waittest.Output)
	to := identitiesAt(w, cluster2(), slog.New(slog.NewTextHandler(said, nil)))
	for _, name := range []string{"196608", "131071", "0131072", "0x20000", "web", "0", "131072000000"} {
		set(t, w.cluster.CiliumIdentities, labelled(name, "prod", "a"))
	}
	set(t, w.cluster.CiliumIdentities, "metadata: {name: '131080'}")
	set(t, w.cluster.CiliumIdentities, labelled("131073", "prod", "a"))
	w.listed()
	to.untilNames(t, "131073")
	set(t, w.cluster.CiliumIdentities, labelled("web", "prod", "b")) // again: said already
	set(t, w.cluster.CiliumIdentities, labelled("131080", "prod", "b"))
	to.untilNames(t, "131073", "131080")
	set(t, w.cluster.CiliumIdentities, "metadata: {name: '131080'}")
	to.untilNames(t, "131073")
	set(t, w.cluster.CiliumIdentities, labelled("131074", "prod", "a"))
	to.untilNames(t, "131073", "131074") // everything that had to be logged was logged before
	for text, want := range map[string]int{"level=WARN": 2, "number=8": 1, "number=1 ": 1, "131080": 1} {
		if n := said.Count(text); n != want {
			t.Errorf("%q is in the log %d times, want %d", text, n, want)
		}
	}
}
