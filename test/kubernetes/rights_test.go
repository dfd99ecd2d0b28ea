package kubernetes

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mesh-agent/mesh-agent/internal/kube/endpointslices"
	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/doctest"
	"github.com/mesh-agent/mesh-agent/simtest/kubetest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestTheOperatorIsLimitedToItsOwnObjects: with the policy of docs/rights.md the account can write the program's own
// objects, and cannot change, take over or delete others.
func TestTheOperatorIsLimitedToItsOwnObjects(t *testing.T) {
	t.Parallel()
	i := newImported(t)
	policy := doctest.Block(t, "../../docs/rights.md", "apiVersion: admissionregistration.k8s.io/v1")
	i.Apply(t, strings.Split(policy, "\n---\n")...)
	i.Apply(t, plainService("victim", ""), slice("victim-1", "victim", "10.1.0.1"))
	w, ctx, service := newWriter(t, i.Server, i.token), waittest.Context(t), corev1.SchemeGroupVersion.WithResource("services")
	object := func(kind, name string, labels map[string]any) *unstructured.Unstructured {
		if kind == "EndpointSlice" {
			return bareSlice(name, labels, 1)
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"namespace": "default", "name": name, "labels": labels},
			"spec": map[string]any{"ports": []any{map[string]any{"name": "other", "port": int64(81), "protocol": "TCP"}}},
		}}
	}
	ours := map[string]any{mcs.LabelWritten: mcs.Written, endpointslices.LabelOwner: "x"}
	waittest.Until(t, "the policy is in force", func() bool {
		_, err := w.Apply(ctx, service, object("Service", "none", nil))
		return apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
	})
	apply := func(r schema.GroupVersionResource, o *unstructured.Unstructured) func() error {
		return func() error { _, err := w.Apply(ctx, r, o); return err }
	}
	victim, err := newWriter(t, i.Server, kubetest.Admin).Get(ctx, service, "default", "victim")
	waittest.Must(t, err)
	for what, try := range map[string]func() error{
		"changes a Service":    apply(service, object("Service", "victim", nil)),
		"takes over a Service": apply(service, object("Service", "victim", ours)),
		"creates a Service":    apply(service, object("Service", "new", nil)),
		"changes a slice":      apply(endpointslices.Resource(), object("EndpointSlice", "victim-1", nil)),
		"takes over a slice":   apply(endpointslices.Resource(), object("EndpointSlice", "victim-1", ours)),
		"creates a slice":      apply(endpointslices.Resource(), object("EndpointSlice", "new", nil)),
		"deletes a Service":    func() error { _, err := w.Delete(ctx, service, "default", "victim", victim.GetUID()); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "mesh-agent-operate can only") {
			t.Errorf("it %s: %v", what, err)
		}
	}
	i.export(t, "late", 2001)
	stop := i.serve(t, "first")
	i.await(t, "what the program writes", "ServiceImport late ClusterSetIP west with an address: Ready=True/Ready", "Service "+wire.DerivedServiceName("default", "late"))
	i.export(t, "late", 2001, func(e *wire.ServiceExport) { e.Type = wire.ServiceExportHeadless })
	i.await(t, "and changes", "ServiceImport late Headless west: Ready=True/Ready", "Service "+wire.DerivedServiceName("default", "late"))
	waittest.Must(t, os.Remove(i.file))
	i.await(t, "and deletes")
	stop()
}
