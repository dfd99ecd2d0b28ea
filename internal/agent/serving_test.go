package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/simtest/agenttest"
)

// TestNothingOfXDSRunsWithoutItsFlag: without it there is no goroutine, no metric, no line of the status, no client.
// With it there is each of them.
func TestNothingOfXDSRunsWithoutItsFlag(t *testing.T) {
	t.Parallel()
	without := agenttest.StartAgent(t, t.TempDir(), "--debug-pprof")
	with := agenttest.StartAgent(t, t.TempDir(), "--debug-pprof", "--xds", "127.0.0.1:0")
	for name, parts := range map[string]func(*agenttest.Process) bool{
		"goroutines": func(a *agenttest.Process) bool {
			return strings.Contains(get(t, a, "/debug/pprof/goroutine?debug=2"), "internal/serve/xdsserver")
		},
		"metrics": func(a *agenttest.Process) bool { return strings.Contains(get(t, a, "/metrics"), "mesh_agent_xds_") },
		"a line of status": func(a *agenttest.Process) bool {
			out, _, _ := a.Call("status")
			return strings.Contains(out, "xDS on 127.0.0.1:")
		},
		"clients": func(a *agenttest.Process) bool {
			out, errs, code := a.Call("xds", "clients")
			return code == 0 && strings.Contains(out, "No client follows this agent.") || !strings.Contains(errs, "give it --xds ADDRESS")
		},
	} {
		if parts(without) {
			t.Errorf("without --xds there are %s", name)
		}
		if !parts(with) {
			t.Errorf("with --xds there are no %s", name)
		}
	}
}

// TestNothingOfDNSRunsWithoutItsFlag: without it there is no socket, no goroutine, no metric, no line of the status.
// With it there is each of them.
func TestNothingOfDNSRunsWithoutItsFlag(t *testing.T) {
	t.Parallel()
	without := agenttest.StartAgent(t, t.TempDir(), "--debug-pprof")
	with := agenttest.StartAgent(t, t.TempDir(), "--debug-pprof", "--dns", "127.0.0.1:0")
	for name, parts := range map[string]func(*agenttest.Process) bool{
		"goroutines": func(a *agenttest.Process) bool {
			return strings.Contains(get(t, a, "/debug/pprof/goroutine?debug=2"), "internal/serve/dnsserver")
		},
		"metrics":          func(a *agenttest.Process) bool { return strings.Contains(get(t, a, "/metrics"), "mesh_agent_dns_") },
		"a UDP socket":     func(a *agenttest.Process) bool { return hasUDP(t, a.PID()) },
		"a part of status": func(a *agenttest.Process) bool { return len(a.Status().Serving) > 0 },
		"a line of status": func(a *agenttest.Process) bool {
			out, _, _ := a.Call("status")
			return strings.Contains(out, "DNS on 127.0.0.1:")
		},
	} {
		if parts(without) {
			t.Errorf("without --dns there are %s", name)
		}
		if !parts(with) {
			t.Errorf("with --dns there are no %s", name)
		}
	}
	q := new(dns.Msg)
	q.SetQuestion("dns-version.clusterset.local.", dns.TypeTXT)
	address := with.Status().Serving[0].Address
	m, _, err := new(dns.Client).Exchange(q, address)
	if err != nil || len(m.Answer) != 1 {
		t.Fatalf("%v %v", m, err)
	}
	with.Until("the question to be counted", func() bool {
		out, _, _ := with.Call("status")
		return strings.Contains(out, fmt.Sprintf("DNS on %s: 1 request, 0 refused\n", address))
	})
}

// hasUDP reports whether a process has an IPv4 UDP socket.
func hasUDP(t *testing.T, pid int) bool {
	t.Helper()
	table, err := os.ReadFile("/proc/net/udp")
	agenttest.Must(t, err)
	inodes := make(map[string]bool)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 9 {
			inodes["socket:["+f[9]+"]"] = true
		}
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	agenttest.Must(t, err)
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && inodes[to] {
			return true
		}
	}
	return false
}
