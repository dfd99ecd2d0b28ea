// Package kubewrite writes objects to the Kubernetes API.
//
// An object is applied as a whole by server-side apply, as the field manager [FieldManager] and with force: fields that
// this program wrote before and no longer names are removed, fields of others stay. An object that is already equal is
// not changed, and keeps its resource version. A deletion names the UID of its object: an object that another writer
// created meanwhile under the same name stays.
//
// A program that writes only while it leads uses [Writer.Prove]: if it was frozen and another process has become
// leader, it notices that before it writes.
//
// Requests are bounded in number, not in rate: the API server shares itself out among its clients. Each ends after
// [Timeout]. This package does not try a request again; the caller follows the objects and knows which writes are still
// missing.
//
// Concurrency: all methods may be called by any goroutine. There is no goroutine of this package's own.
package kubewrite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
)

// FieldManager is who this program is among those that own fields of an object.
const FieldManager = "mesh-agent"

// DefaultAtOnce is how many requests are made at once unless [Options] say otherwise: as many as keep
// an API server busy without taking the share of others.
const DefaultAtOnce = 16

// Timeout bounds one request, the time that it waits for its turn not included.
const Timeout = 15 * time.Second

// Options are those of a [Writer]; the zero value is complete.
type Options struct {
	// AtOnce is the maximum number of concurrent requests; 0 is [DefaultAtOnce].
	AtOnce int
	// Role is what gives the account the rights that it needs, such as
	// "deploy/endpointslices.yaml", for the errors of an account without them; empty: nothing is
	// proposed.
	Role string
}

// Writer writes to one API server.
type Writer struct {
	client  *http.Client
	dynamic dynamic.Interface
	role    string
	turns   chan struct{} // has an element for each request that is being made
	proof   proof         // on which writes rely
}

// New returns a writer for the API server of a configuration, such as that of kubernetes.Configuration, which it does
// not change. It fails when the configuration contradicts itself; it sends no request yet. The caller must close the
// writer.
func New(config *rest.Config, o Options) (*Writer, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // bounded in number instead
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("the Kubernetes API at %s: %w", config.Host, err)
	}
	d, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("the Kubernetes API at %s: %w", config.Host, err)
	}
	return &Writer{client: client, dynamic: d, role: o.Role, turns: make(chan struct{}, cmp.Or(o.AtOnce, DefaultAtOnce))}, nil
}

// AtOnce is the maximum number of concurrent requests; further callers wait.
func (w *Writer) AtOnce() int { return cap(w.turns) }

// Close closes the idle connections.
func (w *Writer) Close() { utilnet.CloseIdleConnectionsFor(w.client.Transport) }

// Apply makes an object equal to o, and returns it as the API server then has it: it is created if there is none. With
// a UID in its metadata it must be that object; if it is not, the error is a [*Error] for which [IsOther] is true.
// Apply does not change o.
func (w *Writer) Apply(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return w.apply(ctx, "apply", r, o, metav1.ApplyOptions{})
}

// ApplyStatus is Apply of the status alone, of a kind that has it apart. The object must exist.
func (w *Writer) ApplyStatus(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return w.apply(ctx, "apply", r, o, metav1.ApplyOptions{}, "status")
}

// Try returns an object as the API server would have it after [Writer.Apply], and changes nothing.
func (w *Writer) Try(ctx context.Context, r schema.GroupVersionResource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return w.apply(ctx, "try to apply", r, o, metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}})
}

func (w *Writer) apply(ctx context.Context, verb string, r schema.GroupVersionResource, o *unstructured.Unstructured,
	how metav1.ApplyOptions, subresources ...string,
) (applied *unstructured.Unstructured, err error) {
	how.FieldManager, how.Force = FieldManager, true
	err = w.do(ctx, func(ctx context.Context) (err error) {
		if len(how.DryRun) == 0 {
			if err := w.proof.check(ctx); err != nil {
				return err
			}
		}
		applied, err = w.dynamic.Resource(r).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o, how, subresources...)
		return err
	})
	if err != nil {
		return nil, w.failed(verb, r, o.GetNamespace(), o.GetName(), err)
	}
	return applied, nil
}

// Get returns an object as it is; nil when there is none. The namespace is empty for an object without one.
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

// Delete deletes the object with this UID, and reports whether it did: the object may no longer exist, or another one
// may have its name. The namespace is empty for an object without one.
func (w *Writer) Delete(ctx context.Context, r schema.GroupVersionResource, namespace, name string, uid types.UID) (bool, error) {
	err := w.do(ctx, func(ctx context.Context) error {
		if err := w.proof.check(ctx); err != nil {
			return err
		}
		return w.dynamic.Resource(r).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	})
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsNotFound(err) && isOf(err, name), apierrors.IsConflict(err):
		return false, nil
	}
	return false, w.failed("delete", r, namespace, name, err)
}

// isOf reports whether an error is about an object of this name. Else it is the resource that does not exist.
func isOf(err error, name string) bool {
	d := detailsOf(err)
	return d != nil && d.Name == name
}

// detailsOf returns the details that the API server adds to an error; nil when there are none.
func detailsOf(err error) *metav1.StatusDetails {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	return status.Status().Details
}

// do makes one request when it is its turn.
func (w *Writer) do(ctx context.Context, request func(context.Context) error) error {
	select {
	case w.turns <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-w.turns }()
	bound, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	if err := request(bound); err != nil {
		if ctx.Err() == nil && bound.Err() != nil {
			return fmt.Errorf("no answer within %s: %w", Timeout, err)
		}
		return err
	}
	return nil
}

// Error says which object could not be written, why, and what to do about it.
type Error struct {
	Verb     string // apply or delete
	Resource schema.GroupVersionResource
	Object   string // "namespace/name", or "name"
	Remedy   string // empty when there is none but to try again
	Err      error
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s %s %s: %v", e.Verb, e.Resource.Resource, e.Object, e.Err)
	if e.Remedy != "" {
		text += ": " + e.Remedy
	}
	return text
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

func (w *Writer) failed(verb string, r schema.GroupVersionResource, namespace, name string, err error) error {
	object := strings.TrimPrefix(namespace+"/"+name, "/") // some have no namespace
	return &Error{Verb: verb, Resource: r, Object: object, Remedy: w.remedy(r, name, err), Err: err}
}

// remedy tells the operator how to remove the cause.
func (w *Writer) remedy(r schema.GroupVersionResource, name string, err error) string {
	switch {
	case IsTerminating(err):
		return ""
	case apierrors.IsForbidden(err) && w.role != "":
		return "this account lacks the right: apply " + w.role + ", or allow it create, patch and delete of " + r.GroupResource().String()
	case apierrors.IsForbidden(err):
		return "this account lacks the right: allow it create, patch and delete of " + r.GroupResource().String()
	case apierrors.IsUnauthorized(err):
		return "the token or certificate is not accepted: check the kubeconfig or the service account"
	case apierrors.IsNotFound(err) && !isOf(err, name):
		return "the API server has no " + r.GroupResource().String() + ": apply its definition, or leave out the flag that needs it"
	}
	return ""
}

// IsTerminating reports whether an object was refused because its namespace is being deleted: then nothing is left to
// do (mcs.md B).
func IsTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// IsOther reports whether the object no longer exists, or does not have the UID that was given.
func IsOther(err error) bool {
	if apierrors.IsConflict(err) { // the form of this error for a deletion
		return true
	}
	d := detailsOf(err)
	var of *Error
	if apierrors.IsNotFound(err) && errors.As(err, &of) && d != nil { // as a status does
		return d.Kind == of.Resource.Resource && d.Name == path.Base(of.Object)
	}
	return d != nil && slices.ContainsFunc(d.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" }) // as applying does
}

// Object returns the part of an object that is applied: without its status, and without fields that only an API server
// sets. Its type must be one of Kubernetes, or like them.
func Object(o any) *unstructured.Unstructured {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	tables.Must(err)
	delete(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: fields}
}
