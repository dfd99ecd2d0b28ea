package consumers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/simtest/programtest"
)

// reply is dig's output for an answer.
type reply struct {
	status, flags  string
	protocol       string
	size           int
	answer         []string // the records, in their order
	authority      []string
	additional     []string
	text           string
	ede, truncated bool
}

// dig sends a question to the agent.
func (w *world) dig(args ...string) reply {
	w.t.Helper()
	return w.digAt(w.dns, args...)
}

func (w *world) digAt(server string, args ...string) (r reply) {
	w.t.Helper()
	host, port, err := net.SplitHostPort(server)
	must(w.t, err)
	out, err := exec.Command(programtest.Find(w.t, "consumers", "dig"), append([]string{"@" + host, "-p", port}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("dig %v: %v\n%s", args, err, out)
	}
	r.text = string(out)
	field := func(pattern string) string {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(r.text); found != nil {
			return found[1]
		}
		return ""
	}
	r.status, r.flags, r.protocol = field(`status: (\w+)`), field(`flags: ([a-z ]+);`), field(`\((UDP|TCP)\)`)
	r.size, _ = strconv.Atoi(field(`MSG SIZE  rcvd: (\d+)`))
	r.ede, r.truncated = strings.Contains(r.text, "; EDE: "), strings.Contains(r.text, "Truncated, retrying in TCP mode")
	for title, to := range map[string]*[]string{"ANSWER": &r.answer, "AUTHORITY": &r.authority, "ADDITIONAL": &r.additional} {
		_, section, _ := strings.Cut(r.text, ";; "+title+" SECTION:\n")
		section, _, _ = strings.Cut(section, "\n\n")
		for line := range strings.Lines(section) {
			*to = append(*to, strings.Join(strings.Fields(line), " "))
		}
	}
	return r
}

// data are the last words of records, sorted.
func data(records []string) []string {
	var all []string
	for _, r := range records {
		all = append(all, r[strings.LastIndexByte(r, ' ')+1:])
	}
	slices.Sort(all)
	return all
}

func (r reply) check(t *testing.T, what, status, flags string, answer ...string) {
	t.Helper()
	if r.status != status || r.flags != flags || !slices.Equal(data(r.answer), answer) {
		t.Errorf("%s: want %s, flags %s, %v:\n%s", what, status, flags, answer, r.text)
	}
}

// shop shares a service of three clusters, and one with many backends.
func (w *world) shop() (cart []string) {
	w.t.Helper()
	for i, name := range names() {
		var many []string
		for n := range 20 {
			many = append(many, address(i+1, 9, n+1))
		}
		w.publish(name, "cart", address(i+1, 0, 1))
		w.publish(name, "many", many...)
		cart = append(cart, address(i+1, 0, 1))
	}
	return cart
}

const cartName = "cart.shop.svc.clusterset.local"

// TestDig: dig's output for every kind of answer.
func TestDig(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "dig")
	w := newWorld(t, "--dns-mesh-zone", "mesh.example")
	cart := w.shop()
	w.node("east", "n1", address(1, 1, 1))
	w.start()

	r := w.dig(cartName)
	r.check(t, "addresses", "NOERROR", "qr aa rd", cart...)
	if r.protocol != "UDP" || !strings.HasPrefix(r.answer[0], cartName+". 5 IN A 127.") {
		t.Errorf("over UDP with 5 seconds:\n%s", r.text)
	}
	r = w.dig("+tcp", cartName)
	r.check(t, "over TCP", "NOERROR", "qr aa rd", cart...)
	if r.protocol != "TCP" {
		t.Errorf("not over TCP:\n%s", r.text)
	}
	firsts := make(map[string]bool)
	w.until("each backend to be the first", func() bool {
		firsts[w.dig("+short", cartName).text] = true
		return len(firsts) >= len(cart)
	})
	if r = w.dig("CaRt.Shop.SVC.clusterset.LOCAL"); len(r.answer) != 3 || !strings.HasPrefix(r.answer[0], "CaRt.Shop.SVC.clusterset.LOCAL. ") {
		t.Errorf("the letters of the question are not those of the answer (draft-vixie-dnsext-dns0x20):\n%s", r.text)
	}

	w.dig("dns-version.clusterset.local", "TXT").check(t, "version", "NOERROR", "qr aa rd", `"1.0.0"`)
	r = w.dig(cartName, "AAAA")
	r.check(t, "no address of that family", "NOERROR", "qr aa rd")
	if len(r.authority) != 1 || !strings.HasPrefix(r.authority[0], "clusterset.local. 5 IN SOA ") {
		t.Errorf("NODATA without SOA:\n%s", r.text)
	}
	r = w.dig("nothing.shop.svc.clusterset.local")
	r.check(t, "no such service", "NXDOMAIN", "qr aa rd")
	if len(r.authority) != 1 || !strings.HasPrefix(r.authority[0], "clusterset.local. 5 IN SOA ") || r.ede {
		t.Errorf("NXDOMAIN without SOA, or with a doubt:\n%s", r.text)
	}
	w.dig("east."+cartName).check(t, "a reserved name", "NOERROR", "qr aa rd")
	w.dig("example.com").check(t, "no zone of ours", "REFUSED", "qr rd")
	w.dig("+edns=1", "+noednsnegotiation", cartName).check(t, "a version of EDNS", "BADVERS", "qr rd")
	w.dig("+noedns", cartName).check(t, "without EDNS", "NOERROR", "qr aa rd", cart...)

	w.dig("-x", address(1, 1, 1)).check(t, "whose address", "NOERROR", "qr aa rd", "n1.node.east.mesh.example.")
	w.dig("cart.shop.svc.west.mesh.example").check(t, "of one cluster", "NOERROR", "qr aa rd", cart[1])
}

// TestDigTargets: answers with SRV records contain the addresses of their targets.
func TestDigTargets(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "dig")
	w := newWorld(t)
	cart := w.shop()
	w.start()
	var targets []string
	for i, name := range names() {
		targets = append(targets, fmt.Sprintf("%s.%s.%s.", strings.ReplaceAll(cart[i], ".", "-"), name, cartName))
	}
	slices.Sort(targets)
	for _, of := range []string{cartName, "_http._tcp." + cartName} {
		r := w.dig(of, "SRV")
		r.check(t, of, "NOERROR", "qr aa rd", targets...)
		if diff := cmp.Diff(cart, data(r.additional)); diff != "" {
			t.Errorf("addresses of targets (-want +got):\n%s", diff)
		}
		for _, record := range r.answer {
			if f := strings.Fields(record); f[6] != strconv.Itoa(int(w.port)) {
				t.Errorf("port: %s", record)
			}
		}
	}
	w.dig("_nope._tcp."+cartName, "SRV").check(t, "no such port", "NXDOMAIN", "qr aa rd")
	for i, target := range targets {
		w.dig(target).check(t, target, "NOERROR", "qr aa rd", cart[i])
	}
}

// TestDigTruncated: an answer that is too long for UDP is marked as truncated, and dig asks again over TCP.
func TestDigTruncated(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "dig")
	w := newWorld(t)
	w.shop()
	w.start()
	const many, most = "many.shop.svc.clusterset.local", 32
	for what, c := range map[string]struct {
		args      []string
		protocol  string
		size      int // maximum
		all       bool
		truncated bool
	}{
		"512 bytes without EDNS":          {[]string{"+noedns", "+ignore", many}, "UDP", 512, false, true},
		"again over TCP":                  {[]string{"+noedns", many}, "TCP", 65535, true, false},
		"as much as is asked for":         {[]string{"+bufsize=600", "+ignore", many}, "UDP", 600, true, false},
		"at least 512":                    {[]string{"+bufsize=100", "+ignore", many}, "UDP", 512, false, true},
		"1,232 bytes, whatever is wanted": {[]string{"+bufsize=4096", "+ignore", many, "SRV"}, "UDP", 1232, false, true},
		"targets over TCP":                {[]string{"+bufsize=4096", many, "SRV"}, "TCP", 65535, true, false},
	} {
		r := w.dig(c.args...)
		if r.protocol != c.protocol || r.size > c.size || (len(r.answer) == most) != c.all || strings.Contains(" "+r.flags+" ", " tc ") != c.truncated || r.status != "NOERROR" {
			t.Errorf("%s: %d records\n%s", what, len(r.answer), r.text)
		}
		if r.truncated != (c.protocol == "TCP") {
			t.Errorf("%s: not asked again over TCP\n%s", what, r.text)
		}
	}
}

// TestDigBeforeEverythingIsKnown: the answer is SERVFAIL with a reason, never that a name does not exist.
func TestDigBeforeEverythingIsKnown(t *testing.T) {
	t.Parallel()
	programtest.Find(t, "consumers", "dig")
	w := newWorld(t, "--clustermesh-sync-timeout", "1h")
	cart := w.shop()
	w.killClusters()
	w.startUnready()
	for _, args := range [][]string{{cartName}, {cartName, "SRV"}, {"+tcp", cartName, "AAAA"}, {"nothing.shop.svc.clusterset.local"}} {
		r := w.dig(args...)
		r.check(t, strings.Join(args, " "), "SERVFAIL", "qr rd")
		if !strings.Contains(r.text, "; EDE: 14 (Not Ready)") {
			t.Errorf("no reason:\n%s", r.text)
		}
	}
	w.dig("dns-version.clusterset.local", "TXT").check(t, "what no cluster has", "NOERROR", "qr aa rd", `"1.0.0"`)
	w.startClusters()
	w.until("the addresses", func() bool { return slices.Equal(data(w.dig(cartName).answer), cart) })
	w.until("the end of doubt", func() bool { return w.dig("nothing.shop.svc.clusterset.local").status == "NXDOMAIN" })
}

// TestGoResolver: Go's own resolver finds addresses, targets, texts and names, and returns the right errors.
func TestGoResolver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--dns-mesh-zone", "mesh.example")
	cart := w.shop()
	w.node("north", "n1", address(3, 1, 1))
	w.start()
	var dialer net.Dialer
	r := &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, w.dns)
	}}
	ctx := t.Context()
	ips, err := r.LookupHost(ctx, cartName+".")
	slices.Sort(ips)
	if err != nil || !slices.Equal(ips, cart) {
		t.Errorf("addresses: %v %v", ips, err)
	}
	if _, all, err := r.LookupSRV(ctx, "http", "tcp", cartName+"."); err != nil || len(all) != 3 || all[0].Port != w.port {
		t.Errorf("targets: %v %v", all, err)
	}
	if _, all, err := r.LookupSRV(ctx, "http", "tcp", "many.shop.svc.clusterset.local."); err != nil || len(all) != 32 {
		t.Errorf("many targets, over TCP: %d %v", len(all), err)
	}
	if texts, err := r.LookupTXT(ctx, "dns-version.clusterset.local."); err != nil || !slices.Equal(texts, []string{"1.0.0"}) {
		t.Errorf("texts: %v %v", texts, err)
	}
	if all, err := r.LookupAddr(ctx, address(3, 1, 1)); err != nil || !slices.Equal(all, []string{"n1.node.north.mesh.example."}) {
		t.Errorf("names: %v %v", all, err)
	}
	var e *net.DNSError
	if _, err := r.LookupHost(ctx, "nothing.shop.svc.clusterset.local."); !errors.As(err, &e) || !e.IsNotFound {
		t.Errorf("not found: %v", err)
	}
	if ips, err := r.LookupIP(ctx, "ip6", cartName+"."); !errors.As(err, &e) || !e.IsNotFound {
		t.Errorf("no address of version 6: %v %v", ips, err)
	}
}
