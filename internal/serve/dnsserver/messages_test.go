package dnsserver_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
	"github.com/mesh-agent/mesh-agent/internal/serve/dnsserver"
	"github.com/mesh-agent/mesh-agent/simtest/meshtest/viewtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// silence means that there is no answer; it is not a response code.
const silence = -1

// rawMessage is a message that may be malformed, and the response code of its answer.
type rawMessage struct {
	what string
	text string
	want int
}

// header is that of a message with an ID that raw tests replace.
func header(flags uint16, counts ...uint16) string {
	h := binary.BigEndian.AppendUint16([]byte{0, 0}, flags)
	for _, n := range counts {
		h = binary.BigEndian.AppendUint16(h, n)
	}
	return string(h)
}

// wireName is a name as it is sent.
func wireName(labels ...string) (text string) {
	for _, l := range labels {
		text += string(rune(len(l))) + l
	}
	return text + "\x00"
}

func typed(kind, class uint16) string {
	return string(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, kind), class))
}

// record is one of a section after the question.
func record(owner string, kind, class uint16, ttl uint32, data string) string {
	return owner + typed(kind, class) + string(binary.BigEndian.AppendUint32(nil, ttl)) + string(binary.BigEndian.AppendUint16(nil, uint16(len(data)))) + data
}

var (
	cartName     = wireName("cart", "shop", "svc", "clusterset", "local")
	cartQuestion = cartName + typed(dns.TypeA, dns.ClassINET)
	opt          = record("\x00", dns.TypeOPT, 1232, 0, "")
)

func rawMessages() []rawMessage {
	one := func(flags uint16, more string) string { return header(flags, 1, 0, 0, 0) + cartQuestion + more }
	extra := func(n uint16, records ...string) string {
		return header(0, 1, 0, 0, n) + cartQuestion + strings.Join(records, "")
	}
	asked := func(name string, kind, class uint16) string { return header(0, 1, 0, 0, 0) + name + typed(kind, class) }
	inZone := func(labels ...string) string { return wireName(append(labels, "svc", "clusterset", "local")...) }
	soa := record(wireName("clusterset", "local"), dns.TypeSOA, dns.ClassINET, 0, "\x00\x00"+strings.Repeat("\x00", 20))
	a := record("\xc0\x0c", dns.TypeA, dns.ClassINET, 5, "\x0a\x00\x00\x01")
	long := strings.Repeat("x", 63)
	all := []rawMessage{
		{"a question", one(0, ""), dns.RcodeSuccess},
		{"bytes after the end", one(0, "more"), dns.RcodeSuccess},
		{"a count of one, and no question", header(0, 1, 0, 0, 0), dns.RcodeFormatError},
		{"all counts, and nothing", header(0, 65535, 65535, 65535, 65535), dns.RcodeFormatError},
		{"no question", header(0, 0, 0, 0, 0), dns.RcodeFormatError},
		{"a question that is not counted", header(0, 0, 0, 0, 0) + cartQuestion, dns.RcodeFormatError},
		{"two questions", header(0, 2, 0, 0, 0) + cartQuestion + cartQuestion, dns.RcodeFormatError},
		{"two counted, one there", header(0, 2, 0, 0, 0) + cartQuestion, dns.RcodeFormatError},
		{"an answer", one(1<<15, ""), silence},
		{"an answer to no question", header(1<<15, 0, 0, 0, 0), silence},
		{"a failed answer", one(1<<15|2, ""), silence},
		{"a response code", one(5, ""), dns.RcodeSuccess},
		{"the reserved bit", one(1<<6, ""), dns.RcodeSuccess},
		{"a record of the answer", header(0, 1, 1, 0, 0) + cartQuestion + a, dns.RcodeFormatError},
		{"a record of the authority", header(0, 1, 0, 1, 0) + cartQuestion + soa, dns.RcodeFormatError},
		{"a further record", extra(1, a), dns.RcodeSuccess},
		{"a signature", extra(2, opt, record("\x01k\x00", dns.TypeTSIG, dns.ClassANY, 0, "x")), dns.RcodeSuccess},
		{"a record too few", extra(2, opt), dns.RcodeFormatError},
		{"a record whose data is longer than the message", extra(1, record("\x00", dns.TypeOPT, 1232, 0, "1234")[:13]), dns.RcodeFormatError},
		{"a record whose owner refers to itself", extra(1, "\xc0\x30"+a[2:]), dns.RcodeFormatError},
		{"a record whose owner refers forwards", extra(1, "\xc0\xff"+a[2:]), dns.RcodeFormatError},
		{"EDNS", extra(1, opt), dns.RcodeSuccess},
		{"EDNS, twice", extra(2, opt, opt), dns.RcodeFormatError},
		{"EDNS of a name", extra(1, record("\x01x\x00", dns.TypeOPT, 1232, 0, "")), dns.RcodeFormatError},
		{"EDNS of version 1", extra(1, record("\x00", dns.TypeOPT, 1232, 1<<16, "")), dns.RcodeBadVers},
		{"EDNS of version 255 with an option", extra(1, record("\x00", dns.TypeOPT, 1232, 255<<16, "\x00\x64\x00\x00")), dns.RcodeBadVers},
		{"EDNS with a bit of no meaning", extra(1, record("\x00", dns.TypeOPT, 1232, 0x40, "")), dns.RcodeSuccess},
		{"EDNS with DO", extra(1, record("\x00", dns.TypeOPT, 1232, 0x8000, "")), dns.RcodeSuccess},
		{"EDNS of size 0", extra(1, record("\x00", dns.TypeOPT, 0, 0, "")), dns.RcodeSuccess},
		{"EDNS with an unknown option", extra(1, record("\x00", dns.TypeOPT, 1232, 0, "\x00\x64\x00\x02hi")), dns.RcodeSuccess},
		{"EDNS with an option that is too long", extra(1, record("\x00", dns.TypeOPT, 1232, 0, "\x00\x64\x00\x03hi")), dns.RcodeFormatError},
		{"EDNS with half an option", extra(1, record("\x00", dns.TypeOPT, 1232, 0, "\x00\x64\x00")), dns.RcodeFormatError},
		{"a name that refers to itself", asked("\xc0\x0c", dns.TypeA, dns.ClassINET), dns.RcodeFormatError},
		{"a name that refers to the header", asked("\x01x\xc0\x00", dns.TypeA, dns.ClassINET), dns.RcodeFormatError},
		{"a name that refers forwards", asked("\xc0\x20", dns.TypeA, dns.ClassINET), dns.RcodeFormatError},
		{"a label of a reserved kind", asked("\x41x\x00", dns.TypeA, dns.ClassINET), dns.RcodeFormatError},
		{"a label of another reserved kind", asked("\x81x\x00", dns.TypeA, dns.ClassINET), dns.RcodeFormatError},
		{"a name without an end", header(0, 1, 0, 0, 0) + cartName[:len(cartName)-1], dns.RcodeFormatError},
		{"the root", asked("\x00", dns.TypeA, dns.ClassINET), dns.RcodeRefused},
		{"a name of 255 bytes", asked(inZone(long, long, long, long[:40]), dns.TypeA, dns.ClassINET), dns.RcodeNameError},
		{"a name of 256 bytes", asked(inZone(long, long, long, long[:41]), dns.TypeA, dns.ClassINET), dns.RcodeFormatError},
		{"a name of many labels", asked(inZone(strings.Split(strings.Repeat("a ", 114), " ")[:114]...), dns.TypeA, dns.ClassINET), dns.RcodeNameError},
		{"class CH", asked(cartName, dns.TypeTXT, dns.ClassCHAOS), dns.RcodeRefused},
		{"class HS", asked(cartName, dns.TypeA, dns.ClassHESIOD), dns.RcodeRefused},
		{"class ANY", asked(cartName, dns.TypeA, dns.ClassANY), dns.RcodeRefused},
		{"class 0", asked(cartName, dns.TypeA, 0), dns.RcodeRefused},
		{"type ANY", asked(cartName, dns.TypeANY, dns.ClassINET), dns.RcodeSuccess},
		{"type AXFR", asked(wireName("clusterset", "local"), dns.TypeAXFR, dns.ClassINET), dns.RcodeRefused},
		{"type IXFR", header(0, 1, 0, 1, 0) + wireName("clusterset", "local") + typed(dns.TypeIXFR, dns.ClassINET) + soa, dns.RcodeRefused},
		{"type OPT", asked(cartName, dns.TypeOPT, dns.ClassINET), dns.RcodeFormatError},
		{"type TSIG", asked(cartName, dns.TypeTSIG, dns.ClassINET), dns.RcodeFormatError},
		{"type TKEY", asked(cartName, dns.TypeTKEY, dns.ClassINET), dns.RcodeNotImplemented},
		{"type MAILB", asked(cartName, dns.TypeMAILB, dns.ClassINET), dns.RcodeNotImplemented},
		{"type 0", asked(cartName, 0, dns.ClassINET), dns.RcodeSuccess},
		{"a type that nobody knows", asked(cartName, 65280, dns.ClassINET), dns.RcodeSuccess},
	}
	for opcode := uint16(1); opcode < 16; opcode++ {
		all = append(all, rawMessage{fmt.Sprint("opcode ", opcode), one(opcode<<11, ""), dns.RcodeNotImplemented})
	}
	for b := range 256 {
		name := "\x03a" + string([]byte{byte(b)}) + "b" + wireName("shop", "svc", "clusterset", "local")
		all = append(all, rawMessage{fmt.Sprint("a label with byte ", b), asked(name, dns.TypeA, dns.ClassINET), dns.RcodeNameError})
	}
	whole := extra(1, record("\x00", dns.TypeOPT, 1232, 0, "\x00\x64\x00\x02hi"))
	for n := range len(whole) {
		want := dns.RcodeFormatError
		if n < 12 {
			want = silence
		}
		all = append(all, rawMessage{fmt.Sprintf("the first %d bytes", n), whole[:n], want})
	}
	for n := range 12 {
		all = append(all, rawMessage{fmt.Sprintf("%d bytes of ones", n), strings.Repeat("\xff", n), silence})
	}
	return all
}

// rawConn sends messages over a socket, each with an ID of its own.
type rawConn struct {
	net.Conn
	network string
	last    uint16
}

func dialRaw(t *testing.T, network, address string) *rawConn {
	t.Helper()
	conn, err := net.Dial(network, address)
	waittest.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	waittest.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return &rawConn{Conn: conn, network: network}
}

// send sends a message, whose ID it returns.
func (c *rawConn) send(t *testing.T, text string) uint16 {
	t.Helper()
	c.last++
	m := []byte(text)
	if len(m) >= 2 {
		binary.BigEndian.PutUint16(m, c.last)
	}
	if c.network == "tcp" {
		m = append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...)
	}
	_, err := c.Write(m)
	waittest.Must(t, err)
	return c.last
}

func (c *rawConn) receive(t *testing.T) []byte {
	t.Helper()
	buffer := make([]byte, 65535)
	if c.network == "udp" {
		n, err := c.Read(buffer)
		waittest.Must(t, err)
		return buffer[:n]
	}
	_, err := io.ReadFull(c, buffer[:2])
	waittest.Must(t, err)
	m := buffer[:binary.BigEndian.Uint16(buffer)]
	_, err = io.ReadFull(c, m)
	waittest.Must(t, err)
	return m
}

// TestRawMessages: each message gets the response code that the standards require, or no answer, and the server
// continues.
func TestRawMessages(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "service own shop/cart 10.0.0.1")
	failures := boundary.New(nil)
	s := serve(t, dnsserver.Params{View: w.View, Boundary: failures.Part("dns")})
	good := header(0, 1, 0, 0, 0) + cartQuestion
	for _, network := range []string{"udp", "tcp"} {
		c := dialRaw(t, network, s.Address())
		for i, test := range rawMessages() {
			if network == "tcp" && i%50 == 49 { // a connection has a bounded number of questions
				c = dialRaw(t, network, s.Address())
			}
			id := c.send(t, test.text)
			if test.want == silence {
				id = c.send(t, good)
			}
			m := c.receive(t)
			if got := binary.BigEndian.Uint16(m); got != id {
				t.Fatalf("%s: %s: message %d of %d was answered: %x", network, test.what, got, id, m)
			}
			if test.want != silence {
				checkReply(t, network+": "+test.what, test, m)
			}
		}
		if m := ask(t, s, network, cart, dns.TypeA, 0); len(m.Answer) != 1 {
			t.Errorf("%s: afterwards: %s", network, m)
		}
	}
	if n := counted(t, failures, "mesh_agent_internal_errors_total"); n != 0 {
		t.Errorf("%v internal errors", n)
	}
}

// checkReply checks the parts that are the same in each kind of answer.
func checkReply(t *testing.T, what string, test rawMessage, text []byte) {
	t.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(text); err != nil {
		t.Errorf("%s: %v: %x", what, err, text)
		return
	}
	rcode := m.Rcode
	if opt := m.IsEdns0(); opt != nil {
		if opt.Version() != 0 || opt.UDPSize() != 1232 || opt.Do() != (test.what == "EDNS with DO") {
			t.Errorf("%s: %s", what, opt)
		}
	} else if strings.HasPrefix(test.what, "EDNS") && test.what != "EDNS of a name" && test.want != dns.RcodeFormatError {
		t.Errorf("%s: no EDNS in %s", what, m)
	}
	if rcode != test.want || !m.Response || m.Zero || m.Opcode != int(test.text[2]>>3)&15 {
		t.Errorf("%s: %s, want %s", what, m, dns.RcodeToString[test.want])
	}
	if test.want != dns.RcodeSuccess && test.want != dns.RcodeNameError && (len(text) > len(test.text) || m.Authoritative) {
		t.Errorf("%s: a failure of %d bytes for %d bytes: %s", what, len(text), len(test.text), m)
	}
	if isAny := test.what == "type ANY"; (isAny || test.what == "EDNS with DO") && len(m.Answer) != 1 {
		t.Errorf("%s: %s", what, m)
	}
}

// TestChangedMessages: after messages with any byte changed, the server answers other messages.
func TestChangedMessages(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "service own shop/cart 10.0.0.1")
	failures := boundary.New(nil)
	s := serve(t, dnsserver.Params{View: w.View, Boundary: failures.Part("dns")})
	whole := header(0, 1, 0, 0, 1) + cartQuestion + record("\x00", dns.TypeOPT, 1232, 0, "\x00\x0a\x00\x08cookie00")
	udp := dialRaw(t, "udp", s.Address())
	for at := 2; at < len(whole); at++ {
		for _, b := range []byte{0, 1, 12, 0x3f, 0x40, 0x80, 0xc0, 0xff, whole[at] ^ 1, whole[at] ^ 0x20} {
			udp.send(t, whole[:at]+string([]byte{b})+whole[at+1:])
		}
		if m := ask(t, s, "udp", cart, dns.TypeA, 0); len(m.Answer) != 1 {
			t.Fatalf("byte %d: %s", at, m)
		}
	}
	if n := counted(t, failures, "mesh_agent_internal_errors_total"); n != 0 {
		t.Errorf("%v internal errors", n)
	}
}

// TestOthersLearnNothing: clients that may not ask get one response code. With EDNS they also get its reason, which
// makes the answer 6 bytes longer than the question. A malformed message gets no answer.
func TestOthersLearnNothing(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	w.Play(t, "service own shop/cart 10.0.0.1")
	m := dnsserver.NewMetrics()
	s := serve(t, dnsserver.Params{View: w.View, Clients: dnsserver.DefaultClients()[1:2], Metrics: m})
	c := dialRaw(t, "udp", s.Address())
	sent := 0
	for _, test := range rawMessages() {
		id := c.send(t, test.text)
		if sent++; test.want == dns.RcodeFormatError || test.want == dns.RcodeNotImplemented || test.want == silence {
			id = c.send(t, header(0, 1, 0, 0, 0)+cartQuestion)
			sent++
		}
		reply := c.receive(t)
		if got := binary.BigEndian.Uint16(reply); got != id || int(reply[3]&15) != dns.RcodeRefused {
			t.Fatalf("%s: message %d of %d: %x", test.what, got, id, reply)
		}
	}
	if n := counted(t, m, "mesh_agent_dns_rejected_messages_total"); n != float64(sent) {
		t.Errorf("%v of %d messages were counted", n, sent)
	}
}

// TestLongMessagesOverTCP: a message that is longer than any question is read to its end, and is malformed.
func TestLongMessagesOverTCP(t *testing.T) {
	t.Parallel()
	w := viewtest.New(t)
	s := serve(t, dnsserver.Params{View: w.View})
	c := dialRaw(t, "tcp", s.Address())
	for _, size := range []int{4096, 5000, 65535} {
		m := header(0, 1, 0, 0, 1) + cartQuestion
		m += record("\x00", dns.TypeOPT, 1232, 0, "\x00\x0c"+string(binary.BigEndian.AppendUint16(nil, uint16(size-len(m)-15)))+strings.Repeat("\x00", size-len(m)-15))
		want := dns.RcodeNameError
		if size > 4096 {
			want = dns.RcodeFormatError
		}
		c.send(t, m)
		if reply := c.receive(t); len(m) != size || int(reply[3]&15) != want {
			t.Errorf("%d bytes: %x", size, reply)
		}
	}
}
