package dnsserver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// Bounds of messages and connections.
const (
	udpSize    = 1232 // of messages over UDP, in both directions
	tcpSize    = 4096 // of questions over TCP; a longer one is malformed
	tcpIdle    = 8 * time.Second
	tcpRead    = 2 * time.Second // until the first question was received
	tcpWrite   = 2 * time.Second
	tcpQueries = 128 // of one connection
	pause      = time.Second
)

// The server reads the sockets itself: a message is checked before any of it is used, each client has a share, and the
// boundary contains all failures of one message.

// serveUDP answers packets until ctx ends.
func (s *Server) serveUDP(ctx context.Context) error {
	conn := s.packets
	var running sync.WaitGroup
	defer conn.Close()
	defer running.Wait()
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	for buffer := make([]byte, udpSize); ; {
		n, session, err := dns.ReadFromSessionUDP(conn, buffer)
		if err != nil {
			if err := s.failed(ctx, err); err != nil {
				return err
			}
			continue
		}
		from := session.RemoteAddr().(*net.UDPAddr).AddrPort()
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		if !isAnswerable(from) {
			s.metrics.ignored.Inc()
			continue
		}
		peer := from.Addr()
		q, reply := s.check(buffer[:n], peer)
		switch {
		case reply != nil:
			_, _ = dns.WriteToSessionUDP(conn, reply, session) // a client that gets no reply asks again
		case q != nil && s.queries.take(peer):
			running.Go(func() { _, _ = dns.WriteToSessionUDP(conn, s.respondInPlace(q, peer, "udp"), session) })
		}
	}
}

// failed waits after an error of a socket, which may be a lack of memory or files that other programs use. It returns
// the error of ctx, or an error for a closed socket.
func (s *Server) failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, net.ErrClosed):
		return fmt.Errorf("DNS on %s: the socket was closed: %w", s.Address(), err)
	}
	s.log.Warn("Cannot take DNS queries at the moment", "error", err)
	return waiting.Sleep(ctx, pause)
}

// serveTCP answers on connections until ctx ends.
func (s *Server) serveTCP(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer s.connections.Close()
	defer context.AfterFunc(ctx, func() { _ = s.connections.Close() })()
	for {
		conn, err := s.connections.Accept()
		if err != nil {
			if err := s.failed(ctx, err); err != nil {
				return err
			}
			continue
		}
		peer := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		if !s.open.take(peer) {
			_ = conn.Close()
			continue
		}
		running.Go(func() {
			defer s.open.give(peer)
			defer conn.Close()
			s.serveConnection(ctx, conn, peer)
		})
	}
}

// serveConnection answers one question after the other, until the client is too slow, has asked tcpQueries questions,
// or ctx ends.
func (s *Server) serveConnection(ctx context.Context, conn net.Conn, peer netip.Addr) {
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	buffer := make([]byte, tcpSize)
	wait := tcpRead
	for range tcpQueries {
		if conn.SetReadDeadline(time.Now().Add(wait)) != nil || ctx.Err() != nil { // ctx is checked last: this may have replaced the deadline that is set when ctx ends
			return
		}
		m, err := readMessage(conn, buffer)
		if err != nil {
			return
		}
		q, reply := s.check(m, peer)
		if q != nil {
			reply = s.respondOverTCP(q, peer)
		}
		if reply != nil && writeMessage(conn, reply) != nil {
			return
		}
		wait = tcpIdle
	}
}

func (s *Server) respondOverTCP(q *query, peer netip.Addr) []byte {
	if !s.queries.take(peer) {
		return q.failure(dns.RcodeServerFailure)
	}
	return s.respondInPlace(q, peer, "tcp")
}

// respondInPlace returns the place that was taken before the reply is sent. The time to send it depends on the client,
// and a client that has the reply must have a place for its next question.
func (s *Server) respondInPlace(q *query, peer netip.Addr, network string) []byte {
	defer s.queries.give(peer)
	return s.respond(q, peer, network)
}

// readMessage reads a message with its length. If the message is too long for the buffer, it returns only the
// beginning.
func readMessage(conn net.Conn, buffer []byte) ([]byte, error) {
	if _, err := io.ReadFull(conn, buffer[:2]); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint16(buffer))
	m := buffer[:min(length, len(buffer))]
	if _, err := io.ReadFull(conn, m); err != nil {
		return nil, err
	}
	_, err := io.CopyN(io.Discard, conn, int64(length-len(m)))
	return m, err
}

func writeMessage(conn net.Conn, m []byte) error {
	if err := conn.SetWriteDeadline(time.Now().Add(tcpWrite)); err != nil {
		return err
	}
	_, err := conn.Write(append(binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(m)), uint16(len(m))), m...)) //nolint:gosec // no answer is longer
	return err
}

// listenUDP opens a socket that reports to which address of the machine a packet was sent. The reply is sent from that
// address.
func listenUDP(address string) (*net.UDPConn, error) {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, err
	}
	udp := conn.(*net.UDPConn)
	err6 := ipv6.NewPacketConn(udp).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	err4 := ipv4.NewPacketConn(udp).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
	if err6 != nil && err4 != nil { // a socket has one family or both
		_ = udp.Close()
		return nil, err4
	}
	return udp, nil
}
