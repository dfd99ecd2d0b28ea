package troubleshoot

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
)

// TestWell: all steps are OK, for all kinds of connections.
func TestWell(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t, "c2.mesh.cilium.io", "127.0.0.1")
	cert, key := certs.Client(t, "remote")
	srv := secured(t, certs)
	srv.EnableAuth(t, etcdserver.User{Name: "remote", Role: etcdserver.RemoteReader("c2")})
	lenient := fill(t, etcdtest.Start(t, etcdtest.WithTLS(certs), etcdtest.WithTune(func(c *embed.Config) {
		c.ClientTLSInfo.ClientCertAuth, c.ClientTLSInfo.TrustedCAFile = false, ""
	})))
	older := fill(t, etcdtest.Start(t, etcdtest.WithTLS(certs), etcdtest.WithTune(func(c *embed.Config) {
		c.TlsMaxVersion = "TLS1.2"
	})))
	plain := fill(t, etcdtest.Start(t))
	tls := []string{"trusted-ca-file: " + certs.CAFile, "cert-file: " + cert, "key-file: " + key}
	for name, c := range map[string]struct {
		path string
		want map[string]string // by step, a part of the detail
	}{
		"TLS, a role, and host aliases": {
			clientFile(t, "'https://c2.mesh.cilium.io:"+port(srv)+"'", append(tls, "cilium-host-aliases: [{hostname: c2.mesh.cilium.io, ips: [127.0.0.1]}]")...),
			map[string]string{
				StepFile: "1 endpoint, as remote (certificate)", StepAuthorities: certs.CAFile + "; the authority mesh test CA is valid until",
				StepCertificate: "remote, signed by mesh test CA, is valid until", StepResolve: "127.0.0.1 (by cilium-host-aliases)",
				StepTCP: "connected to " + srv.Addr(), StepTLS: "TLS 1.3, TLS_", StepServerCertificate: "for c2.mesh.cilium.io, 127.0.0.1, signed by mesh test CA",
				StepAccepted: "the server accepts our certificate", StepEtcd: "version 3.",
				StepRights:    "may read heartbeat, cluster configuration, canaries (4), nodes (2), services (0), identities (0), ips (0)",
				StepHeartbeat: "ago by the clock here", StepConfiguration: `ID 2, {"id":2,"capabilities":{"syncedCanaries":true`,
			},
		},
		"a server that wants no certificate": {
			securely(t, "'"+lenient.Endpoint()+"'", certs.CAFile, "", ""),
			map[string]string{StepCertificate: "names none", StepAccepted: "asks for no certificate", StepFile: "as nobody"},
		},
		"TLS 1.2": {clientFile(t, "'"+older.Endpoint()+"'", tls...), map[string]string{StepTLS: "TLS 1.2", StepAccepted: "accepts our certificate"}},
		"plain text": {
			clientFile(t, "'"+plain.Endpoint()+"'"),
			map[string]string{StepTLS: "plain text", StepAuthorities: "no endpoint uses TLS", StepServerCertificate: "no TLS", StepResolve: "127.0.0.1"},
		},
		"by name": {clientFile(t, "'http://localhost:"+port(plain)+"'"), map[string]string{StepResolve: "127.0.0.1 (by name)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Run(t.Context(), Target{Cluster: "c2", Path: c.path}, patient())
			if r.State != OK || r.Name != "c2" || r.ConfigFile != c.path {
				t.Errorf("%+v", r)
			}
			for name, part := range c.want {
				if s := r.step(name); !strings.Contains(s.Detail, part) {
					t.Errorf("%s: %q, want %q", name, s.Detail, part)
				}
			}
			whole(t, &r)
		})
	}
}

// checkWarnings: it works, and is not good. withoutExports is a server whose cluster announces
// service exports, and whose remote reader may read everything else.
func withoutExports(t *testing.T) *etcdtest.Server {
	t.Helper()
	s := fill(t, etcdtest.Start(t))
	s.Put(t, "cilium/cluster-config/c2", `{"id":2,"capabilities":{"syncedCanaries":true,"maxConnectedClusters":255,"serviceExportsEnabled":true}}`)
	var role []etcdserver.Range
	for _, r := range etcdserver.RemoteReader("c2") {
		if r != etcdserver.Prefix("cilium/state/") {
			role = append(role, r)
		}
	}
	for _, r := range wire.Resources() {
		if r != wire.ServiceExports {
			role = append(role, etcdserver.Prefix(r.Prefix("c2", false)))
		}
	}
	s.EnableAuth(t, etcdserver.User{Name: "remote", Password: "geheim", Role: role})
	return s
}

func checkWarnings(t *testing.T, all *reached) {
	t.Helper()
	certs := etcdtest.NewCerts(t)
	now := time.Now()
	soon := pki.Valid(now.Add(-time.Hour), now.Add(9*24*time.Hour+time.Hour))
	certs.SetServer(t, []string{"127.0.0.1"}, soon)
	srv := secured(t, certs)
	cert, key := certs.Client(t, "remote", soon)
	good, goodKey := certs.Client(t, "good")
	plain := fill(t, etcdtest.Start(t))
	for name, c := range map[string]struct {
		path          string
		steps         string
		cause, remedy string
		code          codes.Code
	}{
		"certificates that end soon": {
			securely(t, "'"+srv.Endpoint()+"'", certs.CAFile, cert, key), "client-certificate server-certificate", ", in 9 days", "renew it", codes.CertificateExpiresSoon,
		},
		"a server's certificate that ends soon": {
			securely(t, "'"+srv.Endpoint()+"'", certs.CAFile, good, goodKey), StepServerCertificate, "it expires on ", "renew the server's certificate", codes.ServerCertificateSoon,
		},
		"a server that is not verified": {
			clientFile(t, "'"+srv.Endpoint()+"'", "insecure-skip-tls-verify: true", "cert-file: "+good, "key-file: "+goodKey), StepServerCertificate,
			"the agent trusts any server that answers at the endpoint", "take it out", codes.ServerNotVerified,
		},
		"an address that does not answer beside one that does": {
			clientFile(t, "'http://localhost:"+port(plain)+"'", "cilium-host-aliases: [{hostname: localhost, ips: ['::1', 127.0.0.1]}]"), StepTCP,
			"[::1]", "", codes.SomeAddressesFail,
		},
		"service exports that may not be read": {
			clientFile(t, "'"+withoutExports(t).Endpoint()+"'", "username: remote", "password: geheim"), StepRights,
			"remote (password) may not read cilium/state/serviceexports/v1/c2/, which an agent does not need", "role does not cover this key", codes.ExportsRightsMissing,
		},
		"an etcd that is full": {
			clientFile(t, "'"+full(t).Endpoint()+"'"), StepEtcd, "NOSPACE", "etcdctl alarm list", codes.EtcdAlarm,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Run(t.Context(), Target{Cluster: "c2", Path: c.path}, patient())
			if got := strings.Join(r.In(Warning), " "); got != c.steps || r.State != Warning {
				t.Fatalf("%s: warnings %q, want %q\n%+v", r.State, got, c.steps, r.Steps)
			}
			all.add(&r)
			if s := r.step(r.In(Warning)[0]); s.Code != c.code || !strings.Contains(s.Cause, c.cause) || !strings.Contains(s.Remedy, c.remedy) {
				t.Errorf("%+v", s)
			}
			whole(t, &r)
		})
	}
}

// TestNoTimeForTCP: deadlines that no connection can meet are failures.
func TestNoTimeForTCP(t *testing.T) {
	t.Parallel()
	r := Run(t.Context(), Target{Cluster: "c2", Path: clientFile(t, "'http://192.0.2.1:1'")}, Options{Dial: new(net.Dialer).DialContext, Timings: Timings{
		Resolve: 1, Dial: 1, TLS: 1, Etcd: 1, Read: 1, Total: time.Minute,
	}})
	if s := r.step(StepTCP); s.State != Failed || s.Code != codes.ConnectionUnanswered {
		t.Errorf("%+v", s)
	}
}

// TestTheLocalKVStore needs no cluster configuration, and may be an address.
func TestTheLocalKVStore(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	srv.Put(t, wire.HeartbeatKey, "no time", "cilium/state/nodes/v1/own/n1", "{}")
	file := clientFile(t, "'http://127.0.0.1:1'")
	for name, target := range map[string]Target{
		"an address":                {Cluster: "own", Local: true, Addresses: []string{srv.Endpoint()}},
		"an address for the file's": {Cluster: "own", Local: true, Path: file, Addresses: []string{srv.Endpoint()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Run(t.Context(), target, patient())
			if r.State != OK || !r.Local || r.ConfigFile != target.Path {
				t.Errorf("%+v", r)
			}
			for name, part := range map[string]string{
				StepRights:    "may read heartbeat, nodes (1), services (0), endpointslices (0), serviceexports (0), identities (0), ips (0)",
				StepHeartbeat: `it exists, but contains no time: "no time"`, StepConfiguration: "the own cluster needs none",
			} {
				if s := r.step(name); !strings.Contains(s.Detail, part) {
					t.Errorf("%+v, want %s", s, part)
				}
			}
			whole(t, &r)
		})
	}
	r := Run(t.Context(), Target{Cluster: "own", Local: true, Path: file, Addresses: []string{"ftp://x"}}, patient())
	if s := r.step(StepFile); s.State != Failed || !strings.Contains(s.Cause, "ftp://x") {
		t.Errorf("%+v", s)
	}
}

// TestNoSecretIsShown for secrets in all places of a client file.
func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	plain := fill(t, etcdtest.Start(t))
	plain.EnableAuth(t, etcdserver.User{Name: "remote", Password: "geheim"})
	pem := "|\n  -----BEGIN PRIVATE KEY-----\n  geheim\n  -----END PRIVATE KEY-----"
	for name, path := range map[string]string{
		"in an endpoint":        clientFile(t, "'http://remote:geheim@"+plain.Addr()+"'", "username: remote", "password: geheim"),
		"a wrong password":      clientFile(t, "'"+plain.Endpoint()+"'", "username: remote", "password: geheimer"),
		"a key for a path":      clientFile(t, "'https://127.0.0.1:1'", "cert-file: /x", "key-file: "+pem),
		"a key for authorities": clientFile(t, "'https://127.0.0.1:1'", "trusted-ca-file: "+pem),
		"a password of digits":  clientFile(t, "'https://127.0.0.1:1'", "username: u", "password: [geheim]"),
		"an unknown option":     clientFile(t, "'http://u:geheim@127.0.0.1:1'", "http://u:geheim@x: 1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Run(t.Context(), Target{Cluster: "c2", Path: path}, patient())
			text, err := json.Marshal(r)
			if err != nil || strings.Contains(string(text), "geheim") || r.State != Failed {
				t.Errorf("%v %s", err, text)
			}
		})
	}
}

// TestTheWorstCase: even if any part hangs, and however long each step may take, there is a report in time.
func TestTheWorstCase(t *testing.T) {
	t.Parallel()
	if d := DefaultTimings(); d.Total+2*closing >= 15*time.Second || max(d.Resolve, d.Dial, d.TLS, d.Etcd, d.Read) >= d.Total {
		t.Errorf("%+v", d)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // it accepts nothing, the kernel does
	for name, c := range map[string]struct {
		path string
		with func(*Options)
	}{
		StepResolve: {clientFile(t, "'http://c2:1'"), func(o *Options) {
			o.Resolve = func(ctx context.Context, _ string) ([]netip.Addr, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}},
		StepTCP: {clientFile(t, "'http://192.0.2.1:1'"), func(o *Options) {
			o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}},
		StepTLS:  {clientFile(t, "'https://"+silent.Addr().String()+"'"), func(*Options) {}},
		StepEtcd: {clientFile(t, "'http://"+silent.Addr().String()+"'"), func(*Options) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := patient()
			c.with(&o)
			// Twice as long each time: a slow machine may need all of it for the steps before.
			for o.Timings.Total = 300 * time.Millisecond; o.Timings.Total < o.Timings.Etcd/2; o.Timings.Total *= 2 {
				r := Run(t.Context(), Target{Cluster: "c2", Path: c.path}, o)
				whole(t, &r)
				if got := r.In(Failed); len(got) == 1 && got[0] == name {
					return
				}
			}
			t.Error("another step failed, or none in time")
		})
	}
}

// TestAllAreInOrder, also when there are more than are checked at once.
func TestAllAreInOrder(t *testing.T) {
	t.Parallel()
	var targets []Target
	for i := range 2*atOnce + 1 {
		targets = append(targets, Target{Cluster: "c", Path: filepath.Join("/nonexistent", string(rune('0'+i)))})
	}
	for i, r := range All(t.Context(), targets, patient()) {
		if r.State != Failed || r.ConfigFile != targets[i].Path {
			t.Errorf("%d: %+v", i, r)
		}
	}
}
