package serviceimports

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/store"
)

// convert reads a written object as an API server does, which refuses unknown fields.
func convert[T any](o *unstructured.Unstructured) (*T, error) {
	one := new(T)
	return one, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, one, true)
}

// put applies an object to a table, and returns its UID.
func put[T any, P local.Object[T]](w *world, into *local.Objects[T, P], one P, complete func(is P)) (types.UID, error) {
	is, found := into.Get(w.db.ReadTxn(), local.Name(one))
	switch {
	case one.GetUID() != "" && (!found || is.GetUID() != one.GetUID()):
		return "", apierrors.NewConflict(schema.GroupResource{}, one.GetName(), errors.New("uid mismatch"))
	case found:
		one.SetUID(is.GetUID())
	default:
		is = nil
		w.Made++
		one.SetUID(types.UID(fmt.Sprint("made-", w.Made)))
	}
	complete(is)
	one.SetOwnerReferences(nil) // as the source strips it
	into.Apply([]store.Change[T]{{Name: local.Name(one), New: (*T)(one)}})
	return one.GetUID(), nil
}

func (w *world) write(text string) error {
	w.Writes = append(w.Writes, text)
	return w.Refuse
}

func (w *world) Apply(_ context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if err := w.write("apply " + r.Resource + " " + o.GetName()); err != nil {
		return nil, err
	}
	out := o.DeepCopy()
	uid, err := types.UID(""), error(nil)
	switch r.Resource {
	case "services":
		uid, err = w.applyService(o)
	case "serviceimports":
		var one *local.ServiceImport
		if one, err = convert[local.ServiceImport](o); err == nil {
			uid, err = put(w, w.cluster.ServiceImports, one, func(is *local.ServiceImport) {
				if is != nil {
					one.Status = is.Status
				}
			})
		}
	case "endpointslices":
		var one *discoveryv1.EndpointSlice
		if one, err = convert[discoveryv1.EndpointSlice](o); err == nil {
			uid, err = put(w, w.cluster.EndpointSlices, one, func(*discoveryv1.EndpointSlice) {})
		}
	default:
		w.crds[o.GetName()] = o
	}
	out.SetUID(uid)
	return out, err
}

// applyService gives a Service its address, as an API server does.
func (w *world) applyService(o *unstructured.Unstructured) (types.UID, error) {
	one, err := convert[corev1.Service](o)
	if err != nil {
		return "", err
	}
	return put(w, w.cluster.Services, one, func(is *corev1.Service) {
		one.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
		switch {
		case is != nil:
			one.Spec.ClusterIP = is.Spec.ClusterIP
		case one.Spec.ClusterIP == "":
			one.Spec.ClusterIP = fmt.Sprint("10.96.0.", w.Made)
		}
		one.Spec.ClusterIPs = []string{one.Spec.ClusterIP}
	})
}

func (w *world) ApplyStatus(_ context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if err := w.write("status " + r.Resource + " " + o.GetName()); err != nil {
		return nil, err
	}
	if r.Resource == "serviceexports" {
		one, err := convert[local.ServiceExport](o)
		if err != nil {
			return nil, err
		}
		_, err = put(w, w.cluster.ServiceExports, one, func(is *local.ServiceExport) {
			status := one.Status
			*one = *is
			one.Status = status
		})
		return o, err
	}
	one, err := convert[local.ServiceImport](o)
	if err != nil {
		return nil, err
	}
	_, err = put(w, w.cluster.ServiceImports, one, func(is *local.ServiceImport) {
		status := one.Status
		*one = *is
		one.Status = status
	})
	return o, err
}

func (w *world) Try(_ context.Context, _ schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	out := o.DeepCopy()
	return out, unstructured.SetNestedStringSlice(out.Object, []string{"IPv4"}, "spec", "ipFamilies")
}

func (w *world) Get(_ context.Context, _ schema.GroupVersionResource, _, name string) (*unstructured.Unstructured, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.crds[name], nil
}

func remove[T any, P local.Object[T]](w *world, from *local.Objects[T, P], name string, uid types.UID) bool {
	is, found := from.Get(w.db.ReadTxn(), name)
	if !found || is.GetUID() != uid {
		return false
	}
	from.Apply([]store.Change[T]{{Name: name, Old: (*T)(is)}})
	return true
}

func (w *world) Delete(_ context.Context, r schema.GroupVersionResource, namespace, name string, uid types.UID) (bool, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if err := w.write("delete " + r.Resource + " " + name); err != nil {
		return false, err
	}
	switch name = namespace + "/" + name; r.Resource {
	case "services":
		return remove(w, w.cluster.Services, name, uid), nil
	case "serviceimports":
		return remove(w, w.cluster.ServiceImports, name, uid), nil
	}
	return remove(w, w.cluster.EndpointSlices, name, uid), nil
}
