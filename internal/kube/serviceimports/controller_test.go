package serviceimports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const (
	usable  = "Ready=True/Ready"
	valid   = "Valid=True/Valid Ready=True/Ready"
	agreed  = "Conflict=False/NoConflicts "
	noValid = "Valid=False/%s Ready=False/Pending"
)

// mcs.md B, behaviours 11 to 14, 18, 25: from what clusters export to objects, over restarts, and back.
func TestFromExportsToObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "c2", "c3")
	w.remote("c2", 0)
	stop := w.run()
	w.export(1) // its namespace is not known yet: nothing is said of it
	w.namespace("shop")
	imported := func(clusters, ip string) string {
		return "import shop/cart ClusterSetIP [" + clusters + "] " + usable + " " + ip
	}
	service := "service " + derived() + " of cart"
	w.until("13: a namespace that comes later", imported("c2", "10.96.0.2"), service, "export shop/cart "+fmt.Sprintf(noValid, mcs.ReasonNoService))
	w.own(1)
	copied := "slice " + derived() + "-abc 10.1.0.1"
	w.until("11: a Service that comes later", imported("c1 c2", "10.96.0.2"), service, copied, "export shop/cart "+agreed+valid)

	// Another process writes only the changes.
	stop()
	n := w.NumWrites()
	w.cluster.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: "shop/cart-abc", New: slice("10.1.0.2")}})
	w.run()
	copied = "slice " + derived() + "-abc 10.1.0.2"
	w.until("another backend", imported("c1 c2", "10.96.0.2"), service, copied, "export shop/cart "+agreed+valid)
	if got := w.WritesSince(n); !slices.Equal(got, []string{"apply endpointslices " + derived() + "-abc"}) {
		t.Errorf("another process wrote %q", got)
	}

	w.remote("c3", -1, func(e *wire.ServiceExport) { e.Type = wire.ServiceExportHeadless })
	w.until("18: an older export of another type", imported("c1 c2 c3", "10.96.0.2"), service, copied, "export shop/cart Conflict=True/TypeConflict "+valid)
	w.withdraw("c3")
	w.until("14: the oldest unexports", imported("c1 c2", "10.96.0.2"), service, copied, "export shop/cart "+agreed+valid)
	w.cluster.ServiceExports.Apply([]store.Change[local.ServiceExport]{{Name: "shop/cart", Old: &local.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart"}}}})
	w.until("14: the own cluster unexports", imported("c2", "10.96.0.2"), service)
	w.remote("c2", 0, func(e *wire.ServiceExport) { e.Type = wire.ServiceExportHeadless })
	w.until("18: another type", "import shop/cart Headless [c2] "+usable, service)
	w.remote("c2", 0)
	w.until("18: and back", imported("c2", "10.96.0.5"), service)
	w.withdraw("c2")
	w.until("14: the last one unexports")
	if wrong := w.Wrong(); wrong != "" {
		t.Error(wrong)
	}
}

// 13: of a service that only remote clusters have nothing is left out when its namespace comes, or is made
// global, after everything was looked at.
func TestANamespaceThatComesLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "c2")
	w.namespace("other")
	w.remote("c2", 0)
	w.remote("c2", 0, func(e *wire.ServiceExport) { e.Namespace = "other" })
	w.run()
	other := "service " + wire.DerivedServiceName("other", "cart") + " of cart"
	w.until("the other one", "import other/cart ClusterSetIP [c2] "+usable+" 10.96.0.2", other)
	w.namespace("shop", wire.AnnotationGlobalNamespace, "false")
	w.until("without addresses", "import other/cart ClusterSetIP [c2] "+usable+" 10.96.0.2", other, "import shop/cart ClusterSetIP [c2] Ready=False/NamespaceNotGlobal")
	w.namespace("shop")
	w.until("both", "import other/cart ClusterSetIP [c2] "+usable+" 10.96.0.2", other,
		"import shop/cart ClusterSetIP [c2] "+usable+" 10.96.0.4", "service "+derived()+" of cart")
}

// Exports of a cluster that was not read since the start stay in force; the own backends are followed.
func TestWhatWasNotReadIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "c2", "c3")
	w.namespace("shop")
	w.own(1)
	w.remote("c2", 0)
	stop := w.run()
	both := []string{"import shop/cart ClusterSetIP [c1 c2] " + usable + " 10.96.0.2", "service " + derived() + " of cart", "slice " + derived() + "-abc 10.1.0.1", "export shop/cart " + agreed + valid}
	w.until("both", both...)
	stop()

	n := w.NumWrites()
	w.withdraw("c2") // the next process has read nothing of it
	w.Set(func() { w.Remotes, w.Ready = []reconcile.Remote{{Name: "c2"}, {Name: "c3", Read: true}}, false })
	w.run()
	w.Set(func() { w.Ready = true })
	w.cluster.EndpointSlices.Apply([]store.Change[discoveryv1.EndpointSlice]{{Name: "shop/cart-abc", New: slice("10.1.0.9")}})
	both[2] = "slice " + derived() + "-abc 10.1.0.9"
	w.until("the own backend alone", both...)
	if got := w.WritesSince(n); !slices.Equal(got, []string{"apply endpointslices " + derived() + "-abc"}) {
		t.Errorf("before it was read there was written %q", got)
	}
	w.Set(func() { w.Remotes[0].Read = true })
	both[0] = "import shop/cart ClusterSetIP [c1] " + usable + " 10.96.0.2"
	w.until("it was read, and exports nothing", both...)
}

// A process that was ended between two writes leaves an import that waits for its Service. The next one
// finishes that, though it has not read the cluster: it needs nothing of it.
func TestWhatWasHalfDoneIsFinishedWithoutTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "c2")
	w.namespace("shop")
	w.remote("c2", 0)
	stop := w.run()
	service := "service " + derived() + " of cart"
	w.until("the import", "import shop/cart ClusterSetIP [c2] "+usable+" 10.96.0.2", service)
	stop()

	w.withdraw("c2") // the next process has read nothing of it
	w.Set(func() { w.Remotes = []reconcile.Remote{{Name: "c2"}} })
	txn := w.db.ReadTxn()
	im, _ := w.cluster.ServiceImports.Get(txn, "shop/cart")
	half := *im
	half.Spec.IPs = nil
	half.Status.Conditions = []metav1.Condition{{Type: mcs.ConditionReady, Status: metav1.ConditionFalse, Reason: mcs.ReasonPending}}
	svc, _ := w.cluster.Services.Get(txn, "shop/"+derived())
	w.cluster.ServiceImports.Apply([]store.Change[local.ServiceImport]{{Name: "shop/cart", Old: im, New: &half}})
	w.cluster.Services.Apply([]store.Change[corev1.Service]{{Name: "shop/" + derived(), Old: svc}})
	w.run()
	w.until("the import is finished", "import shop/cart ClusterSetIP [c2] "+usable+" 10.96.0.3", service)

	// Decisions of the own cluster are followed too.
	w.namespace("shop", wire.AnnotationGlobalNamespace, "false")
	w.until("the namespace is not global any more", "import shop/cart ClusterSetIP [c2] Ready=False/NamespaceNotGlobal")
	w.namespace("shop")
	w.until("it is again", "import shop/cart ClusterSetIP [c2] "+usable+" 10.96.0.4", service)
}

// 25: objects of other writers are not changed, and are reported.
func TestForeignObjectsStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "c2")
	w.namespace("shop")
	w.cluster.ServiceImports.Apply([]store.Change[local.ServiceImport]{{Name: "shop/cart", New: &local.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", UID: "foreign"}}}})
	w.remote("c2", 0)
	w.run()
	waittest.Until(t, "that is said", func() bool { return strings.Contains(w.Wrong(), "shop/cart: there is a ServiceImport of that name") }, w.Wrong)
	w.withdraw("c2")
	waittest.Until(t, "nothing is wrong any more", func() bool { return w.Wrong() == "" }, w.Wrong)
	if got := w.WritesSince(0); len(got) > 0 {
		t.Errorf("written: %q", got)
	}
}

func TestAForeignServiceKeepsItsName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "c2")
	w.namespace("shop")
	w.cluster.Services.Apply([]store.Change[corev1.Service]{{Name: "shop/" + derived(), New: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: derived(), UID: "foreign"}}}})
	w.remote("c2", 0)
	w.run()
	w.until("an import that waits", "import shop/cart ClusterSetIP [c2] Ready=False/Pending")
	waittest.Until(t, "that is said", func() bool { return strings.Contains(w.Wrong(), "There is a Service "+derived()) }, w.Wrong)
	w.withdraw("c2")
	w.until("none")
	if _, found := w.cluster.Services.Get(w.db.ReadTxn(), "shop/"+derived()); !found {
		t.Error("the foreign Service is gone")
	}
}

// A cluster that exports without end does not take all ClusterIPs, nor the room of own exports.
func TestImportsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "c2")
	w.namespace("shop")
	for i := range 5 {
		w.remote("c2", 0, func(e *wire.ServiceExport) { e.Name = fmt.Sprint("s", i) })
	}
	w.run(func(p *Params) { p.MaxImports = 16 })
	imports := func() int { return w.cluster.ServiceImports.Len() }
	waittest.Until(t, "two imports", func() bool {
		return imports() == 2 && strings.Contains(w.Wrong(), "3 services are not imported, such as shop/s2 (c2: 3): of 16 imports (--mcs-max-imports), a cluster may have 4, and a namespace of a cluster 2")
	}, w.Wrong)
	codestest.Reached(t, codes.Imports, codes.Code(strings.Fields(w.Wrong())[1][:len("MESH-0000")]))
	w.own(0)
	waittest.Until(t, "the own export is one", func() bool { return imports() == 3 }, w.Wrong)
}

// Failed writes are tried again.
func TestFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "c2")
	w.namespace("shop")
	w.remote("c2", 0)
	w.Set(func() { w.Refuse = errors.New("not now") })
	w.run()
	waittest.Until(t, "the failure is said", func() bool { return strings.Contains(w.Wrong(), "not now") }, w.Wrong)
	w.Set(func() { w.Refuse = nil })
	w.until("it is made", "import shop/cart ClusterSetIP [c2] "+usable+" 10.96.0.2", "service "+derived()+" of cart")
	waittest.Until(t, "nothing is wrong any more", func() bool { return w.Wrong() == "" }, w.Wrong)
}

// mcs.md B, API surface: an older program does not replace a newer definition.
func TestDefinitionsAreNotDowngraded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		release, revision string
		want              bool
	}{
		"none known": {"", "", true}, "older": {"v0.4.9", "7", true}, "the same": {"v0.5.2", "0", false}, "newer revision": {"v0.5.2", "1", false},
		"newer": {"v0.10.0", "0", false}, "nobody knows": {"main", "0", false}, "older prerelease": {"v0.5.2-rc.1", "0", true},
	} {
		is := map[string]string{labelRelease: test.release, labelRevision: test.revision}
		if got := isOlder(is, map[string]string{labelRelease: "v0.5.2", labelRevision: "0"}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	w := newWorld(t)
	all, err := Definitions()
	must(t, err)
	newer := all[0].DeepCopy()
	newer.SetLabels(map[string]string{labelRelease: "v9.0.0"})
	w.crds[newer.GetName()] = newer
	w.run(func(p *Params) { p.InstallCRDs = true })
	waittest.Until(t, "the other one", func() bool { return w.NumWrites() > 0 }, w.Wrong)
	if got := w.WritesSince(0); !slices.Equal(got, []string{"apply customresourcedefinitions serviceimports.multicluster.x-k8s.io"}) {
		t.Errorf("written: %q", got)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t, "c2"), NewMetrics()
	w.namespace("shop")
	w.remote("c2", 0)
	stop := w.run(func(p *Params) { p.Metrics = m })
	waittest.Until(t, "the import to be counted", func() bool { return value(t, m, "mesh_agent_mcs_serviceimports") == 1 })
	if written, did := value(t, m, "mesh_agent_mcs_written_total"), w.NumWrites(); int(written) != did || did == 0 {
		t.Errorf("%v writes are counted of %d", written, did)
	}
	stop()
	if n := value(t, m, "mesh_agent_mcs_serviceimports"); n != 0 {
		t.Errorf("who does not lead counts %v imports", n)
	}
	if n := value(t, m, "mesh_agent_mcs_failed_total"); n != 0 {
		t.Errorf("%v have failed", n)
	}
}

// value is that of a metric without labels.
func value(t *testing.T, m *Metrics, name string) float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	must(t, reg.Register(m))
	all, err := reg.Gather()
	must(t, err)
	for _, family := range all {
		if one := family.GetMetric()[0]; family.GetName() == name {
			return one.GetCounter().GetValue() + one.GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// broken is an API server that makes its client panic for one object.
type broken struct {
	*world
	name string
}

func (b broken) Apply(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if o.GetName() == b.name {
		panic("an object that cannot be written")
	}
	return b.world.Apply(ctx, r, o)
}

// A bug that one service leads to leaves out that one: all others are written, and it is said and counted.
func TestAPanicLeavesOutOneService(t *testing.T) {
	t.Parallel()
	w, bounds := newWorld(t, "c2"), boundary.New(nil)
	w.namespace("shop")
	for _, name := range []string{"bad", "cart", "zoo"} {
		w.remote("c2", 0, func(e *wire.ServiceExport) { e.Name = name })
	}
	w.run(func(p *Params) { p.Writer, p.Boundary = broken{w, "bad"}, bounds.Part("mcs") })
	waittest.Until(t, "the others", func() bool {
		return slices.Equal(w.importsOf("c2"), []string{"shop/cart", "shop/zoo"}) && strings.Contains(w.Wrong(), "such as shop/bad: "+boundary.ErrInternal.Error())
	}, w.Wrong)
	if n := testutil.ToFloat64(bounds.WithLabelValues("mcs")); n < 1 {
		t.Errorf("%v failures are counted", n)
	}
}
