package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/mesh-agent/mesh-agent/internal/serve/transport"
	"github.com/mesh-agent/mesh-agent/pkg/api"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares answers, byte for byte, with golden files, which show the contract: names, nulls, formats of
// times and addresses.
func TestGolden(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{
		"status":          "/v1/status",
		"clusters":        "/v1/clusters",
		"cluster":         "/v1/clusters/c2",
		"nodes":           "/v1/nodes",
		"node":            "/v1/nodes/c2/n1",
		"services":        "/v1/services",
		"service":         "/v1/services/default/web",
		"backends":        "/v1/backends/default/web?zone=a&port=http",
		"no-backends":     "/v1/backends/default/nope",
		"bad-backends":    "/v1/backends/default/web?sone=a",
		"exports":         "/v1/serviceexports?namespace=default",
		"export":          "/v1/serviceexports/c3/db/own",
		"unknown-export":  "/v1/serviceexports/c3/db/nope",
		"identities":      "/v1/identities",
		"identity":        "/v1/identities/131072",
		"ips":             "/v1/ips",
		"ip":              "/v1/ips/10.2.1.10",
		"health":          "/v1/health",
		"health-one":      "/v1/health/remote-cluster.c3",
		"lookup-pod":      "/v1/lookup/10.2.1.10",
		"lookup-node":     "/v1/lookup/192.168.2.1",
		"lookup-pod-cidr": "/v1/lookup/10.2.1.77",
		"lookup-nobody":   "/v1/lookup/10.9.9.9",
		"lookup-backend":  "/v1/lookup/10.1.1.10",
		"lookup-mapped":   "/v1/lookup/::ffff:10.2.1.2",
		"lookup-unknown":  "/v1/lookup/fd00::1",
		"unknown-path":    "/v1/nope",
		"unknown-cluster": "/v1/clusters/nope",
		"conflicts":       "/v1/conflicts?cluster=c3",
		"conflict":        "/v1/conflicts/ip/10.2.1.10/32",
		"events":          "/v1/events",
		"event":           "/v1/events/1",
		"ips-by-labels":   "/v1/ips?labels=app+in+(web,db),io.kubernetes.pod.namespace",
		"nodes-by-labels": "/v1/nodes?labels=zone%3Da",
		"bad-selector":    "/v1/nodes?labels=a+b",
		"unknown-event":   "/v1/events/77",
		"unknown-service": "/v1/services/default/nope",
		"bad-limit":       "/v1/ips?limit=0",
		"bad-filter":      "/v1/nodes?namespace=default",
		"bad-address":     "/v1/lookup/10.9.9.9.9",
		"healthz":         "/healthz",
		"readyz":          "/readyz",
		"index":           "/",
		"metrics":         "/metrics",
		"openapi":         "/openapi.json",
		"sharing":         "/v1/sharing",
		"sharing-cluster": "/v1/sharing?cluster=c3",
		"history":         "/v1/history",
		"history-cluster": "/v1/history/c2",
		"history-unknown": "/v1/history/nope",
		"empty-history":   "/v1/history",
		"empty-status":    "/v1/status",
		"empty-list":      "/v1/ips",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // for the times of health
				f := newFixture(t)
				if !strings.HasPrefix(name, "empty") {
					f.fill()
					ended, cancel := context.WithCancel(t.Context())
					cancel()
					must(t, f.History.Run(ended)) // the history has this moment
				}
				f.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mesh_agent_answer", Help: "A number."}, func() float64 { return 42 }))
				body := f.get(target).Body
				if name == "openapi" {
					var indented bytes.Buffer
					must(t, json.Indent(&indented, body.Bytes(), "", "  "))
					body = &indented
				}
				compareGolden(t, name, body.Bytes())
			})
		})
	}
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", path, diff)
	}
}

func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"", "limit=5", "limit=-1", "prefix=10.0.0.0/8&cluster=c2", "identity=1", "cursor=" + transport.EncodeCursor("ips", "10.0.0.1/32"), "%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := parseQuery("ips", []string{byCluster, byPrefix, byIdentity}, raw)
		if err != nil {
			if _, ok := errors.AsType[*api.Problem](err); !ok {
				t.Fatalf("%T is no problem", err)
			}
			return
		}
		if q.limit < 0 || q.limit > api.MaxLimit {
			t.Fatalf("limit %d", q.limit)
		}
		if q.prefix.IsValid() && q.prefix != q.prefix.Masked() {
			t.Fatalf("prefix %s has host bits", q.prefix)
		}
	})
}

// FuzzJustBefore: a list that starts there has all addresses of the range, and none before it.
func FuzzJustBefore(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0}, uint8(0))
	f.Add([]byte{10, 0, 0, 0}, uint8(8))
	f.Add(make([]byte, 16), uint8(0))
	f.Fuzz(func(t *testing.T, raw []byte, bits uint8) {
		a, ok := netip.AddrFromSlice(raw)
		if !ok || a.Is4In6() || int(bits) > a.BitLen() {
			return
		}
		p := netip.PrefixFrom(a, int(bits)).Masked()
		start := justBefore(p.Addr())
		if comparePrefixes(start, p) >= 0 {
			t.Fatalf("%s is not before %s", start, p)
		}
		if !start.IsValid() {
			return
		}
		if next := start.Addr().Next(); next.IsValid() && next != p.Addr() || !next.IsValid() && p.Addr() != netip.IPv6Unspecified() {
			t.Fatalf("there is room between %s and %s", start, p)
		}
	})
}
