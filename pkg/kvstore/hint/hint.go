// Package hint recognises the errors of kvstores: which finding each is (package codes),
// and what to do about it, in a few words. It decides nothing and has no state.
package hint

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

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// Text says in a few words what to do about an error of a kvstore, or returns the empty
// string. The text of a [kvstore.KeyError] contains it already.
func Text(err error) string { return adviceOn(err).hint }

// Code returns the code of the finding that an error of a kvstore or of a client file
// is; empty for one that is none, or that is not known.
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

// advice is what is known of an error: which finding it is, and what to do.
type advice struct {
	code codes.Code
	hint string
}

// adviceOn recognises an error; zero when it does not.
func adviceOn(err error) advice {
	if err == nil {
		return advice{}
	}
	for _, f := range []func(error) advice{adviceOnKind, adviceOnTLS, adviceOnNetwork, adviceOnFile, adviceOnText} {
		if a := f(err); a.hint != "" {
			return a
		}
	}
	return advice{}
}

func adviceOnKind(err error) advice {
	if _, busy := errors.AsType[*kvstore.LockTimeoutError](err); busy {
		return advice{"", "its holder has to unlock it; that of a dead one is free when its lease ends"}
	}
	for _, known := range []struct {
		is error
		advice
	}{
		{kvstore.ErrPermissionDenied, advice{codes.RightsMissing, "the etcd user's role does not cover this key or range; a prefix must end exactly where the role's does, mostly in /"}},
		{kvstore.ErrUnauthenticated, advice{codes.EtcdUserRefused, "check username and password, or the common name of the client certificate, against the users of that etcd"}},
		{kvstore.ErrUserNotFound, advice{"", "create the user first"}},
		{kvstore.ErrRoleNotFound, advice{"", "create the role first"}},
		{kvstore.ErrNoSpace, advice{codes.EtcdAlarm, "that etcd is at its quota: compact and defragment it, or raise --quota-backend-bytes, and then 'etcdctl alarm disarm'"}},
		{kvstore.ErrLockLeaseExpired, advice{"", "lock again, and begin anew with what the lock protects"}},
		{kvstore.ErrProtocol, advice{codes.ProtocolBroken, "whatever answers there is no etcd, or a damaged or hostile one: find out what it is"}},
		{kvstore.ErrServerChanged, advice{"", "a new session with a new list follows; it is normal when an endpoint has several replicas"}},
	} {
		if errors.Is(err, known.is) {
			return known.advice
		}
	}
	return advice{}
}

// What an etcd engine says of its connections, by which their errors are recognised: what
// was being opened, and how that failed.
const (
	OpeningPlain = "opening a plain text connection to"
	OpeningTLS   = "opening a TLS connection to"
	NoAnswer     = "no answer: "
	NothingBack  = "nothing came back"
)

// Hints that are given for errors with a type and for their texts alike.
const (
	hintClientCert = "the server refuses our client certificate; check cert-file, its dates, and that the server trusts the authority that signed it"
	hintNoTLS      = "the server does not speak TLS; the endpoint may need http:// instead of https://"
	hintSilent     = "something accepts connections there and says nothing: the server may hang, be no etcd, or speak TLS or plain text when the endpoint's scheme says otherwise"
	hintRefused    = "nothing listens there; is etcd or the clustermesh-apiserver running, and is it the right port?"
	hintAuthority  = "trusted-ca-file does not hold the authority that signed the server's certificate"
	hintNoName     = "the name does not resolve; check DNS, or add the name to " + clientfile.HostAliasesKey
)

func adviceOnTLS(err error) advice {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		alert     tls.AlertError
		header    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &authority):
		return advice{codes.ServerAuthorityUnknown, hintAuthority}
	case errors.As(err, &host):
		return advice{codes.ServerNameOther, "the server's certificate is for other names; use one of them in endpoints, with " + clientfile.HostAliasesKey + " if it does not resolve"}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return advice{codes.ServerCertificateInvalid, "renew the server's certificate, or set the clock"}
	case errors.As(err, &alert), strings.Contains(err.Error(), "remote error: tls:"):
		return advice{codes.ClientCertificateRefused, hintClientCert}
	case errors.As(err, &header):
		return advice{codes.ServerWithoutTLS, hintNoTLS}
	default:
		return advice{}
	}
}

func adviceOnNetwork(err error) advice {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), isDial(err) && errors.Is(err, fs.ErrNotExist): // a socket's file
		return advice{codes.ConnectionRefused, hintRefused}
	case isDial(err) && errors.Is(err, context.DeadlineExceeded):
		return advice{codes.ConnectionUnanswered, "the endpoint is unreachable, packets get no answer from there: check the address, and routes, firewalls and network policies on the way"}
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return advice{codes.ConnectionNoRoute, "there is no route to that address"}
	case errors.As(err, &dns) && dns.IsNotFound:
		return advice{codes.HostUnknown, hintNoName}
	default:
		return advice{}
	}
}

func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// adviceOnFile is about the files that a configuration is made of.
func adviceOnFile(err error) advice {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return advice{codes.FileMissing, "put the file there, or correct the path; in a pod the Secret that holds it must be mounted"}
	case errors.Is(err, fs.ErrPermission):
		return advice{codes.FileForbidden, "let the user that the agent runs as read it"}
	case strings.Contains(err.Error(), "private key does not match public key"):
		return advice{codes.CertificateOfOtherKey, "cert-file and key-file must be of one pair: take both from the same Secret or directory, and renew them together"}
	default:
		return advice{}
	}
}

// adviceOnText recognises what has lost its type on its way through gRPC.
func adviceOnText(err error) advice {
	s := err.Error()
	if strings.Contains(s, OpeningPlain) && strings.Contains(s, NothingBack) {
		return advice{codes.ServerSilent, hintSilent}
	}
	if strings.Contains(s, OpeningTLS) {
		switch {
		case strings.Contains(s, NoAnswer):
			return advice{codes.ServerSilent, hintSilent}
		case strings.Contains(s, "closed by the server"):
			return advice{codes.ClientCertificateRefused, hintClientCert}
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return advice{codes.ServerWithoutTLS, hintNoTLS}
		}
	}
	for _, known := range []struct {
		part string
		advice
	}{
		{"connection refused", advice{codes.ConnectionRefused, hintRefused}},
		{"no such host", advice{codes.HostUnknown, hintNoName}},
		{"first record does not look like a TLS handshake", advice{codes.ServerWithoutTLS, hintNoTLS}},
		{OpeningPlain, advice{codes.ServerNeedsTLS, "the server may speak TLS; the endpoint may need https:// instead of http://"}},
		{"signed by unknown authority", advice{codes.ServerAuthorityUnknown, hintAuthority}},
		{message(rpctypes.ErrGRPCNoLeader), advice{codes.EtcdNoQuorum, "that etcd has lost its quorum"}},
		{message(rpctypes.ErrGRPCTimeoutDueToLeaderFail), advice{codes.EtcdNoQuorum, "that etcd is electing a leader"}},
		{message(rpctypes.ErrGRPCTimeoutDueToConnectionLost), advice{codes.EtcdNoQuorum, "that etcd has lost its quorum"}},
		{message(rpctypes.ErrGRPCTimeout), advice{codes.EtcdNoQuorum, "that etcd is overloaded or has lost its quorum"}}, // a part of the others
	} {
		if strings.Contains(s, known.part) {
			return known.advice
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return advice{codes.EtcdUnanswered, "the endpoint is unreachable, overloaded, or its etcd has lost its quorum"}
	}
	return advice{}
}

func message(err error) string { return status.Convert(err).Message() }

// Failed is the error of an operation, with its hint.
func Failed(op, key string, err error) error {
	return &kvstore.KeyError{Op: op, Key: key, Err: err, Hint: Text(err)}
}
