package pki

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"
	"time"
)

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatal("no PEM block")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return c
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	ca, err := NewCA("test CA")
	must(t, err)
	server, err := ca.Server([]string{"c2.mesh.cilium.io", "127.0.0.1", "::1"})
	must(t, err)
	client, err := ca.Client("remote")
	must(t, err)
	old, err := ca.Client("remote", Expired())
	must(t, err)
	for _, c := range []struct {
		name  string
		cert  []byte
		host  string
		usage x509.ExtKeyUsage
		ok    bool
	}{
		{"server by name", server.Cert, "c2.mesh.cilium.io", x509.ExtKeyUsageServerAuth, true},
		{"server by IPv4 address", server.Cert, "127.0.0.1", x509.ExtKeyUsageServerAuth, true},
		{"server by IPv6 address", server.Cert, "::1", x509.ExtKeyUsageServerAuth, true},
		{"server by another name", server.Cert, "c3.mesh.cilium.io", x509.ExtKeyUsageServerAuth, false},
		{"server used as a client", server.Cert, "", x509.ExtKeyUsageClientAuth, false},
		{"client", client.Cert, "", x509.ExtKeyUsageClientAuth, true},
		{"expired client", old.Cert, "", x509.ExtKeyUsageClientAuth, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(t, c.cert).Verify(x509.VerifyOptions{
				Roots: ca.Pool(), DNSName: c.host, KeyUsages: []x509.ExtKeyUsage{c.usage}, CurrentTime: time.Now(),
			})
			if (err == nil) != c.ok {
				t.Errorf("verify: %v, want ok=%t", err, c.ok)
			}
		})
	}
	if cn := parse(t, client.Cert).Subject.CommonName; cn != "remote" {
		t.Errorf("common name %q, want remote", cn)
	}
	if _, err := ca.Server(nil); err == nil {
		t.Error("a server certificate without hosts was issued")
	}
}

func TestWriteReplaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca, err := NewCA("test CA")
	must(t, err)
	var last Pair
	for range 2 {
		if last, err = ca.Client("remote"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := last.Write(dir, "client"); err != nil {
			t.Fatal(err)
		}
	}
	caFile, err := ca.Write(dir, "ca")
	must(t, err)
	got, err := os.ReadFile(dir + "/client.crt")
	if err != nil || string(got) != string(last.Cert) {
		t.Errorf("client.crt is not the last certificate: %v", err)
	}
	if got, err = os.ReadFile(caFile); err != nil || string(got) != string(ca.PEM()) {
		t.Errorf("%s is not the CA: %v", caFile, err)
	}
	if info, err := os.Stat(dir + "/client.key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("client.key: %v %v, want mode 0600", info, err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("%d files, want 3: %v", len(entries), entries)
	}
	if _, err := last.TLS(); err != nil {
		t.Error(err)
	}
	if _, _, err := last.Write(dir+"/absent", "client"); err == nil {
		t.Error("no error for a directory that does not exist")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
