package troubleshoot

import (
	"bytes"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/internal/cli/command"
	"github.com/mesh-agent/mesh-agent/internal/diagnose/troubleshoot"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/simtest/samples"
)

func TestTroubleshootText(t *testing.T) {
	t.Parallel()
	const url = "https://c2.mesh.cilium.io:2379"
	at := func(name string, state troubleshoot.State, detail string, findings ...codes.Finding) troubleshoot.Step {
		return troubleshoot.Step{Name: name, Endpoint: url, State: state, Detail: detail, Findings: findings}
	}
	file := troubleshoot.Step{Name: troubleshoot.StepFile, State: troubleshoot.OK, Detail: "/mesh/c2; 1 endpoint, as remote (certificate)"}
	soon := troubleshoot.Step{
		Name: troubleshoot.StepCertificate, State: troubleshoot.Warning,
		Findings: []codes.Finding{codes.CertificateExpiresSoon.Found("remote, signed by Cilium CA, expires on 2026-11-30, in 9 days", "renew it")},
	}
	resolved := at(troubleshoot.StepResolve, troubleshoot.OK, "192.0.2.10, 192.0.2.11 (by name)")
	good := troubleshoot.Report{Name: "c2", State: troubleshoot.OK, Steps: []troubleshoot.Step{file, resolved}}
	warned := troubleshoot.Report{Name: "c3", State: troubleshoot.Warning, Steps: []troubleshoot.Step{file, soon, resolved}}
	failed := troubleshoot.Report{Name: "own", Local: true, State: troubleshoot.Failed, Steps: []troubleshoot.Step{
		file, soon, resolved,
		at(troubleshoot.StepServerCertificate, troubleshoot.Failed, "for c2.mesh.cilium.io, signed by a\x1b[31mnother CA",
			codes.ServerCertificateInvalid.Found("it expired on 2026-11-01", "renew the server's certificate, or set the clock"),
			codes.ServerAuthorityUnknown.Found("x509: certificate signed by unknown authority", "trusted-ca-file does not hold the authority that signed the server's certificate")),
		at(troubleshoot.StepEtcd, troubleshoot.Skipped, "not tried: server-certificate failed"),
		{Name: troubleshoot.StepHeartbeat, State: troubleshoot.Skipped, Detail: "not tried: there is no session with etcd"},
	}}
	for name, c := range map[string]struct {
		style   printer.Style
		reports []troubleshoot.Report
	}{
		"troubleshoot-well":     {printer.Style{}, []troubleshoot.Report{good}},
		"troubleshoot-warning":  {printer.Style{}, []troubleshoot.Report{good, warned}},
		"troubleshoot-failed":   {printer.Style{}, []troubleshoot.Report{good, warned, failed}},
		"troubleshoot-terminal": {printer.Style{Width: 80}, []troubleshoot.Report{warned, failed}},
		"troubleshoot-colours":  {printer.Style{Color: true, Width: 80}, []troubleshoot.Report{warned, failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			found := newTroubles("/mesh", c.reports)
			if err := command.Answer(&out, c.style, printer.NewFormat(printer.Text), found, found.page); err != nil {
				t.Fatal(err)
			}
			samples.Golden(t, name, out.String())
			samples.Fits(t, out.String(), c.style, false)
		})
	}
}
