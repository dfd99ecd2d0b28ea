package clientfile

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/mesh-agent/mesh-agent/pkg/codes"
)

// Config is a parsed client file: the endpoints of an etcd and our credentials for it.
// It is immutable. It never shows the password.
type Config struct {
	// Path is the path of the client file, empty for a configuration made of addresses.
	Path string
	// Endpoints are the URLs in the order of the file, at least one, without
	// user and password, which etcd's client ignores there.
	Endpoints []string
	// HostAliases resolve host names of this configuration.
	HostAliases []HostAlias
	// Hash is the [ContentHash] at the time when the file was read, with the endpoints that did
	// not come from it: configurations with equal hashes make equal sessions.
	Hash [32]byte
	// Fingerprint is the [Fingerprint] at the time when the file was read; without a file, the Hash.
	Fingerprint [32]byte

	fields  fields
	content []byte // of the file
}

// Error has all problems of a client file.
type Error struct {
	Path     string
	Problems []error
}

// Error names the file and every problem, with key and value.
func (e *Error) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return fmt.Sprintf("client file %s: %s", e.Path, strings.Join(texts, "; "))
}

// Unwrap returns the problems.
func (e *Error) Unwrap() []error { return e.Problems }

// problem is one problem of a client file, with the code of its finding. If the cause has a
// more exact finding (for example a missing file), that one counts.
type problem struct {
	code codes.Code
	err  error
}

func problemf(code codes.Code, format string, args ...any) error {
	return &problem{code, fmt.Errorf(format, args...)}
}

func (p *problem) Error() string { return p.err.Error() }

func (p *problem) Unwrap() error { return p.err }

// Code returns the code of the finding, for package hint.
func (p *problem) Code() codes.Code { return p.code }

// Load reads an etcd client file in YAML (spec wire.md §3.2): etcd's own options and Cilium's host
// aliases. Unknown options, values of a wrong type and files that are missing or unusable are
// errors that name the file, the key and the value; they are of type *[Error].
func Load(path string) (*Config, error) {
	c, err := Parse(path)
	if c == nil {
		return nil, err
	}
	var problems []error
	if refused, ok := errors.AsType[*Error](err); ok {
		problems = refused.Problems
	}
	if problems = append(problems, c.fields.checkFiles()...); len(problems) > 0 {
		return nil, &Error{path, problems}
	}
	return c, nil
}

// Parse reads a client file as [Load] does, but not the files that it names: callers check each of
// them separately. The configuration is not for connecting. When the options can be read and
// some are wrong, Parse returns the configuration together with the error, a *[Error].
func Parse(path string) (*Config, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, &Error{path, []error{&problem{codes.ClientFileUnreadable, err}}}
	}
	aliases, err := parseHostAliases(content)
	if err != nil {
		return nil, &Error{path, []error{err}}
	}
	f, problems, readable := parseFields(content)
	if !readable {
		return nil, &Error{path, problems}
	}
	c := &Config{Path: path, Endpoints: f.Endpoints, HostAliases: aliases, Hash: HashContent(content), Fingerprint: FingerprintContent(content), fields: f, content: content}
	if len(problems) > 0 {
		return c, &Error{path, problems}
	}
	return c, nil
}

// New returns a configuration without a file: plain endpoints, no certificate, no user.
func New(endpoints ...string) (*Config, error) { return new(Config).WithEndpoints(endpoints...) }

// WithEndpoints returns a copy with other endpoints.
func (c *Config) WithEndpoints(endpoints ...string) (*Config, error) {
	n := *c
	n.Endpoints = withoutUser(endpoints)
	n.fields.Endpoints = n.Endpoints
	n.Hash, n.Fingerprint = hashWith(c.Hash, n.Endpoints), hashWith(c.Fingerprint, n.Endpoints)
	if problems := n.fields.check(); len(problems) > 0 {
		return nil, fmt.Errorf("kvstore addresses: %w", errors.Join(problems...))
	}
	return &n, nil
}

// Decode reads the options of the file into the configuration of an etcd client (client/v3.Config), as etcd's own
// reader does; it does nothing without a file. The names and types of the options were checked when the file was read.
func (c *Config) Decode(into any) error {
	if err := yaml.Unmarshal(c.content, into); err != nil {
		return &Error{c.Path, []error{&problem{codes.ClientFileOption, err}}}
	}
	return nil
}

// String returns the path and the endpoints, and no secret.
func (c *Config) String() string {
	return strings.TrimSpace(c.Path + " " + strings.Join(c.Endpoints, ","))
}

// LogValue keeps secrets out of logs.
func (c *Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (f *fields) check() []error {
	var problems []error
	if len(f.Endpoints) == 0 {
		problems = append(problems, problemf(codes.ClientFileEndpoints, "endpoints: at least one is needed"))
	}
	for _, ep := range f.Endpoints {
		if err := CheckEndpoint(ep); err != nil {
			problems = append(problems, problemf(codes.ClientFileEndpoints, "endpoints: %q: %w", ep, err))
		}
	}
	if (f.Username == "") != (f.Password == "") {
		problems = append(problems, problemf(codes.ClientFileUser, "username and password: one is given without the other"))
	}
	if f.InsecureTransport {
		return problems // the files below are not read
	}
	return append(problems, f.checkPaths()...)
}

// checkPaths refuses values that are not paths, because errors show the values as paths.
func (f *fields) checkPaths() (problems []error) {
	for _, p := range f.files() {
		if pathOnly(p.path) != p.path {
			problems = append(problems, problemf(codes.ClientFileOption, "%s: its value is no path; if it is the contents of a file, give the path of that file", p.key))
		}
	}
	return problems
}

type namedFile struct{ key, path string }

func (f *fields) files() []namedFile {
	return []namedFile{{"cert-file", f.CertFile}, {"key-file", f.KeyFile}, {"trusted-ca-file", f.TrustedCAFile}}
}

// checkFiles returns the problems of the files that the client file names.
func (f *fields) checkFiles() []error {
	if f.InsecureTransport || len(f.checkPaths()) > 0 {
		return nil
	}
	var problems []error
	if _, err := f.pool(); err != nil {
		problems = append(problems, err)
	}
	return append(problems, f.checkPair()...)
}

// checkPair returns the problems of the client certificate and its key.
func (f *fields) checkPair() []error {
	switch {
	case f.CertFile == "" && f.KeyFile == "":
		return nil
	case f.CertFile == "":
		return []error{problemf(codes.CertificateAlone, "key-file: %q: cert-file is needed with it", f.KeyFile)}
	case f.KeyFile == "":
		return []error{problemf(codes.CertificateAlone, "cert-file: %q: key-file is needed with it", f.CertFile)}
	}
	var problems []error
	for _, p := range f.files()[:2] {
		if _, err := readFile(p.path); err != nil {
			problems = append(problems, problemf(codes.CertificateUnusable, "%s: %w", p.key, err))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	if _, err := f.certificate(); err != nil {
		problems = append(problems, err)
	}
	return problems
}

// certificate loads the current client certificate.
func (f *fields) certificate() (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
	if err != nil && isEncrypted(f.KeyFile) {
		return nil, problemf(codes.CertificateUnusable, "key-file: %q is encrypted, and nobody is there to give a passphrase: write the key without one (openssl pkey -in %s -out %s)",
			f.KeyFile, codes.Quote(f.KeyFile), codes.Quote(f.KeyFile+".plain"))
	}
	if err != nil {
		return nil, problemf(codes.CertificateUnusable, "cert-file %q with key-file %q: %w", f.CertFile, f.KeyFile, err)
	}
	return &cert, nil
}

// pool loads the trusted authorities; nil means those of the system.
func (f *fields) pool() (*x509.CertPool, error) {
	if f.TrustedCAFile == "" {
		return nil, nil
	}
	data, err := readFile(f.TrustedCAFile)
	if err != nil {
		return nil, problemf(codes.AuthoritiesUnusable, "trusted-ca-file: %q: %w", f.TrustedCAFile, err)
	}
	pool := x509.NewCertPool()
	if why := notAuthorities(f.TrustedCAFile, data); why != "" {
		return nil, problemf(codes.AuthoritiesUnusable, "trusted-ca-file: %q: %s", f.TrustedCAFile, why)
	}
	if !pool.AppendCertsFromPEM(data) {
		return nil, problemf(codes.AuthoritiesUnusable, "trusted-ca-file: %q: no certificate in it", f.TrustedCAFile)
	}
	return pool, nil
}

// isEncrypted reports whether a file has a private key that needs a passphrase, in either form of PEM.
func isEncrypted(path string) bool {
	data, err := readFile(path)
	if err != nil {
		return false
	}
	for block := range blocks(data) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return true
		}
	}
	return false
}

// notAuthorities describes a block of the file that is not a certificate of an authority: a private key, or a form that
// etcd's reader does not support; empty if there is none.
func notAuthorities(path string, data []byte) string {
	for block := range blocks(data) {
		switch {
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return "it has a private key; keep only the certificates of authorities in it"
		case block.Type == "TRUSTED CERTIFICATE":
			return fmt.Sprintf("it has a TRUSTED CERTIFICATE, which only OpenSSL reads; convert it (openssl x509 -in %s -out %s)", codes.Quote(path), codes.Quote(path+".pem"))
		}
	}
	return ""
}

// blocks iterates over the PEM blocks of data.
func blocks(data []byte) iter.Seq[*pem.Block] {
	return func(yield func(*pem.Block) bool) {
		for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
			if !yield(block) {
				return
			}
		}
	}
}
