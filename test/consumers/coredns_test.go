package consumers

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/programtest"
)

// coreDNS starts one that forwards as in docs/dns.md, and returns its address.
func (w *world) coreDNS() string {
	w.t.Helper()
	path := os.Getenv("COREDNS")
	if path == "" {
		programtest.Missing(w.t, "CoreDNS is missing: make consumers builds it and says where it is in COREDNS")
	}
	address := programtest.Reserve(w.t)
	host, port, err := net.SplitHostPort(address)
	must(w.t, err)
	corefile := programtest.Write(w.t, w.t.TempDir(), "Corefile", document(w.t, "dns.md", "clusterset.local {",
		"clusterset.local {", "clusterset.local:"+port+" {\n    bind "+host+"\n    log", "169.254.20.11", w.dns))
	programtest.Start(w.t, exec.Command(path, "-conf", corefile), syscall.SIGTERM)
	return address
}

// TestCoreDNS: it forwards questions, or answers them from its cache while answers are valid. While no agent answers it
// reports a failure, never that a name does not exist.
func TestCoreDNS(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "dig")
	w := newWorld(t, "--dns-ttl", "1s", "--clustermesh-sync-timeout", "1h")
	cart := w.shop()
	w.start()
	at := w.coreDNS()
	w.until("an answer", func() bool {
		return exec.Command(programtest.Find(t, "consumers", "dig"), append(strings.Fields("+tries=1 @127.0.0.1 -p"), at[strings.LastIndexByte(at, ':')+1:], cartName)...).Run() == nil
	})
	r := w.digAt(at, cartName)
	r.check(t, "addresses", "NOERROR", "qr aa rd", cart...)
	if r := w.digAt(at, "_http._tcp."+cartName, "SRV"); len(r.answer) != 3 || !slices.Equal(data(r.additional), cart) {
		t.Errorf("targets:\n%s", r.text)
	}
	if r := w.digAt(at, "_http._tcp.many.shop.svc.clusterset.local", "SRV"); len(r.answer) != 32 || r.protocol != "TCP" {
		t.Errorf("many targets: %d\n%s", len(r.answer), r.text)
	}
	w.digAt(at, cartName, "AAAA").check(t, "no address of that family", "NOERROR", "qr aa rd")
	w.digAt(at, "nothing.shop.svc.clusterset.local").check(t, "no such service", "NXDOMAIN", "qr aa rd")
	w.publish("west", "cart")
	w.until("a backend to be gone", func() bool { return slices.Equal(data(w.digAt(at, cartName).answer), []string{cart[0], cart[2]}) })

	w.kill()
	for what, restart := range map[string]func(){"no agent": func() {}, "an agent that knows nothing": func() { w.killClusters(); w.startUnready() }} {
		restart()
		for range 3 {
			if r := w.digAt(at, "north."+cartName); r.status != "SERVFAIL" { // a name that is not in its cache
				t.Errorf("%s:\n%s", what, r.text)
			}
		}
	}
	w.startClusters()
	w.until("the addresses again", func() bool { return slices.Equal(data(w.digAt(at, cartName).answer), []string{cart[0], cart[2]}) })
}
