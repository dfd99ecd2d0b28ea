package sim

import (
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// clientFiles is what an agent needs to read a cluster, in the form in which
// Cilium keeps it (spec wire.md §3.2): a configuration named as the cluster and
// the PEM files that it names, in one directory. Each cluster has its own copy of
// the authority, so that several simulators may share a directory; those that are
// cached in one etcd share one, so that their configurations are equal.
type clientFiles struct {
	name     string
	owner    string // cluster after which the PEM files are named
	endpoint string
	// ca, cert and key are PEM; empty without TLS.
	ca, cert, key []byte
}

// clientFiles returns what the agent needs to read this cluster.
func (r *Running) clientFiles() clientFiles {
	e := r.etcd
	f := clientFiles{name: r.c.Name, owner: e.name, endpoint: e.endpoint()}
	if !e.o.Plain {
		f.ca, f.cert, f.key = e.o.CA.PEM(), e.reader.Cert, e.reader.Key
	}
	return f
}

// WriteClientFiles writes what the agent needs to read this cluster into an
// existing directory: the certificates first, then the configuration, each
// atomically. Files of the same names are replaced; nobody removes them.
func (r *Running) WriteClientFiles(dir string) error {
	d, err := openDirectory(dir, nil)
	if err != nil {
		return err
	}
	return r.clientFiles().write(d)
}

// clientConfig is the configuration file, in the words of etcd's own client.
type clientConfig struct {
	Endpoints     []string `json:"endpoints"`
	TrustedCAFile string   `json:"trusted-ca-file,omitempty"`
	CertFile      string   `json:"cert-file,omitempty"`
	KeyFile       string   `json:"key-file,omitempty"`
}

func caFile(cluster string) string   { return cluster + ".etcd-client-ca.crt" }
func certFile(cluster string) string { return cluster + ".etcd-client.crt" }
func keyFile(cluster string) string  { return cluster + ".etcd-client.key" }

// clientFileNames are the names of all files of the clusters.
func clientFileNames(clusters []string) []string {
	var names []string
	for _, c := range clusters {
		names = append(names, c, caFile(c), certFile(c), keyFile(c))
	}
	return names
}

// write adds the files to d, the configuration last, so that whoever watches
// the directory finds everything that it names.
func (f clientFiles) write(d *directory) (err error) {
	temp, err := os.MkdirTemp(d.path, ".mesh-sim-") // a directory is never taken for a configuration
	if err != nil {
		return fmt.Errorf("client files of %s: %w", f.name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	cfg := clientConfig{Endpoints: []string{f.endpoint}}
	if len(f.key) > 0 {
		err := errors.Join(
			d.place(temp, caFile(f.owner), f.ca, 0o644),
			d.place(temp, keyFile(f.owner), f.key, 0o600),
			d.place(temp, certFile(f.owner), f.cert, 0o644))
		if err != nil {
			return err
		}
		cfg.TrustedCAFile, cfg.CertFile, cfg.KeyFile = d.file(caFile(f.owner)), d.file(certFile(f.owner)), d.file(keyFile(f.owner))
	}
	text, err := yaml.Marshal(cfg)
	if err != nil {
		return fmt.Errorf("client configuration of %s: %w", f.name, err)
	}
	return d.place(temp, f.name, text, 0o600)
}
