package configcheck

import (
	"bytes"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/checks"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

func TestConfigCheckText(t *testing.T) {
	t.Parallel()
	until := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	report := &checks.Report{
		Directory: "/mesh", OwnCluster: "own", Errors: 1, Warnings: 2, Notes: 2, Connected: true,
		Findings: []codes.Finding{codes.WouldRemove.Found("c9 has no client file in /mesh and would be removed, with 3 nodes, 40 addresses", "")},
		Files: []checks.File{
			{File: "/mesh/README", Verdict: checks.WouldIgnore, Reason: `no client file: the text "endpoints:" is not in it`},
			{
				File: "/mesh/c2", Cluster: "c2", Verdict: checks.WouldConnect, User: "remote (certificate)", CertificateExpires: &until, ClusterID: 2,
				Endpoints: []checks.Endpoint{{URL: "https://c2.mesh.cilium.io:2379", TLS: true}},
				Findings:  []codes.Finding{codes.CertificateExpiresSoon.Found(`cert-file: "/etc/c2.crt": the certificate expires on 2026-11-30, in 9 days`, "renew it")},
			},
			{
				File: "/mesh/c3", Cluster: "c3", Verdict: checks.WouldFail, User: "nobody", Endpoints: []checks.Endpoint{{URL: "http://127.0.0.1:1"}},
				Findings: []codes.Finding{
					codes.WouldAdd.Found("the running agent does not have c3", ""),
					codes.ConnectionRefused.Found("tcp of http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused", ""),
				},
			},
			{File: "/mesh/own", Verdict: checks.WouldIgnore, Reason: "it has the name of the own cluster, which is no remote one"},
		},
		Diff: &checks.Diff{
			Agent: "own", Directory: "/var/lib/cilium/clustermesh/", Unchanged: 1, Vanish: api.ByResource[int]{Nodes: 3, IPs: 40},
			Changes: []checks.Change{
				{Cluster: "c2", Change: checks.Modify, What: []string{"contents of the client file, or of the authorities, certificate or key that it names"}},
				{Cluster: "c3", Change: checks.Add},
				{Cluster: "c9", Change: checks.Remove, Vanish: &api.ByResource[int]{Nodes: 3, IPs: 40}},
			},
		},
	}
	for name, style := range map[string]printer.Style{"config-check": {}, "config-check-terminal": {Width: 80}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			page := printer.NewPage(&out, style)
			pageChecked(page, report)
			if err := page.Flush(); err != nil {
				t.Fatal(err)
			}
			samples.Golden(t, name, out.String())
			samples.Fits(t, out.String(), style, false)
		})
	}
}
