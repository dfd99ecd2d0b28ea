package troubleshoot

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/etcdserver"
	"github.com/mesh-agent/mesh-agent/internal/etcdtest"
	"github.com/mesh-agent/mesh-agent/internal/pki"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// patient has deadlines that a busy machine meets.
func patient() Options {
	return Options{
		Timings: Timings{
			Resolve: 20 * time.Second, Dial: 20 * time.Second, TLS: 20 * time.Second,
			Etcd: 20 * time.Second, Read: 20 * time.Second, Total: time.Minute,
		},
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "localhost" {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		},
	}
}

// fill writes what a well cluster c2 has.
func fill(t *testing.T, s *etcdtest.Server) *etcdtest.Server {
	t.Helper()
	s.Put(t,
		wire.HeartbeatKey, string(wire.EncodeTimestamp(time.Now())),
		"cilium/cluster-config/c2", `{"id":2,"capabilities":{"syncedCanaries":true,"maxConnectedClusters":255}}`,
		"cilium/synced/c2/cilium/state/nodes/v1", "x",
		"cilium/state/nodes/v1/c2/n1", "{}", "cilium/state/nodes/v1/c2/n2", "{}", "cilium/state/nodes/v1/c9/n1", "{}",
	)
	return s
}

// secured starts a server of the cluster c2 with these certificates.
func secured(t *testing.T, certs *etcdtest.Certs) *etcdtest.Server {
	t.Helper()
	return fill(t, etcdtest.Start(t, etcdtest.WithTLS(certs)))
}

// clientFile writes a client file and returns its path. Lines that end in a
// colon are left out.
func clientFile(t *testing.T, endpoints string, lines ...string) string {
	t.Helper()
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasSuffix(l, ": ") })
	path := filepath.Join(t.TempDir(), "c2")
	text := "endpoints: [" + endpoints + "]\n" + strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
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

// wrong is what is expected of a configuration with something wrong.
type wrong struct {
	path string
	with func(*Options)
	// failed are the steps that must, and no others; skipped are some of those
	// that cannot be done then.
	failed, skipped []string
	cause, remedy   string // parts of those of the first one that fails
}

func checkAll(t *testing.T, cases map[string]wrong) {
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
			s := r.step(c.failed[0])
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
		if bad != (s.Cause != "") || bad != (s.Remedy != "") || !bad && s.Detail == "" {
			t.Errorf("%+v does not say what it must", s)
		}
		at++
	}
	if !slices.Equal(names, order) {
		t.Errorf("%d steps: %q", at, names)
	}
}

func TestWhatIsWrongWithTheFile(t *testing.T) {
	t.Parallel()
	certs, others := etcdtest.NewCerts(t), etcdtest.NewCerts(t)
	cert, key := certs.Client(t, "remote")
	otherCert, _ := others.Client(t, "other")
	const nobody = "'https://127.0.0.1:1'"
	after := []string{StepResolve, StepTCP, StepTLS, StepServerCertificate, StepAccepted, StepEtcd, StepRights, StepHeartbeat, StepConfiguration}
	empty := filepath.Join(t.TempDir(), "empty.crt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	checkAll(t, map[string]wrong{
		"missing": {
			path: filepath.Join(t.TempDir(), "c2"), failed: []string{StepFile}, skipped: after,
			cause: "no such file or directory", remedy: "put the file there, or correct the path",
		},
		"no file": {path: t.TempDir(), failed: []string{StepFile}, skipped: after, cause: "is no regular file", remedy: "mesh-agent config check"},
		"no YAML": {path: clientFile(t, "'x"), failed: []string{StepFile}, skipped: after, cause: "yaml: ", remedy: "correct what is named"},
		"a wrong option": {
			path: clientFile(t, nobody, "trusted-ca: x", "username: u"), failed: []string{StepFile}, skipped: after,
			cause: "trusted-ca: unknown option; username and password: one is given without the other", remedy: "correct what is named",
		},
		"a wrong option, and certificates that are looked at all the same": {
			path: clientFile(t, nobody, "x: 1", "cert-file: "+otherCert, "key-file: "+key), failed: []string{StepFile, StepCertificate},
			cause: "x: unknown option", remedy: "correct what is named",
		},
		"no authority": {
			path: securely(t, nobody, empty, cert, key), failed: []string{StepAuthorities, StepTCP}, skipped: []string{StepEtcd},
			cause: "no certificate in it", remedy: "must hold, in PEM form, the authorities",
		},
		"a certificate without a key": {
			path: securely(t, nobody, certs.CAFile, cert, ""), failed: []string{StepCertificate, StepTCP}, skipped: []string{StepEtcd},
			cause: "key-file is needed", remedy: "a certificate and its private key",
		},
		"a key that is gone": {
			path: securely(t, nobody, certs.CAFile, cert, "/nonexistent/key"), failed: []string{StepCertificate, StepTCP}, skipped: []string{StepEtcd},
			cause: "/nonexistent/key: no such file", remedy: "put the file there",
		},
		"a key of another certificate": {
			path: securely(t, nobody, certs.CAFile, otherCert, key), failed: []string{StepCertificate, StepTCP}, skipped: []string{StepEtcd},
			cause: "private key does not match", remedy: "must be of one pair",
		},
	})
}

func TestWhatIsWrongOnTheWay(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // it accepts nothing, the kernel does
	hurry := func(o *Options) { o.Timings.TLS, o.Timings.Etcd = 300*time.Millisecond, 500*time.Millisecond }
	plain := fill(t, etcdtest.Start(t))
	checkAll(t, map[string]wrong{
		"a name that does not resolve": {
			path: securely(t, "'https://c2.mesh.invalid:2379'", certs.CAFile, "", ""), failed: []string{StepResolve}, skipped: []string{StepTCP, StepTLS, StepEtcd, StepRights},
			cause: "lookup c2.mesh.invalid: no such host", remedy: "the name does not resolve; check DNS, or add the name to cilium-host-aliases",
		},
		"a resolver that says nothing": {
			path: clientFile(t, "'http://c2.mesh.invalid:2379'"), failed: []string{StepResolve},
			with: func(o *Options) {
				o.Timings.Resolve = 50 * time.Millisecond
				o.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
					<-ctx.Done()
					return nil, &net.DNSError{Err: "i/o timeout", Name: "c2.mesh.invalid", IsTimeout: true}
				}
			},
			cause: "i/o timeout", remedy: "whether the DNS servers of this machine answer",
		},
		"a name without an address": {
			path: clientFile(t, "'http://c2.mesh.invalid:2379'"), failed: []string{StepResolve},
			with:  func(o *Options) { o.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, nil } },
			cause: "no address for c2.mesh.invalid", remedy: "/etc/resolv.conf",
		},
		"a refused connection": {
			path: clientFile(t, "'http://127.0.0.1:1'"), failed: []string{StepTCP}, skipped: []string{StepTLS, StepEtcd, StepRights, StepHeartbeat, StepConfiguration},
			cause: "127.0.0.1:1: connect: connection refused", remedy: "nothing listens there",
		},
		"packets that nobody answers": {
			path: clientFile(t, "'http://192.0.2.1:2379'"), failed: []string{StepTCP}, skipped: []string{StepEtcd},
			with: func(o *Options) {
				o.Timings.Dial = 50 * time.Millisecond
				o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
					<-ctx.Done()
					return nil, &net.OpError{Op: "dial", Net: network, Err: context.DeadlineExceeded}
				}
			},
			cause: "deadline exceeded", remedy: "packets get no answer from there",
		},
		"a socket without a server": {
			path: clientFile(t, "'unix:///nonexistent/etcd.sock'", "insecure-transport: true"), failed: []string{StepTCP}, skipped: []string{StepEtcd},
			cause: "/nonexistent/etcd.sock", remedy: "nothing listens there",
		},
		"a silent server, with TLS": {
			path: clientFile(t, "'https://"+silent.Addr().String()+"'"), with: hurry, failed: []string{StepTLS}, skipped: []string{StepServerCertificate, StepAccepted, StepEtcd},
			cause: "no answer: nothing within 300ms", remedy: "accepts connections there and says nothing",
		},
		"a silent server, in plain text": {
			path: clientFile(t, "'http://"+silent.Addr().String()+"'"), with: hurry, failed: []string{StepEtcd}, skipped: []string{StepRights, StepHeartbeat, StepConfiguration},
			cause: "nothing came back", remedy: "accepts connections there and says nothing",
		},
		"TLS to a server without": {
			path: clientFile(t, "'https://"+plain.Addr()+"'"), failed: []string{StepTLS}, skipped: []string{StepEtcd},
			cause: "opening a TLS connection to 127.0.0.1", remedy: "http:// instead of https://",
		},
		"one endpoint of two": {
			path: clientFile(t, "'http://127.0.0.1:1', '"+plain.Endpoint()+"'"), failed: []string{StepTCP},
			cause: "connection refused", remedy: "nothing listens there",
		},
	})
}

func TestWhatIsWrongWithCertificates(t *testing.T) {
	t.Parallel()
	certs, others := etcdtest.NewCerts(t), etcdtest.NewCerts(t)
	srv := secured(t, certs)
	ep := "'" + srv.Endpoint() + "'"
	old := etcdtest.NewCerts(t)
	old.SetServer(t, []string{"127.0.0.1"}, pki.Expired())
	expired := secured(t, old)
	named := etcdtest.NewCerts(t, "c2.mesh.cilium.io")
	misnamed := secured(t, named)

	cert, key := certs.Client(t, "remote")
	oldCert, oldKey := certs.Client(t, "old", pki.Expired())
	foreignCert, foreignKey := others.Client(t, "remote")
	oldsCert, oldsKey := old.Client(t, "remote")
	namedsCert, namedsKey := named.Client(t, "remote")
	checkAll(t, map[string]wrong{
		"another authority": {
			path: securely(t, ep, others.CAFile, cert, key), failed: []string{StepServerCertificate}, skipped: []string{StepEtcd, StepRights},
			cause: "signed by unknown authority", remedy: "trusted-ca-file does not hold the authority",
		},
		"a name that is not in the server's": {
			path: securely(t, "'"+misnamed.Endpoint()+"'", named.CAFile, namedsCert, namedsKey), failed: []string{StepServerCertificate}, skipped: []string{StepEtcd},
			cause: "127.0.0.1", remedy: "the server's certificate is for other names",
		},
		"an expired one of the server": {
			path: securely(t, "'"+expired.Endpoint()+"'", old.CAFile, oldsCert, oldsKey), failed: []string{StepServerCertificate}, skipped: []string{StepEtcd},
			cause: "it expired on ", remedy: "renew the server's certificate, or set the clock",
		},
		"everything at once": {
			path: securely(t, "'https://localhost:"+port(expired)+"'", others.CAFile, oldsCert, oldsKey), failed: []string{StepServerCertificate}, skipped: []string{StepEtcd},
			cause: "to match localhost; it expired on ", remedy: "trusted-ca-file does not hold the authority",
		},
		"none of ours": {
			path: securely(t, ep, certs.CAFile, "", ""), failed: []string{StepAccepted}, skipped: []string{StepEtcd},
			cause: "the client file names none", remedy: "name a certificate that the server trusts in cert-file",
		},
		"one of ours by another authority": {
			path: securely(t, ep, certs.CAFile, foreignCert, foreignKey), failed: []string{StepAccepted}, skipped: []string{StepEtcd},
			cause: "closed by the server", remedy: "the server refuses our client certificate",
		},
		"an expired one of ours": {
			path: securely(t, ep, certs.CAFile, oldCert, oldKey), failed: []string{StepCertificate, StepAccepted}, skipped: []string{StepEtcd},
			cause: "old, signed by mesh test CA, expired on ", remedy: "renew it",
		},
		"a key of another certificate": {
			path: securely(t, ep, certs.CAFile, cert, foreignKey), failed: []string{StepCertificate}, skipped: []string{StepAccepted, StepEtcd},
			cause: "private key does not match", remedy: "must be of one pair",
		},
		"plain text to a server with TLS": {
			path: clientFile(t, "'http://"+srv.Addr()+"'"), failed: []string{StepEtcd}, skipped: []string{StepRights},
			cause: "opening a plain text connection", remedy: "https:// instead of http://",
		},
	})
}

func port(s *etcdtest.Server) string {
	_, p, _ := net.SplitHostPort(s.Addr())
	return p
}

func TestWhatIsWrongInEtcd(t *testing.T) {
	t.Parallel()
	user := func(role []etcdserver.Range) etcdserver.User {
		return etcdserver.User{Name: "remote", Password: "geheim", Role: role}
	}
	server := func(role []etcdserver.Range) *etcdtest.Server {
		s := fill(t, etcdtest.Start(t))
		s.EnableAuth(t, user(role))
		return s
	}
	file := func(s *etcdtest.Server) string {
		return clientFile(t, "'"+s.Endpoint()+"'", "username: remote", "password: geheim")
	}
	without := func(key string) *etcdtest.Server {
		s := fill(t, etcdtest.Start(t))
		s.Delete(t, key)
		return s
	}
	holding := func(key, value string) string {
		s := fill(t, etcdtest.Start(t))
		s.Put(t, key, value)
		return clientFile(t, "'"+s.Endpoint()+"'")
	}
	none, almost := server(nil), server(append(etcdserver.RemoteReader("c2")[:1], etcdserver.RemoteReader("c2")[2:]...))
	checkAll(t, map[string]wrong{
		"a wrong password": {
			path: clientFile(t, "'"+none.Endpoint()+"'", "username: remote", "password: nope"), failed: []string{StepEtcd}, skipped: []string{StepRights},
			cause: "authentication failed", remedy: "check username and password",
		},
		"a role without rights": {
			path: file(none), failed: []string{StepRights}, skipped: []string{StepHeartbeat, StepConfiguration},
			cause:  "remote (password) may not read cilium/.heartbeat, cilium/cluster-config/c2, cilium/synced/c2/",
			remedy: "role does not cover this key",
		},
		"a role without the state": {
			path: file(almost), failed: []string{StepRights},
			cause:  "may not read cilium/state/nodes/v1/c2/, cilium/state/services/v1/c2/, cilium/state/identities/v1/id/, cilium/state/ip/v1/default/",
			remedy: "role does not cover this key",
		},
		"the etcd of another cluster": {
			path: file(server(etcdserver.RemoteReader("c9"))), failed: []string{StepRights}, skipped: []string{StepConfiguration},
			cause: "may not read cilium/cluster-config/c2, cilium/synced/c2/; this may be the etcd of another cluster than c2", remedy: "does the file have the name of that cluster",
		},
		"no heartbeat": {
			path: file(without(wire.HeartbeatKey)), failed: []string{StepHeartbeat},
			cause: "there is no heartbeat cilium/.heartbeat", remedy: "does its clustermesh-apiserver run?",
		},
		"an old heartbeat": {
			path: holding(wire.HeartbeatKey, string(wire.EncodeTimestamp(time.Now().Add(-time.Hour-time.Second)))), failed: []string{StepHeartbeat},
			cause: "the heartbeat is 1h old", remedy: "does its clustermesh-apiserver run?",
		},
		"a heartbeat of tomorrow": {
			path: holding(wire.HeartbeatKey, string(wire.EncodeTimestamp(time.Now().Add(24*time.Hour)))), failed: []string{StepHeartbeat},
			cause: "a clock is wrong", remedy: "set the clocks",
		},
		"no cluster configuration": {
			path: file(without("cilium/cluster-config/c2")), failed: []string{StepConfiguration},
			cause: "there is no key cilium/cluster-config/c2", remedy: "does the file have the name of that cluster",
		},
		"a cluster configuration that is none": {
			path: holding("cilium/cluster-config/c2", "{"), failed: []string{StepConfiguration},
			cause: "cannot be read as a cluster configuration", remedy: "check what writes it",
		},
		"a cluster without an ID": {
			path: holding("cilium/cluster-config/c2", "{}"), failed: []string{StepConfiguration},
			cause: "reserved", remedy: "must fit in all clusters",
		},
		"our own ID": {
			path: holding("x", "y"), failed: []string{StepConfiguration},
			with:  func(o *Options) { o.Own = wire.ClusterInfo{Name: "own", ID: 2, MaxConnectedClusters: 255} },
			cause: `cluster ID 2 is already used by our own cluster "own"`, remedy: "IDs must be unique",
		},
		"another size of the mesh": {
			path: holding("x", "y"), failed: []string{StepConfiguration},
			with:  func(o *Options) { o.Own = wire.ClusterInfo{Name: "own", ID: 3, MaxConnectedClusters: 511} },
			cause: "mismatched MaxConnectedClusters", remedy: "--max-connected-clusters must fit",
		},
	})
}
