package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares answers, byte for byte, with files that are to be read
// as the contract: names, nulls, forms of times and addresses.
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
		"empty-status":    "/v1/status",
		"empty-list":      "/v1/ips",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // for the times of health
				f := newFixture(t)
				if !strings.HasPrefix(name, "empty") {
					f.fill()
				}
				f.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mesh_agent_answer", Help: "A number."}, func() float64 { return 42 }))
				body := f.get(target).Body
				if name == "openapi" {
					var indented bytes.Buffer
					if err := json.Indent(&indented, body.Bytes(), "", "  "); err != nil {
						t.Fatal(err)
					}
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
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", path, diff)
	}
}
