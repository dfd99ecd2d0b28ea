package agent_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestTheFirstLineNamesTheFault tests docs/faults.md on the first line of status, with the real program. The line names
// the cause and the cluster, the 'mesh-agent troubleshoot' of the remedy works as it is written, and after the repair
// the status is good again.
func TestTheFirstLineNamesTheFault(t *testing.T) {
	waittest.Long(t)
	t.Parallel()
	m := meshtest.Run(t, meshtest.Clusters(2)...)
	a := agenttest.StartAgent(t, m.Dir())
	first := m.Clusters()[0]
	path := m.ClientFile(first)
	file, err := os.ReadFile(path)
	agenttest.Must(t, err)
	authority, err := pki.NewCA("other")
	agenttest.Must(t, err)
	other, err := authority.Write(t.TempDir(), "other")
	agenttest.Must(t, err)
	edit := func(old, now string) func() error {
		return func() error {
			if !strings.Contains(string(file), old) {
				t.Fatalf("%q is not in the client file:\n%s", old, file)
			}
			return os.WriteFile(path, []byte(strings.ReplaceAll(string(file), old, now)), 0o600)
		}
	}
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	restore := func() error { return os.WriteFile(path, file, 0o600) }
	well := func() bool { _, _, code := a.Call("status"); return code == exit.OK }
	for _, fault := range []struct {
		name, want      string
		spoil, mend     func() error
		notTroubleshoot bool // its remedy is another command
	}{
		{name: "a dead etcd", want: "nothing listens at an endpoint (cluster1)", spoil: first.Kill, mend: func() error { return first.Start(t.Context()) }},
		{name: "a wrong port", want: "nothing listens at an endpoint (cluster1)", spoil: edit(first.Endpoint(), "https://127.0.0.1:1"), mend: restore},
		{name: "http for https", want: "the server does not answer plain text (cluster1)", spoil: edit("https://", "HTTP://"), mend: restore},
		{name: "a web server", want: "the server does not speak HTTP/2 (cluster1)", spoil: edit(first.Endpoint(), web.URL), mend: restore},
		{name: "another authority", want: "an unknown authority has signed the server's certificate (cluster1)", spoil: edit(path+".etcd-client-ca.crt", other), mend: restore},
		{name: "no key file", want: "a file is missing (cluster1)", spoil: edit(path+".etcd-client.key", other+".none"), mend: restore, notTroubleshoot: true},
		{name: "an expired certificate", want: "the server refuses our client certificate (cluster1)", spoil: func() error {
			if err := m.Certify(first, time.Nanosecond); err != nil {
				return err
			}
			if err := first.Kill(); err != nil {
				return err
			}
			return first.Start(t.Context())
		}, mend: func() error { return m.Certify(first, time.Hour) }},
	} {
		a.Until("all to be well before "+fault.name, well)
		agenttest.Must(t, fault.spoil())
		line := ""
		a.Until(fault.name+" to be named", func() bool {
			out, _, _ := a.Call("status")
			line, _, _ = strings.Cut(out, "\n")
			return strings.Contains(line, fault.want)
		})
		if !strings.HasPrefix(line, "degraded: ") {
			t.Errorf("%s: %s", fault.name, line)
		}
		out, _, _ := a.Call("status")
		if fault.notTroubleshoot {
			agenttest.Must(t, fault.mend())
			continue
		}
		remedy := "troubleshoot cluster1 --socket " + a.Socket
		if !strings.Contains(out, "'mesh-agent "+remedy+"'") {
			t.Errorf("%s: the remedy has no cluster or no agent:\n%s", fault.name, out)
		}
		if out, errs, code := agenttest.Call(t, strings.Fields(remedy)...); code != exit.Unwell || !strings.Contains(out, "1 fails: cluster1") {
			t.Errorf("%s: the remedy does not work as it is: exit %d\n%s%s", fault.name, code, out, errs)
		}
		agenttest.Must(t, fault.mend())
	}
	a.Until("all to be well at the end", well)
}
