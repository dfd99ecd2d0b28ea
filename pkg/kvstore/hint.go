package kvstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/status"
)

// Hint says in a few words what to do about an error of this package, or
// returns the empty string. The errors' texts contain it already.
func Hint(err error) string {
	for _, f := range []func(error) string{hintKind, hintTLS, hintNetwork, hintFile, hintText} {
		if h := f(err); h != "" {
			return h
		}
	}
	return ""
}

func hintKind(err error) string {
	var busy *lockTimeoutError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, ErrPermissionDenied):
		return "the etcd user's role does not cover this key or range; a prefix must end exactly where the role's does, mostly in /"
	case errors.Is(err, ErrUnauthenticated):
		return "check username and password, or the common name of the client certificate, against the users of that etcd"
	case errors.Is(err, ErrLockLeaseExpired):
		return "lock again, and begin anew with what the lock protects"
	case errors.As(err, &busy):
		return "its holder has to unlock it; that of a dead one is free when its lease ends"
	case errors.Is(err, ErrServerChanged):
		return "a new session with a new list follows; it is normal when an endpoint has several replicas"
	default:
		return ""
	}
}

// Hints that are given for errors with a type and for their texts alike.
const (
	hintClientCert = "the server refuses our client certificate; check cert-file, its dates, and that the server trusts the authority that signed it"
	hintNoTLS      = "the server does not speak TLS; the endpoint may need http:// instead of https://"
	hintSilent     = "something accepts connections there and says nothing: the server may hang, be no etcd, or speak TLS or plain text when the endpoint's scheme says otherwise"
	hintRefused    = "nothing listens there; is etcd or the clustermesh-apiserver running, and is it the right port?"
	hintAuthority  = "trusted-ca-file does not hold the authority that signed the server's certificate"
	hintNoName     = "the name does not resolve; check DNS, or add the name to " + hostAliasesKey
)

func hintTLS(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		alert     tls.AlertError
		header    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return hintAuthority
	case errors.As(err, &host):
		return "the server's certificate is for other names; use one of them in endpoints, with " + hostAliasesKey + " if it does not resolve"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "renew the server's certificate, or set the clock"
	case errors.As(err, &alert), strings.Contains(text(err), "remote error: tls:"):
		return hintClientCert
	case errors.As(err, &header):
		return hintNoTLS
	default:
		return ""
	}
}

func hintNetwork(err error) string {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), isDial(err) && errors.Is(err, fs.ErrNotExist): // a socket's file
		return hintRefused
	case isDial(err) && errors.Is(err, context.DeadlineExceeded):
		return "the endpoint is unreachable, packets get no answer from there: check the address, and routes, firewalls and network policies on the way"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to that address"
	case errors.As(err, &dns) && dns.IsNotFound:
		return hintNoName
	default:
		return ""
	}
}

func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// hintFile is about the files that a configuration is made of.
func hintFile(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "put the file there, or correct the path; in a pod the Secret that holds it must be mounted"
	case errors.Is(err, fs.ErrPermission):
		return "let the user that the agent runs as read it"
	case strings.Contains(text(err), "private key does not match public key"):
		return "cert-file and key-file must be of one pair: take both from the same Secret or directory, and renew them together"
	default:
		return ""
	}
}

// hintText recognises what has lost its type on its way through gRPC.
func hintText(err error) string {
	s := text(err)
	if strings.Contains(s, openingPlain) && strings.Contains(s, nothingBack) {
		return hintSilent
	}
	if strings.Contains(s, openingTLS) {
		switch {
		case strings.Contains(s, noAnswer):
			return hintSilent
		case strings.Contains(s, "closed by the server"):
			return hintClientCert
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return hintNoTLS
		}
	}
	for _, h := range []struct{ part, hint string }{
		{"connection refused", hintRefused},
		{"no such host", hintNoName},
		{"first record does not look like a TLS handshake", hintNoTLS},
		{openingPlain, "the server may speak TLS; the endpoint may need https:// instead of http://"},
		{"signed by unknown authority", hintAuthority},
		{message(rpctypes.ErrGRPCNoLeader), "that etcd has lost its quorum"},
		{message(rpctypes.ErrGRPCTimeoutDueToLeaderFail), "that etcd is electing a leader"},
		{message(rpctypes.ErrGRPCTimeoutDueToConnectionLost), "that etcd has lost its quorum"},
		{message(rpctypes.ErrGRPCTimeout), "that etcd is overloaded or has lost its quorum"}, // a part of the others
	} {
		if strings.Contains(s, h.part) {
			return h.hint
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the endpoint is unreachable, overloaded, or its etcd has lost its quorum"
	}
	return ""
}

func message(err error) string { return status.Convert(err).Message() }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
