package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
)

func TestHint(t *testing.T) {
	t.Parallel()
	rpc := func(c grpccodes.Code, text string) error { return fromRPC(status.Error(c, text)) }
	for _, c := range []struct {
		name string
		err  error
		want string // part of the hint; empty for no hint
	}{
		{"nothing", nil, ""},
		{"something unknown", errors.New("boo"), ""},
		{"a cancelled context", context.Canceled, ""},
		{"compacted, which the owner deals with", kvstore.ErrCompacted, ""},
		{"permission", rpc(grpccodes.PermissionDenied, "etcdserver: permission denied"), "role does not cover"},
		{"permission of another server", rpc(grpccodes.PermissionDenied, "no"), "role does not cover"},
		{"unauthenticated", rpc(grpccodes.Unauthenticated, "etcdserver: invalid auth token"), "username and password"},
		{"unauthenticated by a proxy", rpc(grpccodes.Unauthenticated, "who are you"), "username and password"},
		{"server changed", fmt.Errorf("%w: x", kvstore.ErrServerChanged), "new session"},
		{"unknown authority", fmt.Errorf("x: %w", x509.UnknownAuthorityError{}), "trusted-ca-file"},
		{"unknown authority, by text", rpc(grpccodes.Unavailable, "x509: certificate signed by unknown authority"), "trusted-ca-file"},
		{"another name", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}, "other names"},
		{"expired", x509.CertificateInvalidError{Reason: x509.Expired}, "renew"},
		{"alert", tls.AlertError(42), "refuses our client certificate"},
		{"no TLS", tls.RecordHeaderError{}, "http://"},
		{"no TLS, by text", errors.New("tls: first record does not look like a TLS handshake"), "http://"},
		{"refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, "nothing listens"},
		{"refused, by text", rpc(grpccodes.Unavailable, "dial tcp 127.0.0.1:1: connect: connection refused"), "nothing listens"},
		{"unreachable", syscall.EHOSTUNREACH, "no route"},
		{"packets without an answer", &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, "packets get no answer"},
		{"no such socket", &net.OpError{Op: "dial", Err: syscall.ENOENT}, "nothing listens"},
		{"no such file", &fs.PathError{Op: "open", Err: syscall.ENOENT}, "put the file there"},
		{"a file of others", &fs.PathError{Op: "open", Err: syscall.EACCES}, "let the user"},
		{"a key of another certificate", errors.New("tls: private key does not match public key"), "of one pair"},
		{"no such name", &net.DNSError{IsNotFound: true}, "does not resolve"},
		{"no such name, by text", errors.New("lookup a: no such host"), "does not resolve"},
		{"no leader", fromRPC(rpctypes.ErrGRPCNoLeader), "lost its quorum"},
		{"server timeout", fromRPC(rpctypes.ErrGRPCTimeout), "overloaded"},
		{"election", fromRPC(rpctypes.ErrGRPCTimeoutDueToLeaderFail), "election of a leader"},
		{"deadline", (&noAnswerError{what: "get", after: time.Second}).with(nil), "unreachable, overloaded"},
		{"deadline with a reason", (&noAnswerError{what: "get"}).with(syscall.ECONNREFUSED), "nothing listens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := hint.Text(c.err)
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			code := hint.Code(c.err)
			if _, known := codes.Find(string(code)); known != (code != "") || code != "" && got == "" {
				t.Errorf("%q is the code of %q", code, got)
			}
			if c.err == nil {
				return
			}
			ke := hint.Failed("get", "k", c.err)
			if !errors.Is(ke, c.err) {
				t.Error("the error is not found in a KeyError")
			}
			if n := strings.Count(ke.Error(), got); got != "" && n != 1 {
				t.Errorf("%d hints in %q", n, ke)
			}
		})
	}
	if got := (&kvstore.KeyError{Op: "head", Err: errors.New("boo")}).Error(); got != "kvstore head: boo" {
		t.Error(got)
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ err, want error }{
		{rpctypes.ErrGRPCCompacted, kvstore.ErrCompacted},
		{rpctypes.ErrCompacted, kvstore.ErrCompacted},
		{rpctypes.ErrGRPCPermissionDenied, kvstore.ErrPermissionDenied},
		{rpctypes.ErrAuthFailed, kvstore.ErrUnauthenticated},
		{rpctypes.ErrGRPCUserEmpty, kvstore.ErrUnauthenticated},
	} {
		got := fromRPC(c.err)
		kvtest.WantErr(t, got, c.want)
		kvtest.WantErr(t, got, c.err)
		if again := fromRPC(got); again != got { //nolint:errorlint // the very same
			t.Errorf("%v is turned twice", c.err)
		}
		if strings.Contains(got.Error(), "rpc error") {
			t.Errorf("gRPC's decoration: %s", got)
		}
	}
	plain := errors.New("x")
	if fromRPC(plain) != plain { //nolint:errorlint // the very same
		t.Error("an error that is none of gRPC's is changed")
	}
	if isTimeout(plain) || isUnavailable(plain) || !isTimeout(fromRPC(status.Error(grpccodes.DeadlineExceeded, "x"))) ||
		!isUnavailable(&kvstore.KeyError{Err: fromRPC(status.Error(grpccodes.Unavailable, "x"))}) {
		t.Error("codes are not recognised")
	}
	if isTooLarge(fromRPC(rpctypes.ErrGRPCRequestTooManyRequests)) {
		t.Error("a busy server is taken for a message that is too large")
	}
	if kvstore.EventPut.String() != "put" || kvstore.EventDelete.String() != "delete" {
		t.Error("names of events")
	}
}
