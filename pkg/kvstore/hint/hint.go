// Package hint maps the errors of kvstores to findings (package codes) and to short advice.
// It decides nothing and has no state.
package hint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"slices"
	"strings"
	"syscall"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// Text returns short advice about an error of a kvstore; empty if there is none. The text of
// a [kvstore.KeyError] already contains it.
func Text(err error) string { return adviceOn(err).hint }

// Code returns the code of the finding for an error of a kvstore or of a client file;
// empty for an error without a finding, and for an unknown error.
func Code(err error) codes.Code {
	if code := adviceOn(err).code; code != "" {
		return code
	}
	if p, ok := errors.AsType[interface {
		error
		Code() codes.Code
	}](err); ok {
		return p.Code()
	}
	return ""
}

// advice is the finding and the hint for a kind of error.
type advice struct {
	code codes.Code
	hint string
}

// adviceOn returns the advice on an error; zero when the error is unknown.
func adviceOn(err error) advice {
	if err == nil {
		return advice{}
	}
	for _, known := range all() {
		if known.is(err) {
			return known.advice
		}
	}
	return advice{}
}

// Parts of the error texts of an etcd engine, with which this package recognises errors of
// connections: the kind of connection, and how it failed.
const (
	OpeningPlain = "opening a plain text connection to"
	OpeningTLS   = "opening a TLS connection to"
	NoAnswer     = "no answer: "
	NothingBack  = "nothing came back"
)

// Hints that are used both for typed errors and for error texts.
const (
	hintClientCert = "the server refuses our client certificate; check cert-file, its dates, and that the server trusts the authority that signed it"
	hintNoHTTP2    = "a web server, or a proxy or load balancer that does not offer HTTP/2 (ALPN h2), answers there: let it pass TCP through or offer HTTP/2, or use the port of the etcd itself"
	hintNoFrames   = "what answers there does not speak HTTP/2: a web server or a proxy of HTTP/1.1, which has to pass TCP through or to speak HTTP/2 without TLS, or another service; use the port of the etcd itself"
	hintNoTLS      = "the server does not speak TLS; the endpoint may need http:// instead of https://"
	hintSilent     = "the endpoint accepts connections and does not answer: the server may hang, may not be an etcd, or the scheme of the endpoint (http, https) may be wrong"
	hintRefused    = "nothing listens there; is etcd or the clustermesh-apiserver running, and is it the right port?"
	hintNoRoute    = "there is no route to that address"
	hintAuthority  = "trusted-ca-file does not hold the authority that signed the server's certificate"
	hintNoName     = "the name does not resolve; check DNS, or add the name to " + clientfile.HostAliasesKey
)

// known is a kind of error that is recognised by its type or its text.
type known struct {
	is func(error) bool
	advice
}

// all returns all known errors, the more exact ones first.
func all() []known {
	return []known{
		{is(kvstore.ErrPermissionDenied), advice{codes.RightsMissing, "the etcd user's role does not cover this key or range; a prefix must end exactly where the role's does, mostly in /"}},
		{is(kvstore.ErrUnauthenticated), advice{codes.EtcdUserRefused, "check username and password, or the common name of the client certificate, against the users of that etcd"}},
		{says("password was given for no password user"), advice{codes.EtcdUserRefused, "the user of that etcd has no password, and logs in with its client certificate: take username and password out of the client file"}},
		{is(kvstore.ErrUserNotFound), advice{"", "create the user first"}},
		{is(kvstore.ErrRoleNotFound), advice{"", "create the role first"}},
		{is(kvstore.ErrNoSpace), advice{codes.EtcdAlarm, "that etcd is at its quota: compact and defragment it, or raise --quota-backend-bytes, and then 'etcdctl alarm disarm'"}},
		{is(kvstore.ErrLockLeaseExpired), advice{"", "lock again, and start the protected work again"}},
		{as[*kvstore.LockTimeoutError], advice{"", "its holder has to unlock it; that of a dead one is free when its lease ends"}},
		{is(kvstore.ErrProtocol), advice{codes.ProtocolBroken, "the server there is not an etcd, or a corrupt or hostile one: find out which program answers"}},
		{is(kvstore.ErrServerChanged), advice{"", "a new session with a new list follows; it is normal when an endpoint has several replicas"}},

		{as[x509.UnknownAuthorityError], advice{codes.ServerAuthorityUnknown, hintAuthority}},
		{as[x509.HostnameError], advice{codes.ServerNameOther, "the server's certificate is for other names; use one of them in endpoints, with " + clientfile.HostAliasesKey + " if it does not resolve"}},
		{isExpired, advice{codes.ServerCertificateInvalid, "renew the server's certificate, or set the clock"}},
		{isAboutOurs, advice{codes.ClientCertificateRefused, hintClientCert}},
		{says("remote error: tls: no application protocol"), advice{codes.ServerWithoutHTTP2, hintNoHTTP2}},
		{says("missing selected ALPN property"), advice{codes.ServerWithoutHTTP2, hintNoHTTP2}},
		{says("looked like an HTTP/1.1 header"), advice{codes.ServerWithoutHTTP2, hintNoHTTP2}},
		{says("error reading server preface: http2: frame too large"), advice{codes.ServerWithoutHTTP2, hintNoFrames}},
		{says("remote error: tls: unrecognized name"), advice{codes.HandshakeFails, "the server, or a proxy before it, serves no host of that name (SNI): use a name that it serves in endpoints, with " + clientfile.HostAliasesKey + " if it does not resolve"}},
		{says("remote error: tls: protocol version not supported"), advice{codes.HandshakeFails, "the server speaks no version of TLS that the agent speaks: let it speak TLS 1.2 or later"}},
		{says("remote error: tls: handshake failure"), advice{codes.HandshakeFails, "the server has no cipher suite or kind of key in common with the agent: let it speak TLS 1.3, or a suite of TLS 1.2 with ECDHE"}},
		{either(as[tls.AlertError], says("remote error: tls:")), advice{codes.HandshakeFails, "the server, or a proxy before it, ends the handshake before it looks at our client certificate: read its log"}},
		{as[tls.RecordHeaderError], advice{codes.ServerWithoutTLS, hintNoTLS}},

		{is(syscall.ECONNREFUSED), advice{codes.ConnectionRefused, hintRefused}},
		{dial(is(fs.ErrNotExist)), advice{codes.ConnectionRefused, hintRefused}}, // a socket's file
		{dial(is(context.DeadlineExceeded)), advice{codes.ConnectionUnanswered, "the endpoint is unreachable, packets get no answer from there: check the address, and routes, firewalls and network policies on the way"}},
		{is(syscall.EHOSTUNREACH), advice{codes.ConnectionNoRoute, hintNoRoute}},
		{is(syscall.ENETUNREACH), advice{codes.ConnectionNoRoute, hintNoRoute}},
		{isUnknownHost, advice{codes.HostUnknown, hintNoName}},

		// Errors of the files of a configuration.
		{is(fs.ErrNotExist), advice{codes.FileMissing, "put the file there, or correct the path; in a pod the Secret that holds it must be mounted"}},
		{is(fs.ErrPermission), advice{codes.FileForbidden, "let the user that the agent runs as read it"}},
		{says("private key does not match public key"), advice{codes.CertificateOfOtherKey, "cert-file and key-file must be of one pair: take both from the same Secret or directory, and renew them together"}},

		// Errors whose types were lost in gRPC.
		{both(says(OpeningPlain), says(NothingBack)), advice{codes.ServerSilent, hintSilent}},
		{both(says(OpeningTLS), says(NoAnswer)), advice{codes.ServerSilent, hintSilent}},
		{both(says(OpeningTLS), says("closed by the server")), advice{codes.ClientCertificateRefused, hintClientCert}},
		{both(says(OpeningTLS), is(io.EOF)), advice{codes.ServerWithoutTLS, hintNoTLS}},
		{both(says(OpeningTLS), is(syscall.ECONNRESET)), advice{codes.ServerWithoutTLS, hintNoTLS}},
		{says("connection refused"), advice{codes.ConnectionRefused, hintRefused}},
		{says("no such host"), advice{codes.HostUnknown, hintNoName}},
		{says("first record does not look like a TLS handshake"), advice{codes.ServerWithoutTLS, hintNoTLS}},
		{says(OpeningPlain), advice{codes.ServerNeedsTLS, "the server may speak TLS; the endpoint may need https:// instead of http://"}},
		{says("signed by unknown authority"), advice{codes.ServerAuthorityUnknown, hintAuthority}},
		{says(message(rpctypes.ErrGRPCNoLeader)), advice{codes.EtcdNoQuorum, "that etcd has lost its quorum"}},
		{says(message(rpctypes.ErrGRPCTimeoutDueToLeaderFail)), advice{codes.EtcdNoQuorum, "that etcd is in the election of a leader"}},
		{says(message(rpctypes.ErrGRPCTimeoutDueToConnectionLost)), advice{codes.EtcdNoQuorum, "that etcd has lost its quorum"}},
		// This text is a part of the texts before it.
		{says(message(rpctypes.ErrGRPCTimeout)), advice{codes.EtcdNoQuorum, "that etcd is overloaded or has lost its quorum"}},
		{is(context.DeadlineExceeded), advice{codes.EtcdUnanswered, "the endpoint is unreachable, overloaded, or its etcd has lost its quorum"}},
	}
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func says(part string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), part) }
}

// isAboutOurs reports whether the error is an alert that a server sends because of our client certificate (RFC 8446,
// 6.2: 42 to 46, 48, 49, 51 and 116). Servers send other alerts before they have read the certificate.
func isAboutOurs(err error) bool {
	if alert, is := errors.AsType[tls.AlertError](err); is {
		return slices.Contains([]tls.AlertError{42, 43, 44, 45, 46, 48, 49, 51, 116}, alert)
	}
	_, alert, is := strings.Cut(err.Error(), "remote error: tls: ")
	return is && slices.ContainsFunc([]string{
		"bad certificate", "unsupported certificate", "revoked certificate", "expired certificate", "unknown certificate",
		"access denied", "error decrypting message", "certificate required",
	}, func(about string) bool { return strings.HasPrefix(alert, about) })
}

func either(one, other func(error) bool) func(error) bool {
	return func(err error) bool { return one(err) || other(err) }
}

func both(one, other func(error) bool) func(error) bool {
	return func(err error) bool { return one(err) && other(err) }
}

func dial(is func(error) bool) func(error) bool {
	return func(err error) bool {
		op, ok := errors.AsType[*net.OpError](err)
		return ok && op.Op == "dial" && is(err)
	}
}

func isExpired(err error) bool {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok && invalid.Reason == x509.Expired
}

func isUnknownHost(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}

func message(err error) string { return status.Convert(err).Message() }

// Failed returns the error of an operation, with its hint.
func Failed(op, key string, err error) error {
	return &kvstore.KeyError{Op: op, Key: key, Err: err, Hint: Text(err)}
}
