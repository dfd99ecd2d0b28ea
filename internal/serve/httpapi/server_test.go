package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/fakemesh"
)

// wantProblem sends a request and wants a problem document.
func (f *fixture) wantProblem(t *testing.T, method, target string, status int) *httptest.ResponseRecorder {
	t.Helper()
	w := f.do(method, target)
	var p api.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%s %s: %d %q: %v", method, target, w.Code, w.Body, err)
	}
	want := api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: p.Detail}
	if diff := gocmp.Diff(want, p); diff != "" || w.Code != status || p.Detail == "" {
		t.Errorf("%s %s: %d: %s", method, target, w.Code, diff)
	}
	if kind := w.Header().Get("Content-Type"); kind != api.MediaTypeProblem {
		t.Errorf("%s %s: content type %q", method, target, kind)
	}
	return w
}

func TestProblems(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	for _, test := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/nope", 404},
		{"GET", "/v1", 404},
		{"GET", "/v1/", 404},
		{"GET", "/v1/nodes/", 404},
		{"GET", "/v1/nodes/c2", 404},
		{"GET", "/v1/nodes/c2/n1/x", 404},
		{"GET", "/v1/nothing", 404},
		{"POST", "/nope", 404},
		{"GET", "//nope", 404},
		{"GET", "/v1/clusters/nope", 404},
		{"GET", "/v1/nodes/c2/nope", 404},
		{"GET", "/v1/services/default/nope", 404},
		{"GET", "/v1/identities/1", 404},
		{"GET", "/v1/ips/10.2.1.77", 404},
		{"GET", "/v1/ips/10.2.0.0/16", 404},
		{"GET", "/v1/health/nope", 404},
		{"POST", "/v1/nodes", 405},
		{"PUT", "/v1/nodes/c2/n1", 405},
		{"DELETE", "/healthz", 405},
		{"OPTIONS", "/v1/status", 405},
		{"POST", "/", 405},
	} {
		t.Run(test.method+" "+test.target, func(t *testing.T) {
			t.Parallel()
			w := f.wantProblem(t, test.method, test.target, test.status)
			if allow := w.Header().Get("Allow"); test.status == 405 && allow != "GET, HEAD" {
				t.Errorf("Allow: %q", allow)
			}
		})
	}
}

func TestSingleObjects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	for target, want := range map[string]string{
		"/v1/ips/10.2.1.0/24":           `"prefix":"10.2.1.0/24"`,
		"/v1/ips/10.2.1.0%2F24":         `"prefix":"10.2.1.0/24"`,
		"/v1/ips/10.2.1.10/32":          `"claims":4`,
		"/v1/ips/fd00::1":               `"prefix":"fd00::1/128"`,
		"/v1/ips/FD00:0::1":             `"prefix":"fd00::1/128"`,
		"/v1/nodes/c2/n%31":             `"name":"n1"`,
		"/v1/health/remote-cluster.c2":  `"state":"ok"`,
		"/v1/health/clustermesh":        `"message":"job-mesh: watching"`,
		"/v1/clusters/c3?anything=else": `"name":"c3"`,
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			w := f.get(target)
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if kind := w.Header().Get("Content-Type"); kind != "application/json" {
				t.Errorf("content type %q", kind)
			}
		})
	}
}

// TestAnAddressWithinANetwork: the answer for an address without an entry of its own names the network that it is in,
// and the lookup to use instead.
func TestAnAddressWithinANetwork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	const doubt = "; what these clusters have is not known as of now: c3"
	for target, want := range map[string]string{
		"/v1/ips/10.2.1.77":   "no cluster claims 10.2.1.77/32 itself, but it is in 10.2.1.0/24 of cluster c2: 'mesh-agent lookup 10.2.1.77' (/v1/lookup/10.2.1.77) shows more",
		"/v1/ips/10.2.1.0/25": "no cluster claims 10.2.1.0/25",
		"/v1/ips/10.9.9.9":    "no cluster claims 10.9.9.9/32",
	} {
		var p api.Problem
		if err := json.Unmarshal(f.wantProblem(t, http.MethodGet, target, http.StatusNotFound).Body.Bytes(), &p); err != nil || p.Detail != want+doubt {
			t.Errorf("%s: %v %q", target, err, p.Detail)
		}
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.fill()
	for _, target := range []string{"/v1/ips", "/v1/status", "/healthz"} {
		if w := f.do(http.MethodHead, target); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v", target, w.Code, w.Header())
		}
	}
	if w := f.do(http.MethodHead, "/v1/ips"); w.Body.Len() != 0 {
		t.Errorf("a list was made for HEAD: %s", w.Body)
	}
}

// TestReadiness: an agent that is ready because the sync timeout has passed reports that, and the missing clusters.
func TestReadiness(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	expect := func(want api.Readiness) {
		t.Helper()
		w := f.get("/readyz")
		var answer api.Readiness
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != cmp.Or(want.Status, http.StatusOK) {
			t.Fatalf("%d %v", w.Code, err)
		}
		if diff := gocmp.Diff(want, answer); diff != "" || (w.Header().Get("Content-Type") == api.MediaTypeProblem) == want.Ready {
			t.Errorf("%v %s", w.Header(), diff)
		}
	}
	none, reasons := map[string]string{}, map[string]string{"c3": "connecting", "c2": "ips not synced"}
	f.mesh.Set(func(is *fakemesh.Facts) { is.NotReady = reasons })
	expect(api.Readiness{
		Type: "about:blank", Title: "Service Unavailable", Status: 503, Detail: "waiting for c2: ips not synced; c3: connecting",
		Reasons: reasons, Without: none,
	})
	if w := f.get("/healthz"); w.Code != http.StatusOK {
		t.Errorf("not live while not ready: %d", w.Code)
	}
	if st := object[api.Status](t, f, "/v1/status"); st.State != api.StateStarting || st.Ready {
		t.Errorf("status %q, ready %v", st.State, st.Ready)
	}
	f.mesh.Set(func(is *fakemesh.Facts) { is.NotReady = nil })
	expect(api.Readiness{Ready: true, Reasons: none, Without: none})
	missing := map[string]string{"c3": "not synced: nodes: connection refused", "c2": "not synced: ips"}
	f.mesh.Set(func(is *fakemesh.Facts) { is.Missing = missing })
	expect(api.Readiness{
		Ready: true, Code: "MESH-7011", Reasons: none, Without: missing,
		Detail: "ready since the sync timeout has passed, without c2: not synced: ips; c3: not synced: nodes: connection refused",
	})
	codestest.Reached(t, codes.API, codes.ReadyWithout)
}

func TestStatusIsDegradedByAnythingStale(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	state := func() string { return object[api.Status](t, f, "/v1/status").State }
	c := readyCluster("c2", 2)
	f.mesh.Set(func(is *fakemesh.Facts) { is.Clusters = append(is.Clusters, c) })
	if s := state(); s != api.StateReady {
		t.Errorf("state %q of a cluster that is well", s)
	}
	for r, src := range c.Families {
		if r == wire.ServiceExports {
			continue // no client waits for these
		}
		src.Freshness.State = "stale"
		c.Families[r] = src
		break
	}
	if s := state(); s != api.StateDegraded {
		t.Errorf("state %q with stale data", s)
	}
}

type brokenCollector struct{}

func (brokenCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- prometheus.NewDesc("broken", "Broken.", nil, nil)
}

func (brokenCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("broken", "Broken.", nil, nil), errors.New("no"))
}

func TestMetricsSurviveABrokenCollector(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.registry.MustRegister(brokenCollector{}, prometheus.NewCounter(prometheus.CounterOpts{Name: "good_total", Help: "Good."}))
	if w := f.get("/metrics"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "good_total 0") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestPanics(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.mux.HandleFunc("GET /early", func(http.ResponseWriter, *http.Request) { panic("before the answer") })
	f.mux.HandleFunc("GET /late", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("half"))
		panic("within the answer")
	})
	f.mux.HandleFunc("GET /error", func(w http.ResponseWriter, r *http.Request) { f.fail(w, r, errors.New("cannot")) })
	f.wantProblem(t, http.MethodGet, "/early", http.StatusInternalServerError)
	f.wantProblem(t, http.MethodGet, "/error", http.StatusInternalServerError)
	defer func() {
		if cause := recover(); cause != http.ErrAbortHandler {
			t.Errorf("a broken answer ended with %v", cause)
		}
	}()
	f.get("/late")
}

// TestServerNeedsEverySource also finds sources that validate does not check.
func TestServerNeedsEverySource(t *testing.T) {
	t.Parallel()
	whole := newFixture(t).Params
	for i := range reflect.TypeFor[Params]().NumField() {
		field := reflect.TypeFor[Params]().Field(i)
		if slices.Contains([]string{"Agent", "Asker", "Zone", "Directory", "Keys", "Missing", "Leads", "Writer", "Written", "Stopped", "Serving", "XDSClients", "Described", "DescribedBy", "History"}, field.Name) {
			continue
		}
		part := whole
		reflect.ValueOf(&part).Elem().Field(i).SetZero()
		if _, err := NewServer(part, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("no error without %s", field.Name)
		}
	}
}
