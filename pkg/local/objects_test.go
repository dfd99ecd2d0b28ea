package local

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func newCluster(t *testing.T) *Cluster {
	t.Helper()
	c, err := New(statedb.New())
	waittest.Must(t, err)
	return c
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestObjectsAreFoundByNameAndNamespace(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var changes []store.Change[corev1.Service]
	for _, s := range []*corev1.Service{service("prod", "b"), service("prod", "a"), service("production", "a"), service("pro", "d")} {
		changes = append(changes, store.Change[corev1.Service]{New: s})
	}
	c.Services.Apply(changes)
	names := func() (out []string) {
		for s := range c.Services.InNamespace(c.ReadTxn(), "prod") {
			out = append(out, s.Name)
		}
		return out
	}
	if got := names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("in the namespace are %v", got)
	}
	c.Services.Apply([]store.Change[corev1.Service]{{Old: service("prod", "a")}})
	if got := names(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("in the namespace are %v after a deletion", got)
	}
	if s, found := c.Services.Get(c.ReadTxn(), "production/a"); !found || s.Namespace != "production" {
		t.Errorf("found %v", s)
	}
	if _, found := c.Services.Get(c.ReadTxn(), "prod/a"); found {
		t.Error("what was deleted is found")
	}
}

func TestAFollowerHasEverythingAndThenWhatChanges(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.Services.Apply([]store.Change[corev1.Service]{{New: service("prod", "a")}})
	changes, err := c.Services.Follow()
	waittest.Must(t, err)
	defer changes.Close()
	next := func() (out []string) {
		changes.Drain(func(o *corev1.Service, deleted bool) {
			out = append(out, map[bool]string{true: "-", false: "+"}[deleted]+Name(o))
		})
		return out
	}
	if got := next(); !slices.Equal(got, []string{"+prod/a"}) {
		t.Errorf("at first there is %v", got)
	}
	c.Services.Apply([]store.Change[corev1.Service]{{Old: service("prod", "a")}, {New: service("prod", "b")}})
	if got := next(); !slices.Equal(got, []string{"-prod/a", "+prod/b"}) && !slices.Equal(got, []string{"+prod/b", "-prod/a"}) {
		t.Errorf("then %v", got)
	}
}

func TestATableIsListedWhenItsSourceSaysSo(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	soon, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Pods.WaitListed(soon); !errors.Is(err, context.Canceled) {
		t.Errorf("before: %v", err)
	}
	c.Pods.Listed()
	c.Pods.Listed()
	if err := c.Pods.WaitListed(t.Context()); err != nil {
		t.Errorf("after: %v", err)
	}
	if err := c.Nodes.WaitListed(soon); !errors.Is(err, context.Canceled) {
		t.Errorf("another table: %v", err)
	}
}

// TestServicesOfAnotherProxyAreNotThere: a Service with the label of another proxy is left out, also when it gets the
// label later.
func TestServicesOfAnotherProxyAreNotThere(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	set := func(proxy string) bool {
		s := service("prod", "a")
		if proxy != "" {
			s.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": proxy}
		}
		c.Services.Apply([]store.Change[corev1.Service]{{New: s}})
		_, found := c.Services.Get(c.ReadTxn(), "prod/a")
		return found
	}
	for i, proxy := range []string{"istio", "", "istio", "istio", ""} {
		if found := set(proxy); found != (proxy == "") {
			t.Errorf("step %d, proxy %q: %t", i, proxy, found)
		}
	}
}
