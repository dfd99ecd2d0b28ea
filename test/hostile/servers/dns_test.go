package servers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// lostTime is how long a client waits for a packet that may be lost.
const lostTime = 500 * time.Millisecond

// TestPackets: DNS messages of any length and content, over UDP and TCP.
func TestPackets(t *testing.T) {
	w := newWorld(t)
	w.attack(w.hostileDNS, w.harmlessDNS)
}

// TestQuestions: valid questions for all names of a service with very many backends.
func TestQuestions(t *testing.T) {
	w := newWorld(t)
	w.writeMuch("much", mostBackends)
	w.read(time.Now())
	w.attack(w.muchDNS, w.harmlessDNS)
}

// muchDNS asks questions that are expensive.
func (w *world) muchDNS(_ context.Context, r *rand.Rand) int {
	const questions = 20
	conn, err := net.Dial("udp", w.agent.dns)
	if err != nil {
		return 1
	}
	defer conn.Close()
	for range questions {
		q := new(dns.Msg)
		q.SetQuestion(one(r, "_a._tcp.much.ns.svc.clusterset.local.", "much.ns.svc.clusterset.local.", "evil.much.ns.svc.clusterset.local.", "1.0.9.10.in-addr.arpa."),
			one(r, dns.TypeSRV, dns.TypeSRV, dns.TypePTR, dns.TypeAAAA, dns.TypeSOA, dns.TypeANY, dns.TypeTXT))
		q.SetEdns0(4096, true)
		text, err := q.Pack()
		if err != nil {
			panic(err) // it is valid
		}
		_, _ = conn.Write(text)
	}
	_ = conn.SetReadDeadline(time.Now().Add(friendlyTime))
	buffer := make([]byte, 65536)
	for range questions {
		n, err := conn.Read(buffer)
		if err != nil {
			break
		}
		if err := wellFormed(buffer[:n]); err != nil {
			w.agent.fails(fmt.Sprintf("a DNS answer is %x: %v", buffer[:n], err))
		}
	}
	return questions
}

// hostileDNS is an attacker's messages to the DNS server.
func (w *world) hostileDNS(ctx context.Context, r *rand.Rand) int {
	switch r.IntN(10) {
	case 0:
		return w.tcpPackets(ctx, r)
	case 1: // each length of one packet, from 0
		p := packet(r)
		if len(p) > 64 {
			p = p[:64]
		}
		var all [][]byte
		for i := range len(p) + 1 {
			all = append(all, p[:i])
		}
		return w.udpPackets(r, all)
	}
	all := make([][]byte, 20)
	for i := range all {
		all[i] = packet(r)
	}
	return w.udpPackets(r, all)
}

// udpPackets sends packets, and then a question, and waits for its answer. All answers are well-formed.
func (w *world) udpPackets(r *rand.Rand, all [][]byte) int {
	conn, err := net.Dial("udp", w.agent.dns)
	if err != nil {
		return 0
	}
	defer conn.Close()
	for _, p := range all {
		_, _ = conn.Write(p) // refused when the agent is gone, which is noticed elsewhere
	}
	last := question(r, dns.TypeA)
	_, _ = conn.Write(last)
	_ = conn.SetReadDeadline(time.Now().Add(lostTime))
	buffer := make([]byte, 65536)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			break // it was lost, as UDP packets may be
		}
		if err := wellFormed(buffer[:n]); err != nil {
			w.agent.fails(fmt.Sprintf("a DNS answer is %x: %v", buffer[:n], err))
		}
		if string(buffer[:2]) == string(last[:2]) {
			break
		}
	}
	return len(all) + 1
}

// wellFormed returns an error if an answer is malformed.
func wellFormed(b []byte) error {
	var m dns.Msg
	if err := m.Unpack(b); err != nil {
		return err
	}
	if !m.Response {
		return errors.New("it is a question")
	}
	opts := 0
	for _, rr := range m.Extra {
		if rr.Header().Rrtype == dns.TypeOPT {
			opts++
		}
	}
	if opts > 1 {
		return errors.New("it has several OPT records")
	}
	return nil
}

// question is a valid question.
func question(r *rand.Rand, qtype uint16) []byte {
	m := new(dns.Msg)
	m.SetQuestion(fmt.Sprintf("svc%d.ns.svc.clusterset.local.", r.IntN(numServices)), qtype)
	m.Id = uint16(r.Uint32())
	b, err := m.Pack()
	if err != nil {
		panic(err) // it is valid
	}
	return b
}

// tcpPackets sends messages over TCP: pipelined, in pieces, with wrong lengths, and closes the connection in the
// middle.
func (w *world) tcpPackets(ctx context.Context, r *rand.Rand) (sent int) {
	conn, err := net.Dial("tcp", w.agent.dns)
	if err != nil {
		return 0
	}
	defer conn.Close()
	slow := r.IntN(20) == 0
	for range 1 + r.IntN(30) {
		p := packet(r)
		length := len(p)
		if r.IntN(15) == 0 {
			length = int(uint16(r.Uint32()))
		}
		frame := append(binary.BigEndian.AppendUint16(nil, uint16(length)), p...)
		if r.IntN(15) == 0 {
			frame = frame[:r.IntN(len(frame)+1)]
		}
		if slow {
			half := len(frame) / 2
			_, _ = conn.Write(frame[:half])
			_ = waiting.Sleep(ctx, time.Millisecond)
			frame = frame[half:]
		}
		sent++
		if _, err := conn.Write(frame); err != nil {
			return sent
		}
	}
	if r.IntN(2) == 0 {
		return sent // without reading
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	_ = conn.SetReadDeadline(time.Now().Add(lostTime))
	for {
		var prefix [2]byte
		if _, err := io.ReadFull(conn, prefix[:]); err != nil {
			return sent
		}
		answer := make([]byte, binary.BigEndian.Uint16(prefix[:]))
		if _, err := io.ReadFull(conn, answer); err != nil {
			return sent
		}
		if err := wellFormed(answer); err != nil {
			w.agent.fails(fmt.Sprintf("a DNS answer is %x: %v", answer, err))
		}
	}
}

// harmlessDNS asks the same number of valid questions.
func (w *world) harmlessDNS(_ context.Context, r *rand.Rand) int {
	conn, err := net.Dial("udp", w.agent.dns)
	if err != nil {
		return 0
	}
	defer conn.Close()
	const questions = 20
	for range questions {
		_, _ = conn.Write(question(r, one(r, dns.TypeA, dns.TypeAAAA, dns.TypeSRV)))
	}
	_ = conn.SetReadDeadline(time.Now().Add(lostTime))
	buffer := make([]byte, 65536)
	for range questions {
		if _, err := conn.Read(buffer); err != nil {
			break
		}
	}
	return questions
}
