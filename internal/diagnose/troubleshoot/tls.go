package troubleshoot

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/printer"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
)

const (
	remedyTLS        = "the server must speak TLS 1.2 or later, and HTTP/2 over it: is it an etcd, and its port for clients?"
	remedyDemanded   = "name a certificate that the server trusts in cert-file and its key in key-file"
	remedyServerCert = "give the server a certificate for servers, signed by an authority of trusted-ca-file"
)

type handshake struct {
	conn    *tls.Conn
	until   time.Time // everything about it must be over
	state   tls.ConnectionState
	server  bool  // its certificates came
	asked   bool  // it asked for our certificate
	gave    bool  // and got one
	refusal error // its refusal of our certificate, before TLS 1.3
}

// handshake does a TLS handshake that trusts every server, to see its answers. It sends nothing secret.
func (e *endpoint) handshake(ctx context.Context, s *Step) {
	if !e.cfg.UsesTLS(e.url) {
		s.skip("plain text, as the endpoint says")
		if !clientfile.OnThisMachine(e.url) {
			s.tell(codes.EndpointPlain, "it is not encrypted: "+clientfile.PlainRisk, "")
		}
		if e.answersAsWeb() {
			s.tell(codes.ServerWithoutHTTP2, "a web server answers there, in HTTP/1", "")
		}
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.o.Timings.TLS, fmt.Errorf("nothing within %s", e.o.Timings.TLS))
	defer cancel()
	raw := e.conn
	e.seen.until, _ = ctx.Deadline()
	e.seen.conn = tls.Client(raw, e.lookingTLS())
	e.conn = e.seen.conn
	err := e.seen.conn.HandshakeContext(ctx)
	switch {
	case err == nil:
		e.seen.state = e.seen.conn.ConnectionState()
	case e.seen.server && context.Cause(ctx) == nil: // it is us that the server does not like
		e.seen.refusal = etcd.RefusedError(hint.OpeningTLS, raw.RemoteAddr(), err)
	default:
		s.failed(etcd.HandshakeError(ctx, hint.OpeningTLS, e.host, raw, err), codes.HandshakeFails, remedyTLS)
		return
	}
	if e.seen.state.NegotiatedProtocol != "h2" {
		s.tell(codes.ServerWithoutHTTP2, "the server does not offer HTTP/2 (ALPN h2)", "")
	}
	s.found(fmt.Sprintf("%s, %s", tls.VersionName(e.seen.state.Version), tls.CipherSuiteName(e.seen.state.CipherSuite)))
	if len(e.addrs) > 1 {
		s.found("with " + e.good)
	}
}

// lookingTLS is the session's TLS configuration, without its judgement.
func (e *endpoint) lookingTLS() *tls.Config {
	conf, err := e.cfg.ClientTLS()
	if err != nil {
		conf = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	ours := conf.GetClientCertificate
	conf.InsecureSkipVerify = true // the next step judges
	conf.ServerName, conf.NextProtos = e.host, []string{"h2"}
	conf.VerifyConnection = func(state tls.ConnectionState) error {
		e.seen.state, e.seen.server = state, true
		return nil
	}
	conf.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		e.seen.asked = true
		if ours == nil {
			return new(tls.Certificate), nil
		}
		cert, err := ours(info)
		if err != nil {
			return new(tls.Certificate), nil //nolint:nilerr // that it cannot be read is another step's
		}
		e.seen.gave = true
		return cert, nil
	}
	return conf
}

// verify judges the server's certificate: everything that is wrong with it.
func (e *endpoint) verify(_ context.Context, s *Step) {
	if e.seen.conn == nil {
		s.skip("no TLS")
		return
	}
	chain := e.seen.state.PeerCertificates
	leaf := chain[0]
	s.found(fmt.Sprintf("for %s, signed by %s", strings.Join(namesOf(leaf), ", "), leaf.Issuer.CommonName))
	security, _ := e.cfg.Security() // problems of the files are reported in their own steps
	conf, err := e.cfg.ClientTLS()
	switch {
	case security.SkipVerify:
		s.tell(codes.ServerNotVerified, "insecure-skip-tls-verify: "+clientfile.SkipVerifyRisk, "take it out, and name the authority in trusted-ca-file")
		return
	case err != nil:
		s.after(StepAuthorities)
		return
	}
	if e.host != "" {
		if err := leaf.VerifyHostname(e.host); err != nil {
			s.failed(err, codes.ServerNameOther, remedyServerCert)
		}
	}
	moment := e.o.Now
	switch v := clientfile.ValidityOf(leaf, e.o.Now); {
	case v.Invalid:
		s.tell(codes.ServerCertificateInvalid, "it "+v.Text, hint.Text(x509.CertificateInvalidError{Cert: leaf, Reason: x509.Expired}))
		if moment = leaf.NotAfter; v.NotYet { // so that its issuer is judged too
			moment = leaf.NotBefore
		}
	case v.Soon:
		s.tell(codes.ServerCertificateSoon, "it "+v.Text, "renew the server's certificate")
	default:
		s.found(v.Text)
	}
	between := x509.NewCertPool()
	for _, cert := range chain[1:] {
		between.AddCert(cert)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: conf.RootCAs, Intermediates: between, CurrentTime: moment}); err != nil {
		s.failed(err, codes.ServerCertificateUnfit, remedyServerCert)
	}
}

func namesOf(cert *x509.Certificate) []string {
	names := slices.Concat(cert.DNSNames, printer.Texts(cert.IPAddresses, net.IP.String))
	if len(names) == 0 {
		return []string{"no name at all"}
	}
	return names
}

func (e *endpoint) accepted(_ context.Context, s *Step) {
	if e.seen.conn == nil {
		s.skip("no TLS")
		return
	}
	err := e.seen.refusal
	if err == nil {
		if err = e.greet(); err != nil && !isTimeout(err) {
			err = etcd.RefusedError(hint.OpeningTLS, e.conn.RemoteAddr(), err)
		}
	}
	switch {
	case err == nil && !e.seen.asked:
		s.found("the server asks for no certificate")
	case err == nil && e.seen.gave:
		s.found("the server accepts our certificate")
	case err == nil:
		s.found("the server asks for a certificate, but does not require one")
	case isTimeout(err):
		s.tell(codes.ServerSilent, "after the handshake: "+err.Error(), remedyTLS)
	case !e.seen.asked:
		s.tell(codes.HandshakeFails, "after the handshake: "+err.Error(), remedyTLS)
	case !e.seen.gave && e.refused != "": // so our certificate was not loaded either
		s.after(e.refused)
	case !e.seen.gave:
		s.tell(codes.ClientCertificateDemanded, "the server demands a certificate, and the client file names none: "+err.Error(), remedyDemanded)
	default:
		s.failed(err, codes.ClientCertificateRefused, remedyDemanded)
	}
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// lastWords is how long a TLS 1.3 server may take to refuse our certificate. A write to a connection that is being
// closed would lose the reason.
const lastWords = 200 * time.Millisecond

// greeting is how HTTP/2 begins: its preface, and settings without any.
const greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// greet begins HTTP/2, like gRPC, and waits for any answer: then the server accepts us.
func (e *endpoint) greet() error {
	if e.seen.asked && e.seen.state.Version == tls.VersionTLS13 {
		if err := hear(e.conn, time.Now().Add(lastWords)); !isTimeout(err) {
			return err
		}
	}
	if err := e.conn.SetWriteDeadline(e.seen.until); err != nil {
		return err
	}
	if _, err := e.conn.Write([]byte(greeting)); err != nil {
		return err
	}
	return hear(e.conn, e.seen.until)
}

// answersAsWeb reports whether a server without TLS answers the beginning of HTTP/2 as one of HTTP/1 does.
func (e *endpoint) answersAsWeb() bool {
	const version = "HTTP/1."
	if e.conn.SetDeadline(time.Now().Add(min(e.o.Timings.TLS, time.Second))) != nil {
		return false
	}
	if _, err := e.conn.Write([]byte(greeting)); err != nil {
		return false
	}
	answer := make([]byte, len(version))
	_, err := io.ReadFull(e.conn, answer)
	return err == nil && string(answer) == version
}

func hear(conn net.Conn, until time.Time) error {
	if err := conn.SetReadDeadline(until); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1))
	return err
}
