package agents_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/pkg/remotecluster"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/agents"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// serve puts a shared service with one backend into the description of a cluster, or replaces its backend.
func serve(c *agents.Cluster, name, ip string) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{wire.AnnotationGlobal: "true"}}
	c.Source.Services.Apply([]store.Change[corev1.Service]{{Name: "shop/" + name, New: &corev1.Service{
		ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: "172.20.0.1", ClusterIPs: []string{"172.20.0.1"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}}})
	ready, port, protocol := true, int32(8080), corev1.ProtocolTCP
	c.Source.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: "shop/" + name + "-1", New: &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name + "-1", Labels: map[string]string{wire.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{ip}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: &port, Protocol: &protocol}},
	}}})
}

// answers waits until the DNS server of the cluster answers with these addresses, and returns how long that took.
func answers(t *testing.T, c *agents.Cluster, want ...string) time.Duration {
	t.Helper()
	began := time.Now()
	var got []string
	var err error
	for time.Since(began) < 5*time.Minute {
		got, err = c.Resolve("cart.shop.svc.clusterset.local")
		if slices.Sort(got); slices.Equal(got, want) {
			return time.Since(began)
		}
		time.Sleep(10 * time.Millisecond) // of the bubble's clock
	}
	t.Fatalf("%s answers with %s (%v), not with %s; its clusters: %+v", c.Own.Name, got, err, want, c.Mesh.Clusters())
	return 0
}

// TestAnHour runs two complete agents for an hour of the bubble's clock. Backends move, a cluster cannot be reached for
// a while, and each agent answers with the backends of both clusters. The race detector makes it 20 times slower, so
// with -short it is half an hour.
func TestAnHour(t *testing.T) {
	t.Parallel()
	began, minutes := time.Now(), 60
	if testing.Short() {
		minutes = 30
	}
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, err := agents.New(agents.Params{Directory: directory, Log: slog.New(slog.DiscardHandler)}, "east", "west")
		waittest.Must(t, err)
		east, west := w.Clusters[0], w.Clusters[1]
		for i, c := range w.Clusters {
			serve(c, "cart", fmt.Sprintf("10.%d.0.1", i+1))
			c.Source.Listed()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		start := time.Now()
		for _, c := range w.Clusters {
			waittest.Must(t, c.Mesh.WaitReady(t.Context()))
			answers(t, c, "10.1.0.1", "10.2.0.1")
		}
		for minute := 1; minute <= minutes; minute++ {
			time.Sleep(time.Until(start.Add(time.Duration(minute) * time.Minute))) // of the bubble's clock
			moved := fmt.Sprintf("10.1.0.%d", minute+1)
			serve(east, "cart", moved)
			switch {
			case minute == 20:
				east.Store.SetFault(func(context.Context, string, string) error { return errors.New("no route to host") })
				east.Store.Break(nil)
			case minute == 25:
				east.Store.SetFault(nil)
				answers(t, west, moved, "10.2.0.1")
			case minute > 20 && minute < 25:
				if got, err := west.Resolve("cart.shop.svc.clusterset.local"); err != nil || !slices.Contains(got, "10.2.0.1") {
					t.Errorf("minute %d: %s, %v", minute, got, err)
				}
				if st := west.Mirrored()[0]; st.Ready || isFresh(st) {
					t.Errorf("minute %d: the mirror reports a cluster that it cannot reach as fresh: %+v", minute, st)
				}
			default:
				if took := answers(t, west, moved, "10.2.0.1"); took > 2*time.Second {
					t.Errorf("minute %d: the change is visible in the other cluster after %s", minute, took)
				}
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if lasted := time.Since(start); lasted < time.Duration(minutes)*time.Minute {
			t.Errorf("it lasted %s", lasted)
		}
	})
	t.Logf("%d simulated minutes took %s", minutes, time.Since(began).Round(10*time.Millisecond))
}

// isFresh reports whether a source of the cluster is reported as fresh.
func isFresh(st remotecluster.Status) bool {
	for _, s := range st.Families {
		if s.Freshness.State == remotecluster.FreshnessSynced {
			return true
		}
	}
	return false
}

// TestAMirrorWhoseEtcdIsSilent: while the own kvstore does not answer, a copy is known as of the time before that, although
// the original is confirmed all the time: the own kvstore may have lost the copy, for example with its leases.
func TestAMirrorWhoseEtcdIsSilent(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, err := agents.New(agents.Params{Directory: directory, Direct: true, Log: slog.New(slog.DiscardHandler)}, "east", "west")
		waittest.Must(t, err)
		for _, c := range w.Clusters {
			c.Source.Listed()
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		west := w.Clusters[1]
		asOf := func(all []remotecluster.Status) time.Time {
			if len(all) == 0 {
				return time.Time{}
			}
			return all[0].Families[wire.Services].Freshness.AsOf
		}
		start := time.Now()
		waittest.Until(t, "a copy that was confirmed", func() bool { return asOf(west.Mirrored()).After(start.Add(30 * time.Second)) })
		silent := time.Now()
		west.Store.SetFault(func(ctx context.Context, _, _ string) error { <-ctx.Done(); return ctx.Err() })
		waittest.Until(t, "the original to be confirmed again", func() bool { return asOf(west.Direct.Clusters()).After(silent.Add(time.Minute)) })
		if at := asOf(west.Mirrored()); at.After(silent) {
			t.Errorf("the copy is known as of %s, %s after the last answer", at, at.Sub(silent))
		}
		west.Store.SetFault(nil)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
