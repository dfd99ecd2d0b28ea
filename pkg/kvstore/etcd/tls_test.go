package etcd

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// clientFile writes a client file with the given certificates.
func clientFile(t *testing.T, endpoint, ca, cert, key string, extra ...string) *clientfile.Config {
	t.Helper()
	lines := append([]string{"endpoints: [\"" + endpoint + "\"]"}, extra...)
	for _, l := range []struct{ key, value string }{{"trusted-ca-file", ca}, {"cert-file", cert}, {"key-file", key}} {
		if l.value != "" {
			lines = append(lines, l.key+": "+l.value)
		}
	}
	return configOf(t, writeFile(t, "cluster2", strings.Join(lines, "\n")+"\n"))
}

func TestTLSErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	certs, others := etcdtest.NewCerts(t), etcdtest.NewCerts(t)
	srv := etcdtest.Start(t, etcdtest.WithTLS(certs))
	plain := etcdtest.Start(t)
	expiring := etcdtest.NewCerts(t)
	expiring.SetServer(t, []string{"127.0.0.1"}, pki.Expired())
	expired := etcdtest.Start(t, etcdtest.WithTLS(expiring))
	named := etcdtest.NewCerts(t, "c2.mesh.cilium.io")
	misnamed := etcdtest.Start(t, etcdtest.WithTLS(named))

	cert, key := certs.Client(t, "remote")
	oldCert, oldKey := certs.Client(t, "old", pki.Expired())
	otherCert, otherKey := others.Client(t, "remote")
	namedCert, namedKey := named.Client(t, "remote")
	for _, c := range []struct {
		name string
		cfg  *clientfile.Config
		want []string
	}{
		{"an authority that did not sign", clientFile(t, srv.Endpoint(), others.CAFile, cert, key), []string{"unknown authority", "trusted-ca-file does not hold"}},
		{"no authority, so that of the system", clientFile(t, srv.Endpoint(), "", cert, key), []string{"unknown authority", "trusted-ca-file"}},
		{"an expired server certificate", clientFile(t, expired.Endpoint(), expiring.CAFile, "", ""), []string{"expired", "renew the server's certificate"}},
		{"a server certificate for another name", clientFile(t, misnamed.Endpoint(), named.CAFile, namedCert, namedKey), []string{"127.0.0.1", "doesn't contain any IP SANs", "is for other names"}},
		{"no client certificate", clientFile(t, srv.Endpoint(), certs.CAFile, "", ""), []string{"closed by the server", "refuses our client certificate"}},
		{"a client certificate of another authority", clientFile(t, srv.Endpoint(), certs.CAFile, otherCert, otherKey), []string{"closed by the server", "refuses our client certificate"}},
		{"an expired client certificate", clientFile(t, srv.Endpoint(), certs.CAFile, oldCert, oldKey), []string{"closed by the server", "refuses our client certificate"}},
		{"https to a server without TLS", clientFile(t, plain.Endpoint()[:4]+"s"+plain.Endpoint()[4:], certs.CAFile, cert, key), []string{"http:// instead of https://"}},
		{"http to a server with TLS", clientFile(t, "http"+srv.Endpoint()[5:], "", "", ""), []string{"https:// instead of http://"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			kvtest.Contains(t, refused(t, c.cfg, DefaultOptions()), c.want...)
		})
	}
}

// TestWhatTheNextConnectionNeeds: the status of a session has the certificates with which its server was accepted, and
// CheckNext finds the problems of the files that a new connection would read.
func TestWhatTheNextConnectionNeeds(t *testing.T) {
	t.Parallel()
	certs, others := etcdtest.NewCerts(t), etcdtest.NewCerts(t)
	month := time.Now().Add(30 * 24 * time.Hour).UTC().Truncate(time.Second)
	certs.SetServer(t, []string{"127.0.0.1"}, pki.Valid(time.Now().Add(-time.Hour), month))
	srv := etcdtest.Start(t, etcdtest.WithTLS(certs))
	cert, key := certs.Client(t, "remote")
	cfg := clientFile(t, srv.Endpoint(), certs.CAFile, cert, key)
	began := time.Now()
	accepted := connect(t, cfg, DefaultOptions()).Status().Certificates
	if !accepted.Server().Equal(month) || !accepted.Authority().After(month) || accepted.At.Before(began) {
		t.Errorf("until %s and %s, at %s", accepted.Server(), accepted.Authority(), accepted.At)
	}
	check := func(want string) {
		t.Helper()
		// The time does not matter: the server may have another certificate by then.
		for _, now := range []time.Time{time.Now(), month.Add(time.Hour)} {
			if err := cfg.CheckNext(accepted.Chain, now); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("at %s: %v, want %q", now, err, want)
			}
		}
	}
	swap := func(file, by string) (undo func()) {
		t.Helper()
		was, err := os.ReadFile(file)
		must(t, err)
		is, err := os.ReadFile(by)
		must(t, err)
		must(t, os.WriteFile(file, is, 0o600))
		return func() { must(t, os.WriteFile(file, was, 0o600)) }
	}
	check("")
	_, otherKey := others.Client(t, "remote")
	undo := swap(key, otherKey)
	check("private key does not match")
	undo()
	undo = swap(certs.CAFile, others.CAFile)
	check("unknown authority")
	undo()
	check("")
	must(t, os.Remove(cert))
	check("no such file")
	certs.Client(t, "remote", pki.Valid(time.Now().Add(24*365*time.Hour), time.Now().Add(24*366*time.Hour)))
	check("is not valid before")
}

func TestTLSConnects(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t)
	srv := etcdtest.Start(t, etcdtest.WithTLS(certs), etcdtest.WithTune(func(c *embed.Config) {
		c.ClientTLSInfo.ClientCertAuth, c.ClientTLSInfo.TrustedCAFile = false, ""
	}))
	cert, key := certs.Client(t, "remote")
	for name, cfg := range map[string]*clientfile.Config{
		"with a client certificate":       clientFile(t, srv.Endpoint(), certs.CAFile, cert, key),
		"without one":                     clientFile(t, srv.Endpoint(), certs.CAFile, "", ""),
		"without looking at the server's": clientFile(t, srv.Endpoint(), "", "", "", "insecure-skip-tls-verify: true"),
		"without a scheme":                clientFile(t, srv.Addr(), certs.CAFile, cert, key),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := connect(t, cfg, DefaultOptions())
			if s := e.Status(); s.EtcdClusterID != srv.ClusterID() {
				t.Errorf("cluster ID %x, want %x", s.EtcdClusterID, srv.ClusterID())
			}
		})
	}
	plain := etcdtest.Start(t)
	connect(t, clientFile(t, plain.Addr(), "", "", "", "insecure-transport: true"), DefaultOptions())
}

// TestRotatedCertificate replaces the client certificate: the open connection continues,
// and the next handshake of the same session presents the new certificate.
func TestRotatedCertificate(t *testing.T) {
	t.Parallel()
	certs := etcdtest.NewCerts(t)
	srv := etcdtest.Start(t, etcdtest.WithTLS(certs))
	cert, key := certs.Client(t, "remote")
	// The test cuts connections to force handshakes.
	var conns cutter
	o := quick()
	o.Dial = conns.dial
	e := connect(t, clientFile(t, srv.Endpoint(), certs.CAFile, cert, key), o)
	st := watch(t, e, "p/", e.Status().Head)
	certs.Client(t, "remote") // into the same files
	srv.Put(t, "p/k", "v")
	if b, err := st.Recv(); err != nil || len(b.Events) != 1 {
		t.Errorf("what worked was disturbed by the rotation: %v %v", b, err)
	}
	conns.cut()
	waittest.Until(t, "a read over a new connection", func() bool { return second(e.Head(waittest.Context(t))) == nil })
	if conns.count() < 2 {
		t.Errorf("%d connections, want another one", conns.count())
	}

	// The server refuses an expired certificate, which proves that the new files are used.
	certs.Client(t, "remote", pki.Expired())
	conns.cut()
	waittest.Until(t, "a refusal of the expired certificate", func() bool {
		_, err := e.Head(waittest.Context(t))
		return err != nil && strings.Contains(err.Error(), "tls:")
	})
	certs.Client(t, "remote")
	waittest.Until(t, "a read with a renewed certificate", func() bool { return second(e.Head(waittest.Context(t))) == nil })
}

func TestSilentHandshake(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() }) // only the kernel accepts connections
	o := DefaultOptions()
	o.Timings.Dial = 300 * time.Millisecond
	for scheme, want := range map[string]string{"https": "no answer", "http": "nothing came back"} {
		kvtest.Contains(t, refused(t, addresses(t, scheme+"://"+l.Addr().String()), o), want, l.Addr().String(), "opening a")
	}
	o.Timings.Dial, o.Timings.Connect = 5*time.Second, 300*time.Millisecond
	kvtest.Contains(t, refused(t, addresses(t, "https://"+l.Addr().String()), o), "no answer within 300ms", "still opening a TLS connection")
}
