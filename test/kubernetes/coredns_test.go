package kubernetes

import (
	"cmp"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/simtest/doctest"
	"github.com/mesh-agent/mesh-agent/simtest/members/agentapi"
	"github.com/mesh-agent/mesh-agent/simtest/programtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

const mcsDocument = "../../docs/mcs.md"

// coreDNSAccount is the account with the role that kubeadm gives to CoreDNS, and the additions of docs/mcs.md.
func coreDNSAccount(t *testing.T) []string {
	t.Helper()
	return []string{`
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: kube-system, name: coredns}
`, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:coredns"}
rules:
- apiGroups: [""]
  resources: [endpoints, services, pods, namespaces]
  verbs: [list, watch]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch]
` + doctest.Block(t, mcsDocument, "- apiGroups: [multicluster.x-k8s.io]"), `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:coredns"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:coredns"}
subjects: [{kind: ServiceAccount, name: coredns, namespace: kube-system}]
`}
}

// coreDNS runs one with the setup of docs/mcs.md, with only the rights of that account, until the end of the test. It
// returns its address.
func (w *world) coreDNS(t *testing.T, program string) string {
	t.Helper()
	w.Apply(t, coreDNSAccount(t)...)
	address := programtest.Reserve(t)
	host, number, err := net.SplitHostPort(address)
	waittest.Must(t, err)
	kubeconfig := w.Kubeconfig(t, w.gate.Addr(), w.Token(t, "kube-system", "coredns"))
	corefile := programtest.Write(t, t.TempDir(), "Corefile", doctest.Block(t, mcsDocument, ".:53 {",
		".:53 {", ".:"+number+" {\n    bind "+host, "pods insecure", "pods insecure\n        kubeconfig "+kubeconfig))
	cmd, log := exec.Command(program, "-conf", corefile), new(waittest.Output)
	cmd.Stdout, cmd.Stderr = log, log
	waittest.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended, which Wait reports
		if err := cmd.Wait(); err != nil {
			t.Errorf("CoreDNS: %v", err)
		}
		if log.Count("forbidden") > 0 {
			t.Error("CoreDNS lacks a right")
		}
		if t.Failed() {
			t.Logf("the log of CoreDNS:\n%s", log)
		}
	})
	return address
}

// agentDNS runs an agent that answers DNS, until the end of the test, and returns its address.
func (p *publishing) agentDNS(t *testing.T) string {
	t.Helper()
	p.start(t, "run", "--node-name", "node-1", "--node-ip", "192.168.0.1", "--dns", "127.0.0.1:0")
	var address string
	p.until(t, "the agent says where it answers", func() bool {
		s, err := agentapi.Get[api.Status](t.Context(), filepath.Join(p.dir, "run.sock"), "status")
		if err != nil || len(s.Serving) == 0 || s.Serving[0].Address == "" { // the agent may not listen yet
			return false
		}
		address = s.Serving[0].Address
		return true
	})
	return address
}

// asked is a question about a name below default.svc.clusterset.local, with its answer in the format of ask.
type asked struct {
	name, kind, answer string
	// agent is the answer of an agent if it differs on purpose; empty if it is the same.
	agent string
}

// ofDefault is the suffix of the names of services in a namespace.
const ofDefault = ".default.svc.clusterset.local."

// ask sends a question to a server. It returns the code and, in the order of their texts, the records, each with its
// name, type and data; "+" is before those of the additional section, "-" before those of the authority section.
func ask(t *testing.T, server, name, kind string) string {
	t.Helper()
	return strings.ReplaceAll(exchange(t, server, name+ofDefault, kind), ofDefault, "")
}

// exchange is ask for a complete name.
func exchange(t *testing.T, server, name, kind string) string {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, dns.StringToType[kind]).SetEdns0(4096, false)
	r, _, err := new(dns.Client).ExchangeContext(t.Context(), m, server)
	if err != nil {
		return err.Error()
	}
	parts := []string{dns.RcodeToString[r.Rcode]}
	add := func(prefix string, section []dns.RR) {
		for _, rr := range section {
			text := strings.TrimPrefix(rr.String(), rr.Header().String())
			if rr.Header().Rrtype == dns.TypeSOA {
				text = "" // serials differ
			}
			if rr.Header().Rrtype != dns.TypeOPT {
				parts = append(parts, strings.TrimSpace(prefix+rr.Header().Name+" "+dns.TypeToString[rr.Header().Rrtype]+" "+text))
			}
		}
	}
	add("", r.Answer)
	add("-", r.Ns)
	add("+", r.Extra)
	slices.Sort(parts[1:])
	return strings.Join(parts, "; ")
}

// resolved are a CoreDNS and an agent that get the same questions.
type resolved struct{ coreDNS, agent string }

// await waits until all answers are right at the same time.
func (r resolved) await(t *testing.T, what string, questions ...asked) {
	t.Helper()
	var diff string
	waittest.Until(t, what, func() bool {
		want, got := make(map[string][2]string), make(map[string][2]string)
		for _, q := range questions {
			key := q.name + " " + q.kind
			want[key] = [2]string{q.answer, cmp.Or(q.agent, q.answer)}
			got[key] = [2]string{ask(t, r.coreDNS, q.name, q.kind), ask(t, r.agent, q.name, q.kind)}
		}
		diff = gocmp.Diff(want, got)
		return diff == ""
	}, func() string { return "CoreDNS and the agent: " + diff })
}
