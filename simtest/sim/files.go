package sim

import (
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// WriteClientFiles writes the files that the agent needs to read this cluster into an
// existing directory: the certificates first, then the configuration, each
// atomically. Files of the same names are replaced; the simulator does not remove them.
func (r *Running) WriteClientFiles(dir string) error {
	d, err := openDirectory(dir, nil)
	if err != nil {
		return err
	}
	return r.writeFiles(d)
}

// clientConfig is the configuration file, with the field names of etcd's own client.
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

// writeFiles writes the files that the agent needs to read this cluster, in Cilium's form (spec wire.md §3.2): a
// configuration with the cluster's name and the PEM files that it names, in one directory. Each cluster has its own
// copy of the authority, so that several simulators may share a directory; clusters that are cached in one etcd share a
// copy, so that their configurations are equal. The configuration is written last, so that a process that watches the
// directory finds all files that it names.
func (r *Running) writeFiles(d *directory) (err error) {
	e := r.etcd
	temp, err := os.MkdirTemp(d.path, ".mesh-sim-") // a directory is never read as a configuration
	if err != nil {
		return fmt.Errorf("client files of %s: %w", r.c.Name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	cfg := clientConfig{Endpoints: []string{e.endpoint()}}
	if !e.o.Plain {
		ca, cert, key := caFile(e.name), certFile(e.name), keyFile(e.name)
		err := errors.Join(
			d.place(temp, ca, e.ca.PEM(), 0o644), d.place(temp, key, e.reader.Key, 0o600), d.place(temp, cert, e.reader.Cert, 0o644))
		if err != nil {
			return err
		}
		cfg.TrustedCAFile, cfg.CertFile, cfg.KeyFile = d.file(ca), d.file(cert), d.file(key)
	}
	text, err := yaml.Marshal(cfg)
	if err != nil {
		return fmt.Errorf("client configuration of %s: %w", r.c.Name, err)
	}
	return d.place(temp, r.c.Name, text, 0o600)
}
