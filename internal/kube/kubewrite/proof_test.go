package kubewrite

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestProof(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, lost := 0, error(nil)
		w := new(Writer)
		if err := w.proof.check(t.Context()); err != nil {
			t.Errorf("nothing has to be proved: %v", err)
		}
		w.Prove(func(context.Context) error { asked++; return lost })
		check := func(what string, numAsked int, fails bool) {
			t.Helper()
			if err := w.proof.check(t.Context()); (err != nil) != fails || asked != numAsked {
				t.Errorf("%s: %v, asked %d times", what, err, asked)
			}
		}
		check("the first write", 1, false)
		check("the next one", 1, false)
		time.Sleep(proofAge) // of the bubble
		check("half a second later", 1, false)
		time.Sleep(time.Nanosecond)
		check("the proof is too old", 2, false)
		lost = errors.New("another one leads")
		check("it still counts", 2, false)
		time.Sleep(time.Hour) // frozen
		check("another one leads", 3, true)
		check("asked again", 4, true)
		lost = nil
		w.Prove(func(context.Context) error { asked++; return nil })
		check("a new term", 5, false)
	})
}

// TestNothingIsWrittenWithoutProof: no write reaches the API server; reads do.
func TestNothingIsWrittenWithoutProof(t *testing.T) {
	t.Parallel()
	var written, read atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || strings.Contains(r.URL.RawQuery, "dryRun") {
			read.Add(1)
		} else {
			written.Add(1)
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"cart","namespace":"shop","uid":"1"}}`))
	}))
	t.Cleanup(server.Close)
	w, err := New(&rest.Config{Host: server.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	lost := errors.New("another one leads")
	services := schema.GroupVersionResource{Version: "v1", Resource: "services"}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "cart", "namespace": "shop"}}}
	for _, proved := range []error{lost, nil} {
		w.Prove(func(context.Context) error { return proved })
		_, applied := w.Apply(t.Context(), services, object)
		_, status := w.ApplyStatus(t.Context(), services, object)
		_, deleted := w.Delete(t.Context(), services, "shop", "cart", "1")
		for _, err := range []error{applied, status, deleted} {
			if !errors.Is(err, proved) {
				t.Errorf("with %v: %v", proved, err)
			}
		}
		if _, err := w.Get(t.Context(), services, "shop", "cart"); err != nil {
			t.Error(err)
		}
		if _, err := w.Try(t.Context(), services, object); err != nil {
			t.Error(err)
		}
		if n := written.Load(); proved != nil && n != 0 || proved == nil && n != 3 {
			t.Errorf("with %v, %d writes were made", proved, n)
		}
	}
	if read.Load() != 4 {
		t.Errorf("%d reads", read.Load())
	}
}
