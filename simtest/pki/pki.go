// Package pki makes a small certificate authority, and server and client certificates, for tests
// and for simulated clusters. Keys are ECDSA P-256, new for every certificate.
//
// A CA is immutable and may be used by several goroutines.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Pair is a certificate with its private key, both in PEM form.
type Pair struct {
	Cert, Key []byte
}

// CA is a certificate authority.
type CA struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// Option changes a certificate before it is signed.
type Option func(*x509.Certificate)

// Valid sets the dates of validity.
func Valid(notBefore, notAfter time.Time) Option {
	return func(c *x509.Certificate) { c.NotBefore, c.NotAfter = notBefore, notAfter }
}

// Expired makes a certificate that ended an hour ago.
func Expired() Option {
	now := time.Now()
	return Valid(now.Add(-48*time.Hour), now.Add(-time.Hour))
}

// NewCA makes an authority with the given common name, valid for ten years.
func NewCA(commonName string) (*CA, error) {
	tmpl, key, err := template(commonName)
	if err != nil {
		return nil, err
	}
	tmpl.IsCA = true
	tmpl.BasicConstraintsValid = true
	tmpl.KeyUsage |= x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("sign CA %q: %w", commonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse CA %q: %w", commonName, err)
	}
	return &CA{cert: cert, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// PEM returns the authority's certificate, the contents of a trusted-ca-file.
func (ca *CA) PEM() []byte { return bytes.Clone(ca.pem) }

// Pool returns a certificate pool that trusts this authority alone.
func (ca *CA) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(ca.cert)
	return p
}

// Server issues a certificate for the given host names and IP addresses. The
// first of them is also its common name.
func (ca *CA) Server(hosts []string, opts ...Option) (Pair, error) {
	if len(hosts) == 0 {
		return Pair{}, fmt.Errorf("a server certificate needs at least one host")
	}
	return ca.issue(hosts[0], x509.ExtKeyUsageServerAuth, hosts, opts)
}

// Client issues a client certificate. The common name is the name of the etcd user.
func (ca *CA) Client(commonName string, opts ...Option) (Pair, error) {
	return ca.issue(commonName, x509.ExtKeyUsageClientAuth, nil, opts)
}

func (ca *CA) issue(cn string, usage x509.ExtKeyUsage, hosts []string, opts []Option) (Pair, error) {
	tmpl, key, err := template(cn)
	if err != nil {
		return Pair{}, err
	}
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, h)
		}
	}
	for _, o := range opts {
		o(tmpl)
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %q: %w", cn, err)
	}
	kder, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key of %q: %w", cn, err)
	}
	return Pair{Cert: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", kder)}, nil
}

// TLS returns the pair in the form that package tls uses.
func (p Pair) TLS() (tls.Certificate, error) { return tls.X509KeyPair(p.Cert, p.Key) }

// Write writes the pair into dir as name.crt and name.key and returns the paths. Files of those names are replaced
// atomically, each separately, the key first.
func (p Pair) Write(dir, name string) (certFile, keyFile string, err error) {
	certFile = filepath.Join(dir, name+".crt")
	keyFile = filepath.Join(dir, name+".key")
	if err := replace(keyFile, p.Key, 0o600); err != nil {
		return "", "", err
	}
	if err := replace(certFile, p.Cert, 0o644); err != nil {
		return "", "", err
	}
	return certFile, keyFile, nil
}

// Write puts the authority's certificate into dir as name.crt and returns the path.
func (ca *CA) Write(dir, name string) (string, error) {
	path := filepath.Join(dir, name+".crt")
	return path, replace(path, ca.pem, 0o644)
}

func replace(path string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// template is a certificate that is to be signed, with its key.
func template(cn string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key for %q: %w", cn, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("make a serial number for %q: %w", cn, err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: cn},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(10 * 365 * 24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}, key, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
