package kubetest

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/internal/waiting/waittest"
)

// Apply makes objects as they are given, in YAML, as the administrator. An object
// that exists becomes as it is given. The status counts also of kinds that have
// it apart.
func (s *Server) Apply(t testing.TB, texts ...string) {
	t.Helper()
	client := s.Client(t)
	for _, text := range texts {
		o, in := parse(t, client, text)
		apply(t, o, in.Apply)
		switch o.GetKind() {
		case "Node", "Pod", "Service":
			if o.Object["status"] != nil {
				apply(t, o, func(ctx context.Context, name string, o *unstructured.Unstructured, opts metav1.ApplyOptions, _ ...string) (*unstructured.Unstructured, error) {
					return in.ApplyStatus(ctx, name, o, opts)
				})
			}
		}
	}
}

// apply waits for a kind whose definition was made a moment ago.
func apply(t testing.TB, o *unstructured.Unstructured,
	do func(context.Context, string, *unstructured.Unstructured, metav1.ApplyOptions, ...string) (*unstructured.Unstructured, error),
) {
	t.Helper()
	waittest.Try(t, "the kind "+o.GetKind(), func() error {
		_, err := do(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "test", Force: true})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		return err
	})
}

// Delete deletes objects at once; their names are looked for in YAML. Of a
// namespace nothing is left either, as nobody else would finish that.
func (s *Server) Delete(t testing.TB, texts ...string) {
	t.Helper()
	client := s.Client(t)
	for _, text := range texts {
		o, in := parse(t, client, text)
		err := in.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		if err == nil && o.GetKind() == "Namespace" {
			_, err = in.Update(t.Context(), o, metav1.UpdateOptions{}, "finalize")
		}
		if err != nil {
			t.Fatalf("delete %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// Token returns a token of a service account, good for an hour.
func (s *Server) Token(t testing.TB, namespace, account string) string {
	t.Helper()
	request := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": map[string]any{"name": account}, "spec": map[string]any{"expirationSeconds": int64(3600)},
	}}
	accounts := s.Client(t).Resource(corev1.SchemeGroupVersion.WithResource("serviceaccounts")).Namespace(namespace)
	granted, err := accounts.Create(t.Context(), request, metav1.CreateOptions{}, "token")
	if err != nil {
		t.Fatalf("a token of %s/%s: %v", namespace, account, err)
	}
	token, _, err := unstructured.NestedString(granted.Object, "status", "token")
	if err != nil || token == "" {
		t.Fatalf("no token of %s/%s in %v: %v", namespace, account, granted.Object, err)
	}
	return token
}

// parse reads an object and says where it belongs: in the resource that is its
// kind's name as a plural.
func parse(t testing.TB, client dynamic.Interface, text string) (*unstructured.Unstructured, dynamic.ResourceInterface) {
	t.Helper()
	o := new(unstructured.Unstructured)
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	return o, client.Resource(plural).Namespace(o.GetNamespace())
}
