package kubewrite

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Get returns an object as it is; nil when there is none. The namespace is empty for what has none.
func (w *Writer) Get(ctx context.Context, r schema.GroupVersionResource, namespace, name string) (o *unstructured.Unstructured, err error) {
	err = w.do(ctx, func(ctx context.Context) (err error) {
		o, err = w.dynamic.Resource(r).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	switch {
	case err == nil:
		return o, nil
	case apierrors.IsNotFound(err) && isOf(err, name):
		return nil, nil
	}
	return nil, w.failed("get", r, namespace, name, err)
}

// Try returns an object as the API server would have it after [Writer.Apply], and changes nothing.
func (w *Writer) Try(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (applied *unstructured.Unstructured, err error) {
	err = w.do(ctx, func(ctx context.Context) (err error) {
		in := w.dynamic.Resource(r).Namespace(o.GetNamespace())
		applied, err = in.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: FieldManager, Force: true, DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if err != nil {
		return nil, w.failed("try to apply", r, o.GetNamespace(), o.GetName(), err)
	}
	return applied, nil
}
