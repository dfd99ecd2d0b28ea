package troubleshoot

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// patient has deadlines that a busy machine meets.
func patient() Options {
	return Options{
		Now: began,
		Timings: Timings{
			Resolve: time.Hour, Dial: time.Hour, TLS: time.Hour,
			Etcd: time.Hour, Read: time.Hour, Total: time.Hour,
		},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "localhost" {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
	}
}

// began is when the heartbeats are written, and what time it is for those who judge
// them: a machine may be so busy that minutes pass in between.
var began = time.Now()

// fill writes what a well cluster c2 has.
func fill(t *testing.T, s *etcdtest.Server) *etcdtest.Server {
	t.Helper()
	s.Put(t,
		wire.HeartbeatKey, string(wire.EncodeTimestamp(began)),
		"cilium/cluster-config/c2", `{"id":2,"capabilities":{"syncedCanaries":true,"maxConnectedClusters":255}}`,
		"cilium/synced/c2/cilium/state/nodes/v1", "x", "cilium/synced/c2/cilium/state/services/v1", "x",
		"cilium/synced/c2/cilium/state/identities/v1", "x", "cilium/synced/c2/cilium/state/ip/v1", "x",
		"cilium/state/nodes/v1/c2/n1", "{}", "cilium/state/nodes/v1/c2/n2", "{}", "cilium/state/nodes/v1/c9/n1", "{}",
	)
	return s
}

// secured starts a server of the cluster c2 with these certificates.
func secured(t *testing.T, certs *etcdtest.Certs) *etcdtest.Server {
	t.Helper()
	return fill(t, etcdtest.Start(t, etcdtest.WithTLS(certs)))
}

// clientFile writes a client file and returns its path. Lines that end in a colon are left out.
func clientFile(t *testing.T, endpoints string, lines ...string) string {
	t.Helper()
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasSuffix(l, ": ") })
	path := filepath.Join(t.TempDir(), "c2")
	text := "endpoints: [" + endpoints + "]\n" + strings.Join(lines, "\n") + "\n"
	waittest.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// securely is a client file with certificates; none for an empty path.
func securely(t *testing.T, endpoint, ca, cert, key string) string {
	t.Helper()
	return clientFile(t, endpoint, "trusted-ca-file: "+ca, "cert-file: "+cert, "key-file: "+key)
}

// step returns the first step of a name that is in the worst state of them.
func (r *Report) step(name string) Step {
	var worst Step
	for _, s := range r.Steps {
		if s.Name == name && (worst.Name == "" || s.State.rank() > worst.State.rank()) {
			worst = s
		}
	}
	return worst
}

// wrong is the expected result for a configuration with a problem.
type wrong struct {
	path string
	with func(*Options)
	// failed are the steps that must, and no others; skipped are some of those
	// that cannot be done then.
	failed, skipped []string
	cause, remedy   string // parts of those of the first one that fails
	code            codes.Code
}

// reached gathers the codes that tests lead to.
type reached struct {
	mu    sync.Mutex
	codes []codes.Code
}

// add takes the troubles of a report; those of its client file are others'.
func (r *reached) add(of *Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range of.Steps {
		for _, f := range s.Findings {
			if e, _ := codes.Find(string(f.Code)); e.Owner == codes.Troubleshoot {
				r.codes = append(r.codes, f.Code)
			}
		}
	}
}

func checkAll(t *testing.T, cases map[string]wrong, all *reached) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := patient()
			if c.with != nil {
				c.with(&o)
			}
			r := Run(t.Context(), Target{Cluster: "c2", Path: c.path}, o)
			if got := r.In(Failed); !slices.Equal(got, c.failed) || r.State != Failed {
				t.Errorf("%s: failed %q, want %q\n%+v", r.State, got, c.failed, r.Steps)
				return
			}
			all.add(&r)
			s := r.step(c.failed[0])
			if s.Code != c.code {
				t.Errorf("%s, want %s", s.Code, c.code)
			}
			if !strings.Contains(s.Cause, c.cause) || !strings.Contains(s.Remedy, c.remedy) {
				t.Errorf("cause  %s\nwant   %s\nremedy %s\nwant   %s", s.Cause, c.cause, s.Remedy, c.remedy)
			}
			for _, name := range c.skipped {
				if s := r.step(name); s.State != Skipped || !strings.Contains(s.Detail, "not tried") {
					t.Errorf("%+v is not skipped", s)
				}
			}
			whole(t, &r)
		})
	}
}

// whole wants every step to be there, in order, and to say what it must.
func whole(t *testing.T, r *Report) {
	t.Helper()
	at := 0
	order := []string{
		StepFile, StepAuthorities, StepCertificate, StepResolve, StepTCP, StepTLS, StepServerCertificate,
		StepAccepted, StepEtcd, StepRights, StepHeartbeat, StepConfiguration,
	}
	var names []string
	for _, s := range r.Steps {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
		bad := s.State == Failed || s.State == Warning
		if bad != (s.Cause != "") || bad != (s.Remedy != "") || bad != (s.Code != "") || bad != (len(s.Findings) > 0) || !bad && s.Detail == "" {
			t.Errorf("%+v does not say what it must", s)
		}
		at++
	}
	if !slices.Equal(names, order) {
		t.Errorf("%d steps: %q", at, names)
	}
}

// noEtcd speaks TLS up to a version, and then nothing. It offers HTTP/2, or what protocol says (ALPN); empty: nothing.
func noEtcd(t *testing.T, certs *etcdtest.Certs, version uint16, protocol ...string) (addr string) {
	t.Helper()
	if protocol == nil {
		protocol = []string{"h2"}
	}
	protocol = slices.DeleteFunc(protocol, func(p string) bool { return p == "" })
	pair, err := tls.LoadX509KeyPair(certs.ServerCert, certs.ServerKey)
	waittest.Must(t, err)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS10, MaxVersion: version, NextProtos: protocol,
	})
	waittest.Must(t, err)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				_, _ = io.Copy(io.Discard, conn) // until it is closed
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		served.Wait()
	})
	return l.Addr().String()
}

func port(s *etcdtest.Server) string {
	_, p, _ := net.SplitHostPort(s.Addr())
	return p
}
