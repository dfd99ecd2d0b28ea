package kvstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	clientyaml "go.etcd.io/etcd/client/v3/yaml"
)

// Config is a parsed client file: where an etcd is and who we are to it. It is
// immutable. It never shows the password.
type Config struct {
	// Path is the file, empty for a configuration made of addresses.
	Path string
	// Endpoints are the URLs in the order of the file, at least one, without
	// user and password, which etcd's client ignores there.
	Endpoints []string
	// HostAliases resolve host names of this configuration.
	HostAliases []HostAlias
	// Hash is that of [ContentHash] when the file was read. Endpoints that did
	// not come from the file have a part in it: configurations of equal hashes
	// make equal sessions.
	Hash [32]byte

	fields fields
	// etcd is what etcd's own reader made of the file. Its TLS configuration is
	// not used, because it has loaded the certificate once and for all.
	etcd clientv3.Config
}

// ConfigError says what is wrong with a client file: everything at once.
type ConfigError struct {
	Path     string
	Problems []error
}

// Error names the file and every problem, with its key and value.
func (e *ConfigError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Error()
	}
	return fmt.Sprintf("client file %s: %s", e.Path, strings.Join(texts, "; "))
}

// Unwrap returns the problems.
func (e *ConfigError) Unwrap() []error { return e.Problems }

// LoadConfig reads an etcd client file in YAML (spec wire.md, 3.2): etcd's own
// options and Cilium's host aliases. Unknown options, values of a wrong type
// and files that are missing or unusable are errors that name the file, the key
// and the value; they are of type *[ConfigError].
func LoadConfig(path string) (*Config, error) {
	content, err := readFile(path)
	if err != nil {
		return nil, &ConfigError{path, []error{err}}
	}
	aliases, err := parseHostAliases(content)
	if err != nil {
		return nil, &ConfigError{path, []error{err}}
	}
	f, problems := parseFields(content)
	if len(problems) > 0 {
		return nil, &ConfigError{path, problems}
	}
	ec, err := clientyaml.NewConfig(path)
	if err != nil {
		return nil, &ConfigError{path, []error{err}}
	}
	return &Config{
		Path: path, Endpoints: f.Endpoints, HostAliases: aliases, Hash: HashContent(content),
		fields: f, etcd: *ec,
	}, nil
}

// NewConfig returns a configuration without a file: plain endpoints, no
// certificate, no user.
func NewConfig(endpoints ...string) (*Config, error) {
	f := fields{Endpoints: withoutUser(endpoints)}
	if problems := f.check(); len(problems) > 0 {
		return nil, fmt.Errorf("kvstore addresses: %w", errors.Join(problems...))
	}
	return &Config{Endpoints: f.Endpoints, Hash: hashWith([32]byte{}, f.Endpoints), fields: f}, nil
}

// WithEndpoints returns a copy with other endpoints.
func (c *Config) WithEndpoints(endpoints ...string) (*Config, error) {
	n := *c
	n.Endpoints = withoutUser(endpoints)
	n.fields.Endpoints = n.Endpoints
	n.Hash = hashWith(c.Hash, n.Endpoints)
	if problems := n.fields.check(); len(problems) > 0 {
		return nil, fmt.Errorf("kvstore addresses: %w", errors.Join(problems...))
	}
	return &n, nil
}

// String returns the path and the endpoints, and no secret.
func (c *Config) String() string {
	return strings.TrimSpace(c.Path + " " + strings.Join(c.Endpoints, ","))
}

// LogValue keeps secrets out of logs.
func (c *Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// check finds what is wrong with the values, files included.
func (f *fields) check() []error {
	var problems []error
	bad := func(key, value string, err error) {
		problems = append(problems, fmt.Errorf("%s: %q: %w", key, value, err))
	}
	if len(f.Endpoints) == 0 {
		problems = append(problems, errors.New("endpoints: at least one is needed"))
	}
	for _, ep := range f.Endpoints {
		if err := checkEndpoint(ep); err != nil {
			bad("endpoints", ep, err)
		}
	}
	if (f.Username == "") != (f.Password == "") {
		problems = append(problems, errors.New("username and password: one is given without the other"))
	}
	readable := !f.InsecureTransport // otherwise these files are not looked at
	for _, p := range []struct{ key, path string }{{"cert-file", f.CertFile}, {"key-file", f.KeyFile}, {"trusted-ca-file", f.TrustedCAFile}} {
		if pathOnly(p.path) != p.path {
			readable = false // what is no path would stand in the error
			problems = append(problems, fmt.Errorf("%s: its value is no path; if it is the contents of a file, give the path of that file", p.key))
		}
	}
	if !readable {
		return problems
	}
	if f.TrustedCAFile != "" {
		if _, err := f.pool(); err != nil {
			bad("trusted-ca-file", f.TrustedCAFile, err)
		}
	}
	switch {
	case f.CertFile == "" && f.KeyFile == "":
	case f.CertFile == "":
		bad("key-file", f.KeyFile, errors.New("cert-file is needed with it"))
	case f.KeyFile == "":
		bad("cert-file", f.CertFile, errors.New("key-file is needed with it"))
	default:
		problems = append(problems, f.checkPair()...)
	}
	return problems
}

func (f *fields) checkPair() []error {
	var problems []error
	for _, p := range []struct{ key, path string }{{"cert-file", f.CertFile}, {"key-file", f.KeyFile}} {
		if _, err := readFile(p.path); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", p.key, err))
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

// certificate loads the client certificate as it is now.
func (f *fields) certificate() (*tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("cert-file %q with key-file %q: %w", f.CertFile, f.KeyFile, err)
	}
	return &cert, nil
}

// pool loads the authorities to trust; nil means those of the system.
func (f *fields) pool() (*x509.CertPool, error) {
	if f.TrustedCAFile == "" {
		return nil, nil
	}
	data, err := readFile(f.TrustedCAFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("no certificate in it")
	}
	return pool, nil
}
