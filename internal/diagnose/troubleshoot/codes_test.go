package troubleshoot

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/simtest/codestest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

// TestWhatIsWrong: each situation has its step, its cause, its remedy and its
// code, and all codes have a situation.
func TestWhatIsWrong(t *testing.T) {
	t.Parallel()
	var all reached
	t.Run("all", func(t *testing.T) {
		for name, situations := range map[string]func(*testing.T) map[string]wrong{
			"with the file": wrongFiles, "on the way": wrongWays, "with certificates": wrongCertificates,
			"with etcd": wrongServers, "in etcd": wrongContents,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				checkAll(t, situations(t), &all)
			})
		}
		t.Run("warnings", func(t *testing.T) {
			t.Parallel()
			checkWarnings(t, &all)
		})
	})
	all.add(&Report{Steps: []Step{failingRead()}})
	codestest.Reached(t, codes.Troubleshoot, all.codes...)
}

// failingRead is the step of a read that fails for an unknown reason.
func failingRead() Step {
	s := Step{Name: StepRights, State: OK}
	r := reader{check: &check{target: Target{Cluster: "c2"}}, heart: reading{n: -1, err: errors.New("boo")}}
	r.rights(&s)
	return s
}

// answering is a server that speaks gRPC and answers every request with this
// error; with none it never answers.
func answering(t *testing.T, err error) (clientPath string) {
	t.Helper()
	l, lerr := net.Listen("tcp", "127.0.0.1:0")
	if lerr != nil {
		t.Fatal(lerr)
	}
	over := make(chan struct{})
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		if err == nil {
			<-over // an end with the call's context might be an answer before the client's own limit
		}
		return err
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		close(over)
		s.Stop()
		<-done
	})
	return clientFile(t, "'http://"+l.Addr().String()+"'")
}

func wrongServers(t *testing.T) map[string]wrong {
	t.Helper()
	certs := etcdtest.NewCerts(t)
	certs.SetServer(t, []string{"127.0.0.1"}, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	cert, key := certs.Client(t, "remote")
	dialFails := func(err error) func(*Options) {
		return func(o *Options) {
			o.Dial = func(_ context.Context, network, _ string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Net: network, Err: err}
			}
		}
	}
	nobody := clientFile(t, "'http://192.0.2.1:2379'")
	return map[string]wrong{
		"no route": {
			path: nobody, with: dialFails(syscall.EHOSTUNREACH), failed: []string{StepTCP}, skipped: []string{StepEtcd},
			code: codes.ConnectionNoRoute, cause: "no route to host", remedy: "no route to that address",
		},
		"no more sockets": {
			path: nobody, with: dialFails(syscall.EMFILE), failed: []string{StepTCP}, skipped: []string{StepEtcd},
			code: codes.ConnectionFails, cause: "too many open files", remedy: "that this machine may connect to it",
		},
		"a server's certificate that is a client's": {
			path:   securely(t, "'https://"+noEtcd(t, certs, 0)+"'", certs.CAFile, cert, key),
			failed: []string{StepServerCertificate, StepAccepted}, skipped: []string{StepEtcd},
			with: func(o *Options) { o.Timings.TLS = 5 * time.Second },
			code: codes.ServerCertificateUnfit, cause: "incompatible key usage", remedy: "a certificate for servers",
		},
		"an etcd without a leader": {
			path: answering(t, rpctypes.ErrGRPCNoLeader), failed: []string{StepEtcd}, skipped: []string{StepRights},
			code: codes.EtcdNoQuorum, cause: "no leader", remedy: "lost its quorum",
		},
		"an etcd that is broken": {
			path: answering(t, status.Error(grpccodes.Internal, "boo")), failed: []string{StepEtcd}, skipped: []string{StepRights},
			code: codes.EtcdFails, cause: "boo", remedy: "look at the etcd of that cluster",
		},
		"an etcd that does not answer": {
			path: answering(t, nil), failed: []string{StepEtcd}, skipped: []string{StepRights},
			with: func(o *Options) { o.Timings.Etcd = 5 * time.Second },
			code: codes.EtcdUnanswered, cause: "no answer within", remedy: "unreachable, overloaded",
		},
	}
}

// full starts a server that has no more space.
func full(t *testing.T) *etcdtest.Server {
	t.Helper()
	s := fill(t, etcdtest.Start(t, etcdtest.WithConfig(etcdserver.Config{QuotaBytes: 1 << 20})))
	client := s.Client(t)
	for range 1000 {
		if _, err := client.Put(t.Context(), "x", strings.Repeat("x", 100<<10)); err != nil {
			if !errors.Is(err, rpctypes.ErrNoSpace) {
				t.Fatal(err)
			}
			return s
		}
	}
	t.Fatal("it is never full")
	return nil
}

// TestFindingsOfOneStep: each has its own code, and those of one code are one.
func TestFindingsOfOneStep(t *testing.T) {
	t.Parallel()
	s := Step{State: OK}
	s.tell(codes.ServerCertificateSoon, "it ends soon", "")
	s.failed(errors.New("boo\n http://u:geheim@x"), codes.ReadFails, "look")
	s.failed(kvstore.ErrPermissionDenied, codes.ReadFails, "look")
	s.failed(errors.New("again"), codes.ReadFails, "look")
	if s.Code != codes.ReadFails || s.State != Failed || len(s.Findings) != 3 || strings.Contains(s.Cause+s.Findings[1].Message, "geheim") {
		t.Errorf("%+v", s)
	}
	if f := s.Findings[1]; f.Code != codes.ReadFails || !strings.HasPrefix(f.Message, "boo; ") || !strings.HasSuffix(f.Message, "; again") || f.Remedy != "look" {
		t.Errorf("%+v", f)
	}
	if f := s.Findings[2]; f.Code != codes.RightsMissing || f.Severity != codes.Error {
		t.Errorf("%+v", f)
	}
	if f := s.Findings[0]; f.Remedy == "" || f.Severity != codes.Warning {
		t.Errorf("%+v", f)
	}
}
