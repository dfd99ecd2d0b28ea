package endpointslices

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestFromChangesToSlices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "west", "north")
	stop := w.run()
	w.own(serviceOf("web"), serviceOf("api"), serviceOf("none", annotated(AnnotationSync, "false")))
	w.parts(remotePart("west", "web", backend("10.2.0.1", http(80))), remotePart("north", "web"), remotePart("west", "none", backend("10.2.0.9", http(80))))
	w.until("slices", "web: north IPv4 [] ", "web: west IPv4 [http:80/TCP] 10.2.0.1")

	w.parts(remotePart("north", "web", backend("10.3.0.1", http(80))), remotePart("west", "api", backend("10.2.0.2", http(81))))
	w.until("more", "api: west IPv4 [http:81/TCP] 10.2.0.2", "web: north IPv4 [http:80/TCP] 10.3.0.1", "web: west IPv4 [http:80/TCP] 10.2.0.1")

	// Another process does not write slices that are already correct.
	stop()
	n := w.NumWrites()
	w.run()
	w.idle()
	if got := w.NumWrites(); got != n+1 {
		t.Errorf("another process wrote %d times: %q", got-n-1, w.WritesSince(n))
	}
	// The Service no longer wants slices; a remote no longer has backends; the Service is deleted.
	w.own(serviceOf("api", annotated(AnnotationSync, "false")))
	w.withdraw(remotePart("north", "web"))
	w.until("less", "last: last IPv4 [http:80/TCP] 10.250.0.1", "web: west IPv4 [http:80/TCP] 10.2.0.1")
	n = w.NumWrites()
	w.cluster.Services.Apply([]store.Change[corev1.Service]{{Name: "prod/web", Old: serviceOf("web")}})
	w.withdraw(ownPart("web", ""))
	w.withdraw(remotePart("west", "web"))
	w.own(serviceOf("api"))
	w.until("slices of a Service that is gone are left to its owner", "api: west IPv4 [http:81/TCP] 10.2.0.2", "last: last IPv4 [http:80/TCP] 10.250.0.1", "web: west IPv4 [http:80/TCP] 10.2.0.1")
	if got := w.NumWrites(); got != n+1 {
		t.Errorf("%q", w.WritesSince(n))
	}
}

func TestNothingHappensBeforeEverythingIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "west", "north")
	w.own(serviceOf("web"))
	stop := w.run()
	w.parts(remotePart("west", "web", backend("10.2.0.1", http(80))), remotePart("north", "web", backend("10.3.0.1", http(80))))
	both := []string{"web: north IPv4 [http:80/TCP] 10.3.0.1", "web: west IPv4 [http:80/TCP] 10.2.0.1"}
	w.until("both", both...)
	stop()

	// The next process has read nothing, and then north alone, which has another backend now.
	n := w.NumWrites()
	w.withdraw(remotePart("west", "web"), remotePart("north", "web"))
	w.Set(func() { w.Ready, w.Remotes = false, []reconcile.Remote{{Name: "west"}, {Name: "north"}} })
	w.run()
	w.Set(func() { w.Ready = true })
	w.Set(func() { w.Remotes[1].Read = true })
	w.parts(remotePart("north", "web", backend("10.3.0.2", http(80))))
	w.until("that of north alone changes", "web: north IPv4 [http:80/TCP] 10.3.0.2", "web: west IPv4 [http:80/TCP] 10.2.0.1")
	for _, write := range w.WritesSince(n) {
		if !strings.Contains(write, "north") {
			t.Errorf("%s before west was read", write)
		}
	}
	// West was read, and has nothing.
	w.Set(func() { w.Remotes = []reconcile.Remote{{Name: "west", Read: true}, {Name: "north", Read: true}} })
	w.until("that of west goes", "web: north IPv4 [http:80/TCP] 10.3.0.2")
}

func TestAClusterThatIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "west", "north")
	w.own(serviceOf("web"))
	w.run()
	w.parts(remotePart("west", "web", backend("10.2.0.1", http(80))), remotePart("north", "web", backend("10.3.0.1", http(80))))
	w.until("both", "web: north IPv4 [http:80/TCP] 10.3.0.1", "web: west IPv4 [http:80/TCP] 10.2.0.1")
	w.Set(func() { w.Remotes = w.Remotes[:1] })
	w.withdraw(remotePart("north", "web"))
	w.until("one", "web: west IPv4 [http:80/TCP] 10.2.0.1")
}

// TestAClusterThatComesLater: a Service without slices gets those of a cluster whose services arrive before the cluster
// counts as read.
func TestAClusterThatComesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "west")
	w.own(serviceOf("web"))
	w.run()
	w.Set(func() { w.Remotes = append(w.Remotes, reconcile.Remote{Name: "north"}) })
	w.idle()
	w.parts(remotePart("north", "web", backend("10.3.0.1", http(80))), remotePart("last", "last", backend("10.250.0.2", http(80))))
	last := "last: last IPv4 [http:80/TCP] 10.250.0.2"
	w.until("none of north", last)
	w.Set(func() { w.Remotes[1].Read = true })
	w.until("those of north", last, "web: north IPv4 [http:80/TCP] 10.3.0.1")
}

// TestOthersAreLeftAlone: slices with another managed-by, without our label, or with a name that we
// would take.
func TestOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "west")
	name := nameOf(serviceOf("web"), place{"west", discoveryv1.AddressTypeIPv4}, func(string) bool { return false })
	others := []*discoveryv1.EndpointSlice{
		{ObjectMeta: metav1.ObjectMeta{Name: "by-cilium", Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: ManagedBy, LabelCluster: "west"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "taken-over", Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "me", LabelOwner: "x"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}}},
	}
	for _, o := range others {
		o.Namespace, o.AddressType = "prod", discoveryv1.AddressTypeIPv4
		w.cluster.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: local.Name(o), New: o}})
	}
	w.own(serviceOf("web"))
	w.run()
	w.parts(remotePart("west", "web", backend("10.2.0.1", http(80))))
	w.until("ours", "web: west IPv4 [http:80/TCP] 10.2.0.1")
	w.own(serviceOf("web", annotated(AnnotationSync, "false")))
	w.until("none of ours")
	for _, o := range others {
		if now, found := w.cluster.EndpointSlices.Get(w.db.ReadTxn(), local.Name(o)); !found || now != o {
			t.Errorf("%s is another one", o.Name)
		}
	}
}

func TestWhatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "west")
	denied := apierrors.NewForbidden(Resource().GroupResource(), "web", errors.New("no right"))
	w.Set(func() { w.Refuse = denied })
	w.own(serviceOf("web"))
	w.run()
	w.parts(remotePart("west", "web", backend("10.2.0.1", http(80))))
	waittest.Until(t, "it is said", func() bool { return strings.Contains(w.Wrong(), "no right") }, w.Wrong)
	w.Set(func() { w.Refuse = nil })
	w.until("slices", "web: west IPv4 [http:80/TCP] 10.2.0.1")
	waittest.Until(t, "nothing is wrong", func() bool { return w.Wrong() == "" }, w.Wrong)
}

// TestHalfAtMost: what one cluster withdraws while another one was not read goes slowly.
func TestHalfAtMost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "west", "north")
	const n = 40
	var parts []*services.Service
	for i := range n {
		name := fmt.Sprint("web-", i)
		w.own(serviceOf(name))
		parts = append(parts, remotePart("west", name, backend("10.2.0.1", http(80))))
	}
	w.parts(parts...)
	w.Set(func() { w.Remotes[1].Read = false })
	w.run()
	waittest.Until(t, "all slices", func() bool { return len(w.text()) == n }, w.Wrong)
	w.withdraw(parts...)
	waittest.Until(t, "it is said", func() bool { return strings.Contains(w.Wrong(), fmt.Sprint(n/2, " EndpointSlices are kept")) }, w.Wrong)
	if got := len(w.text()); got < n/2 {
		t.Errorf("%d of %d are left", got, n)
	}
	w.Set(func() { w.Remotes[1].Read = true })
	w.until("the rest goes")
	waittest.Until(t, "nothing is wrong", func() bool { return w.Wrong() == "" }, w.Wrong)
}

func TestThereIsABound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "west", "north")
	w.own(serviceOf("web"), serviceOf("api"))
	w.parts(remotePart("west", "web", many("10.2.0.0", 350, http(80))...))
	w.run(func(p *Params) { p.MaxSlices = 2 })
	waittest.Until(t, "it is said", func() bool {
		return len(w.text()) == 2 && strings.Contains(w.Wrong(), "150 remote backends are in no EndpointSlice")
	}, w.Wrong)
	w.parts(remotePart("north", "api", backend("10.3.0.1", http(80)))) // another cluster has its own room
	waittest.Until(t, "another cluster's", func() bool { return len(w.text()) == 3 }, w.Wrong)
	w.parts(remotePart("west", "web", many("10.2.0.0", 150, http(80))...))
	waittest.Until(t, "nothing is wrong", func() bool { return w.Wrong() == "" }, w.Wrong)
}
