package serviceimports

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
)

// Metrics are those of the objects that are written. The gauges are zero in a process that does not lead.
type Metrics struct {
	reconcile.Metrics
	imports, leftOut prometheus.Gauge
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	m := &Metrics{Metrics: reconcile.NewMetrics("mesh_agent_mcs", "Objects of the MCS API, with derived Services and their slices,")}
	m.imports = m.Gauge("mesh_agent_mcs_serviceimports", "ServiceImports that this program keeps in the own cluster; 0 while another process leads.")
	m.leftOut = m.Gauge("mesh_agent_mcs_serviceimports_left_out", "Services that are not imported, since the share of their cluster or namespace is used up.")
	return m
}

func (m *Metrics) reset() {
	m.imports.Set(0)
	m.leftOut.Set(0)
}

// counted counts what a writer writes.
type counted struct {
	Writer
	metrics *Metrics
}

// Apply implements [Writer].
func (c counted) Apply(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	applied, err := c.Writer.Apply(ctx, r, o)
	c.applied(ctx, err)
	return applied, err
}

// ApplyStatus implements [Writer].
func (c counted) ApplyStatus(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	applied, err := c.Writer.ApplyStatus(ctx, r, o)
	c.applied(ctx, err)
	return applied, err
}

// applied counts a request to apply an object. It does not count a failure when the object was deleted meanwhile.
func (c counted) applied(ctx context.Context, err error) {
	if !isGone(err) {
		c.metrics.Applied(ctx, err)
	}
}

// Delete implements [Writer].
func (c counted) Delete(ctx context.Context, r schema.GroupVersionResource, namespace, name string, uid types.UID) (bool, error) {
	deleted, err := c.Writer.Delete(ctx, r, namespace, name, uid)
	c.metrics.Deleted(ctx, err)
	return deleted, err
}
