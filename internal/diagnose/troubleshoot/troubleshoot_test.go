package troubleshoot

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func wrongFiles(t *testing.T) map[string]wrong {
	t.Helper()
	certs, others := etcdtest.NewCerts(t), etcdtest.NewCerts(t)
	cert, key := certs.Client(t, "remote")
	otherCert, _ := others.Client(t, "other")
	const nobody = "'https://127.0.0.1:1'"
	after := []string{StepResolve, StepTCP, StepTLS, StepServerCertificate, StepAccepted, StepEtcd, StepRights, StepHeartbeat, StepConfiguration}
	empty := filepath.Join(t.TempDir(), "empty.crt")
	waittest.Must(t, os.WriteFile(empty, nil, 0o600))
	server := "'" + etcdtest.Start(t, etcdtest.WithTLS(certs)).Endpoint() + "'"
	return map[string]wrong{
		"authorities that are gone, and a server that wants the certificate": {
			path: securely(t, server, "/nonexistent/ca", cert, key), failed: []string{StepAuthorities},
			skipped: []string{StepAccepted, StepEtcd, StepRights},
			code:    codes.FileMissing, cause: "/nonexistent/ca", remedy: "put the file there",
		},
		"missing": {
			path: filepath.Join(t.TempDir(), "c2"), failed: []string{StepFile}, skipped: after,
			code: codes.FileMissing, cause: "no such file or directory", remedy: "put the file there, or correct the path",
		},
		"no file": {path: t.TempDir(), failed: []string{StepFile}, skipped: after, code: codes.ClientFileUnreadable, cause: "is no regular file", remedy: "mesh-agent config check"},
		"no YAML": {path: clientFile(t, "'x"), failed: []string{StepFile}, skipped: after, code: codes.ClientFileNoYAML, cause: "yaml: ", remedy: "correct the named part"},
		"a wrong option": {
			path: clientFile(t, nobody, "trusted-ca: x", "username: u"), failed: []string{StepFile}, skipped: after,
			code: codes.ClientFileOption, cause: "trusted-ca: unknown option; username and password: one is given without the other", remedy: "correct the named part",
		},
		"a wrong option, and certificates that are looked at all the same": {
			path: clientFile(t, nobody, "x: 1", "cert-file: "+otherCert, "key-file: "+key), failed: []string{StepFile, StepCertificate},
			code: codes.ClientFileOption, cause: "x: unknown option", remedy: "correct the named part",
		},
		"no authority": {
			path: securely(t, nobody, empty, cert, key), failed: []string{StepAuthorities, StepTCP}, skipped: []string{StepEtcd},
			code: codes.AuthoritiesUnusable, cause: "no certificate in it", remedy: "Put the authorities that sign the server certificates",
		},
		"a certificate without a key": {
			path: securely(t, nobody, certs.CAFile, cert, ""), failed: []string{StepCertificate, StepTCP}, skipped: []string{StepEtcd},
			code: codes.CertificateAlone, cause: "key-file is needed", remedy: "a certificate and its private key",
		},
		"a key that is gone": {
			path: securely(t, nobody, certs.CAFile, cert, "/nonexistent/key"), failed: []string{StepCertificate, StepTCP}, skipped: []string{StepEtcd},
			code: codes.FileMissing, cause: "/nonexistent/key: no such file", remedy: "put the file there",
		},
		"a key of another certificate": {
			path: securely(t, nobody, certs.CAFile, otherCert, key), failed: []string{StepCertificate, StepTCP}, skipped: []string{StepEtcd},
			code: codes.CertificateOfOtherKey, cause: "private key does not match", remedy: "must be of one pair",
		},
	}
}

func wrongWays(t *testing.T) map[string]wrong {
	t.Helper()
	certs := etcdtest.NewCerts(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	waittest.Must(t, err)
	t.Cleanup(func() { _ = silent.Close() }) // it accepts nothing, the kernel does
	// Long enough for a slow machine to connect in.
	hurry := func(o *Options) { o.Timings.TLS, o.Timings.Etcd = 3*time.Second, 3*time.Second }
	plain := fill(t, etcdtest.Start(t))
	return map[string]wrong{
		"a name that does not resolve": {
			path: securely(t, "'https://c2.mesh.invalid:2379'", certs.CAFile, "", ""), failed: []string{StepResolve}, skipped: []string{StepTCP, StepTLS, StepEtcd, StepRights},
			code: codes.HostUnknown, cause: "lookup c2.mesh.invalid: no such host", remedy: "the name does not resolve; check DNS, or add the name to cilium-host-aliases",
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
			code: codes.ResolverFails, cause: "i/o timeout", remedy: "whether the DNS servers of this machine answer",
		},
		"a name without an address": {
			path: clientFile(t, "'http://c2.mesh.invalid:2379'"), failed: []string{StepResolve},
			with: func(o *Options) { o.Resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, nil } },
			code: codes.ResolverFails, cause: "no address for c2.mesh.invalid", remedy: "/etc/resolv.conf",
		},
		"a refused connection": {
			path: clientFile(t, "'http://127.0.0.1:1'"), failed: []string{StepTCP}, skipped: []string{StepTLS, StepEtcd, StepRights, StepHeartbeat, StepConfiguration},
			code: codes.ConnectionRefused, cause: "127.0.0.1:1: connect: connection refused", remedy: "nothing listens there",
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
			code: codes.ConnectionUnanswered, cause: "deadline exceeded", remedy: "packets get no answer from there",
		},
		"a socket without a server": {
			path: clientFile(t, "'unix:///nonexistent/etcd.sock'", "insecure-transport: true"), failed: []string{StepTCP}, skipped: []string{StepEtcd},
			code: codes.ConnectionRefused, cause: "/nonexistent/etcd.sock", remedy: "nothing listens there",
		},
		"a silent server, with TLS": {
			path: clientFile(t, "'https://"+silent.Addr().String()+"'"), with: hurry, failed: []string{StepTLS}, skipped: []string{StepServerCertificate, StepAccepted, StepEtcd},
			code: codes.ServerSilent, cause: "no answer: nothing within 3s", remedy: "accepts connections and does not answer",
		},
		"a silent server, in plain text": {
			path: clientFile(t, "'http://"+silent.Addr().String()+"'"), with: hurry, failed: []string{StepEtcd}, skipped: []string{StepRights, StepHeartbeat, StepConfiguration},
			code: codes.ServerSilent, cause: "nothing came back", remedy: "accepts connections and does not answer",
		},
		"TLS to a server without": {
			path: clientFile(t, "'https://"+plain.Addr()+"'"), failed: []string{StepTLS}, skipped: []string{StepEtcd},
			code: codes.ServerWithoutTLS, cause: "opening a TLS connection to 127.0.0.1", remedy: "http:// instead of https://",
		},
		"one endpoint of two": {
			path: clientFile(t, "'http://127.0.0.1:1', '"+plain.Endpoint()+"'"), failed: []string{StepTCP},
			code: codes.ConnectionRefused, cause: "connection refused", remedy: "nothing listens there",
		},
	}
}

func wrongCertificates(t *testing.T) map[string]wrong {
	t.Helper()
	certs, others := etcdtest.NewCerts(t), etcdtest.NewCerts(t)
	srv := secured(t, certs)
	ep := "'" + srv.Endpoint() + "'"
	old := etcdtest.NewCerts(t)
	old.SetServer(t, []string{"127.0.0.1"}, pki.Expired())
	expired := secured(t, old)
	named := etcdtest.NewCerts(t, "c2.mesh.cilium.io")
	misnamed := secured(t, named)

	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	old12 := fill(t, etcdtest.Start(t, etcdtest.WithTLS(certs), etcdtest.WithTune(func(c *embed.Config) { c.TlsMaxVersion = "TLS1.2" })))

	cert, key := certs.Client(t, "remote")
	oldCert, oldKey := certs.Client(t, "old", pki.Expired())
	foreignCert, foreignKey := others.Client(t, "remote")
	oldsCert, oldsKey := old.Client(t, "remote")
	namedsCert, namedsKey := named.Client(t, "remote")
	return map[string]wrong{
		"another authority": {
			path: securely(t, ep, others.CAFile, cert, key), failed: []string{StepServerCertificate}, skipped: []string{StepEtcd, StepRights},
			code: codes.ServerAuthorityUnknown, cause: "signed by unknown authority", remedy: "trusted-ca-file does not hold the authority",
		},
		"a name that is not in the server's": {
			path: securely(t, "'"+misnamed.Endpoint()+"'", named.CAFile, namedsCert, namedsKey), failed: []string{StepServerCertificate}, skipped: []string{StepEtcd},
			code: codes.ServerNameOther, cause: "127.0.0.1", remedy: "the server's certificate is for other names",
		},
		"an expired one of the server": {
			path: securely(t, "'"+expired.Endpoint()+"'", old.CAFile, oldsCert, oldsKey), failed: []string{StepServerCertificate}, skipped: []string{StepEtcd},
			code: codes.ServerCertificateInvalid, cause: "it expired on ", remedy: "renew the server's certificate, or set the clock",
		},
		"everything at once": {
			path: securely(t, "'https://localhost:"+port(expired)+"'", others.CAFile, oldsCert, oldsKey), failed: []string{StepServerCertificate}, skipped: []string{StepEtcd},
			code: codes.ServerNameOther, cause: "to match localhost; it expired on ", remedy: "trusted-ca-file does not hold the authority",
		},
		"none of ours": {
			path: securely(t, ep, certs.CAFile, "", ""), failed: []string{StepAccepted}, skipped: []string{StepEtcd},
			code: codes.ClientCertificateDemanded, cause: "the client file names none", remedy: "name a certificate that the server trusts in cert-file",
		},
		"one of ours by another authority": {
			path: securely(t, ep, certs.CAFile, foreignCert, foreignKey), failed: []string{StepAccepted}, skipped: []string{StepEtcd},
			code: codes.ClientCertificateRefused, cause: "closed by the server", remedy: "the server refuses our client certificate",
		},
		"one of ours by another authority, in TLS 1.2": {
			path: securely(t, "'"+old12.Endpoint()+"'", certs.CAFile, foreignCert, foreignKey), failed: []string{StepAccepted}, skipped: []string{StepEtcd},
			code: codes.ClientCertificateRefused, cause: "closed by the server", remedy: "the server refuses our client certificate",
		},
		"silence after the handshake": {
			path: securely(t, "'https://"+noEtcd(t, certs, tls.VersionTLS13)+"'", certs.CAFile, cert, key), failed: []string{StepAccepted}, skipped: []string{StepEtcd},
			with: func(o *Options) { o.Timings.TLS = 2 * time.Second },
			code: codes.ServerSilent, cause: "after the handshake: ", remedy: "is it an etcd, and its port for clients?",
		},
		"a server of long ago": {
			path: securely(t, "'https://"+noEtcd(t, certs, tls.VersionTLS11)+"'", certs.CAFile, cert, key), failed: []string{StepTLS}, skipped: []string{StepAccepted, StepEtcd},
			code: codes.HandshakeFails, cause: "protocol version", remedy: "let it speak TLS 1.2 or later",
		},
		"a proxy without HTTP/2": {
			path: securely(t, "'https://"+noEtcd(t, certs, tls.VersionTLS13, "")+"'", certs.CAFile, cert, key), failed: []string{StepTLS}, skipped: []string{StepAccepted, StepEtcd},
			code: codes.ServerWithoutHTTP2, cause: "does not offer HTTP/2", remedy: "Let the proxy pass TCP through",
		},
		"a web server": {
			path: securely(t, "'https://"+noEtcd(t, certs, tls.VersionTLS13, "http/1.1")+"'", certs.CAFile, cert, key), failed: []string{StepTLS}, skipped: []string{StepAccepted, StepEtcd},
			code: codes.ServerWithoutHTTP2, cause: "no application protocol", remedy: "let it pass TCP through",
		},
		"an expired one of ours": {
			path: securely(t, ep, certs.CAFile, oldCert, oldKey), failed: []string{StepCertificate, StepAccepted}, skipped: []string{StepEtcd},
			code: codes.CertificateExpired, cause: "old, signed by mesh test CA, expired on ", remedy: "renew it",
		},
		"a key of another certificate": {
			path: securely(t, ep, certs.CAFile, cert, foreignKey), failed: []string{StepCertificate}, skipped: []string{StepAccepted, StepEtcd},
			code: codes.CertificateOfOtherKey, cause: "private key does not match", remedy: "must be of one pair",
		},
		"a web server without TLS": {
			path: clientFile(t, "'"+web.URL+"'"), failed: []string{StepTLS}, skipped: []string{StepEtcd},
			code: codes.ServerWithoutHTTP2, cause: "a web server answers there", remedy: "Let the proxy pass TCP through",
		},
		"plain text to a server with TLS": {
			path: clientFile(t, "'http://"+srv.Addr()+"'"), failed: []string{StepEtcd}, skipped: []string{StepRights},
			code: codes.ServerNeedsTLS, cause: "opening a plain text connection", remedy: "https:// instead of http://",
		},
	}
}

func wrongContents(t *testing.T) map[string]wrong {
	t.Helper()
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
	certs := etcdtest.NewCerts(t)
	cert, key := certs.Client(t, "remote")
	certified := secured(t, certs)
	certified.EnableAuth(t, etcdserver.User{Name: "remote", Role: etcdserver.RemoteReader("c2")})
	none, almost := server(nil), server(append(etcdserver.RemoteReader("c2")[:1], etcdserver.RemoteReader("c2")[2:]...))
	return map[string]wrong{
		"a wrong password": {
			path: clientFile(t, "'"+none.Endpoint()+"'", "username: remote", "password: nope"), failed: []string{StepEtcd}, skipped: []string{StepRights},
			code: codes.EtcdUserRefused, cause: "authentication failed", remedy: "check username and password",
		},
		"a password of a user that has none": {
			path:   clientFile(t, "'"+certified.Endpoint()+"'", "trusted-ca-file: "+certs.CAFile, "cert-file: "+cert, "key-file: "+key, "username: remote", "password: nope"),
			failed: []string{StepEtcd}, skipped: []string{StepRights},
			code: codes.EtcdUserRefused, cause: "no password user", remedy: "take username and password out",
		},
		"a role without rights": {
			path: file(none), failed: []string{StepRights}, skipped: []string{StepHeartbeat, StepConfiguration},
			code: codes.RightsMissing, cause: "remote (password) may not read cilium/.heartbeat, cilium/cluster-config/c2, cilium/synced/c2/",
			remedy: "role does not cover this key",
		},
		"a role without the state": {
			path: file(almost), failed: []string{StepRights},
			code: codes.RightsMissing, cause: "may not read cilium/state/nodes/v1/c2/, cilium/state/services/v1/c2/, cilium/state/identities/v1/id/, cilium/state/ip/v1/default/",
			remedy: "role does not cover this key",
		},
		"the etcd of another cluster": {
			path: file(server(etcdserver.RemoteReader("c9"))), failed: []string{StepRights}, skipped: []string{StepConfiguration},
			code: codes.RightsMissing, cause: "may not read cilium/cluster-config/c2, cilium/synced/c2/; this may be the etcd of another cluster than c2", remedy: "does the file have the name of that cluster",
		},
		"no heartbeat": {
			path: file(without(wire.HeartbeatKey)), failed: []string{StepHeartbeat},
			code: codes.HeartbeatAbsent, cause: "there is no heartbeat cilium/.heartbeat", remedy: "does what writes it run: clustermesh-apiserver",
		},
		"an old heartbeat": {
			path: holding(wire.HeartbeatKey, string(wire.EncodeTimestamp(began.Add(-time.Hour-time.Second)))), failed: []string{StepHeartbeat},
			code: codes.HeartbeatOld, cause: "the heartbeat is 1h old", remedy: "does what writes it run: clustermesh-apiserver",
		},
		"a heartbeat of tomorrow": {
			path: holding(wire.HeartbeatKey, string(wire.EncodeTimestamp(began.Add(24*time.Hour)))), failed: []string{StepHeartbeat},
			code: codes.HeartbeatAhead, cause: "a clock is wrong", remedy: "set the clocks",
		},
		"no cluster configuration": {
			path: file(without("cilium/cluster-config/c2")), failed: []string{StepConfiguration},
			code: codes.ConfigurationMissing, cause: "there is no key cilium/cluster-config/c2", remedy: "does the file have the name of that cluster",
		},
		"a cluster configuration that is none": {
			path: holding("cilium/cluster-config/c2", "{"), failed: []string{StepConfiguration},
			code: codes.ConfigurationUnreadable, cause: "cannot be read as a cluster configuration", remedy: "check what writes it",
		},
		"a cluster without an ID": {
			path: holding("cilium/cluster-config/c2", "{}"), failed: []string{StepConfiguration},
			code: codes.ConfigurationInvalid, cause: "reserved", remedy: "must fit in all clusters",
		},
		"a cluster that has not written everything": {
			path: file(without("cilium/synced/c2/cilium/state/ip/v1")), failed: []string{StepConfiguration},
			code: codes.CanaryMissing, cause: "has not written everything yet: there is no cilium/synced/c2/cilium/state/ip/v1", remedy: "does what writes it run: clustermesh-apiserver",
		},
		"our own ID": {
			path: holding("x", "y"), failed: []string{StepConfiguration},
			with: func(o *Options) { o.Own = wire.ClusterInfo{Name: "own", ID: 2, MaxConnectedClusters: 255} },
			code: codes.ClusterIDConflict, cause: `cluster ID 2 is already used by our own cluster "own"`, remedy: "IDs must be unique",
		},
		"another size of the mesh": {
			path: holding("x", "y"), failed: []string{StepConfiguration},
			with: func(o *Options) { o.Own = wire.ClusterInfo{Name: "own", ID: 3, MaxConnectedClusters: 511} },
			code: codes.MaxClustersDiffer, cause: "mismatched MaxConnectedClusters", remedy: "--max-connected-clusters must fit",
		},
	}
}

func TestMain(m *testing.M) { etcdtest.Main(m) }
