package consumers

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/programtest"
)

// forwarder is another project's resolver that forwards the zone to the agent.
type forwarder struct {
	program string
	// Its configuration: the settings for a test (with directory, host and port), and the block of docs/dns.md that
	// begins with first.
	base, first string
	// The agent's host and port in this program's form, in place of the address of the block.
	agent string
	args  func(config string) []string
}

func forwarders() map[string]forwarder {
	unbound := "server:\n  interface: %[2]s\n  port: %[3]s\n  chroot: \"\"\n  username: \"\"\n  directory: %[1]q\n  pidfile: \"\"\n  use-syslog: no\n  do-daemonize: no\n" +
		"  do-not-query-localhost: no\n  qname-minimisation: yes\n  harden-below-nxdomain: yes\n  use-caps-for-id: yes\n  private-address: 10.0.0.0/8\nremote-control:\n  control-enable: no\n"
	named := "options { directory %[1]q; listen-on port %[3]s { %[2]s; }; listen-on-v6 { none; }; pid-file none; session-keyfile none; recursion yes; validate-except { \"clusterset.local\"; }; };\ncontrols { };\n"
	dnsmasq := "port=%[3]s\nlisten-address=%[2]s\nbind-interfaces\nno-resolv\nno-hosts\nstop-dns-rebind\npid-file=%[1]s/pid\nuser=root\nlog-facility=-\n"
	return map[string]forwarder{
		"Unbound": {"unbound", unbound, "server:", "%s@%s", func(config string) []string { return []string{"-d", "-c", config} }},
		"BIND":    {"named", named, `zone "clusterset.local" {`, "%s port %s", func(config string) []string { return []string{"-g", "-c", config} }},
		"dnsmasq": {"dnsmasq", dnsmasq, "server=/", "%s#%s", func(config string) []string { return []string{"-k", "-C", config} }},
	}
}

// start starts it, configured as in docs/dns.md, and returns its address.
func (f forwarder) start(w *world) string {
	w.t.Helper()
	address, dir := programtest.Reserve(w.t), w.t.TempDir()
	host, port, err := net.SplitHostPort(address)
	must(w.t, err)
	agentHost, agentPort, err := net.SplitHostPort(w.dns)
	must(w.t, err)
	config := programtest.Write(w.t, dir, f.program+".conf", fmt.Sprintf(f.base, dir, host, port)+
		document(w.t, "dns.md", f.first, "169.254.20.11", fmt.Sprintf(f.agent, agentHost, agentPort)))
	programtest.Start(w.t, exec.Command(programtest.Find(w.t, "consumers", f.program), f.args(filepath.Clean(config))...), syscall.SIGTERM)
	w.until(f.program+" to answer", func() bool {
		return exec.Command(programtest.Find(w.t, "consumers", "dig"), "+tries=1", "@"+host, "-p", port, cartName).Run() == nil
	})
	return address
}

// TestForwarders: other projects' resolvers get every kind of answer. A name that does not exist hides no existing
// ones, and while the agent has not read everything, they report a failure.
func TestForwarders(t *testing.T) {
	t.Parallel()
	for name, f := range forwarders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "--dns-ttl", "1s", "--clustermesh-sync-timeout", "1h")
			cart := w.shop()
			w.start()
			at := f.start(w)
			for _, name := range []string{cartName, "CaRt.sHoP.svc.clusterset.local"} {
				if r := w.digAt(at, name); r.status != "NOERROR" || !slices.Equal(data(r.answer), cart) {
					t.Errorf("addresses of %s:\n%s", name, r.text)
				}
			}
			if r := w.digAt(at, "_http._tcp."+cartName, "SRV"); r.status != "NOERROR" || len(r.answer) != 3 {
				t.Errorf("targets:\n%s", r.text)
			}
			if r := w.digAt(at, "+bufsize=512", "_http._tcp.many.shop.svc.clusterset.local", "SRV"); len(r.answer) != 32 || r.protocol != "TCP" {
				t.Errorf("many targets: %d\n%s", len(r.answer), r.text)
			}
			if r := w.digAt(at, cartName, "AAAA"); r.status != "NOERROR" || len(r.answer) != 0 {
				t.Errorf("no address of that family:\n%s", r.text)
			}
			if r := w.digAt(at, "nothing.shop.svc.clusterset.local"); r.status != "NXDOMAIN" {
				t.Errorf("no such service:\n%s", r.text)
			}
			w.publish("west", "cart")
			w.until("a backend to be gone", func() bool { return slices.Equal(data(w.digAt(at, cartName).answer), []string{cart[0], cart[2]}) })

			w.kill()
			w.killClusters()
			w.startUnready()
			if r := w.digAt(at, "north."+cartName); r.status != "SERVFAIL" { // a name that is not in its cache
				t.Errorf("an agent that knows nothing:\n%s", r.text)
			}
			w.startClusters()
			w.until("the addresses again", func() bool { return slices.Equal(data(w.digAt(at, cartName).answer), []string{cart[0], cart[2]}) })
		})
	}
}
