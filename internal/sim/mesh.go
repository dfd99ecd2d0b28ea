package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/internal/pki"
)

// MeshOptions say how a mesh is run.
type MeshOptions struct {
	// Dir is the directory for the client files. It is made when there is none.
	// Empty: one below the temporary directory.
	Dir string
	// DataDir is where the databases go, made when there is none. Empty: below
	// the temporary directory.
	DataDir string
	// Plain, NoAuth and Churn are as in Options.
	Plain  bool
	NoAuth bool
	Churn  float64
}

// Mesh is several simulated clusters with one certificate authority and one
// directory of client files.
type Mesh struct {
	temp string // holds whatever has no other place; removed at Close
	data *directory
	dir  *directory

	clusters []*Running // in the order of the descriptions

	mu sync.Mutex // guards the writing of client files
}

// OpenMesh starts the servers, all empty, and makes the directories. Client
// files are written by Load. The error says what is wrong with the
// descriptions or with a directory, before anything is started.
func OpenMesh(ctx context.Context, clusters []Cluster, o MeshOptions) (*Mesh, error) {
	if err := ValidateMesh(clusters); err != nil {
		return nil, err
	}
	m := &Mesh{}
	if err := m.open(ctx, clusters, o); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// ValidateMesh checks each description and that names and IDs differ.
func ValidateMesh(clusters []Cluster) error {
	var errs []error
	names, ids := map[string]bool{}, map[uint32]string{}
	for _, c := range clusters {
		if err := c.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("cluster %s: %w", c.Name, err))
		}
		if names[c.Name] {
			errs = append(errs, fmt.Errorf("two clusters are named %s", c.Name))
		}
		if other, ok := ids[c.ID]; ok {
			errs = append(errs, fmt.Errorf("clusters %s and %s have the same ID %d", other, c.Name, c.ID))
		}
		names[c.Name], ids[c.ID] = true, c.Name
	}
	return errors.Join(errs...)
}

func (m *Mesh) open(ctx context.Context, clusters []Cluster, o MeshOptions) error {
	names := make([]string, len(clusters))
	for i, c := range clusters {
		names[i] = c.Name
	}
	if err := m.makeDirectories(names, o); err != nil {
		return err
	}
	var ca *pki.CA
	if !o.Plain {
		var err error
		if ca, err = pki.NewCA("mesh-sim CA"); err != nil {
			return err
		}
	}
	m.clusters = make([]*Running, len(clusters))
	var g errgroup.Group
	g.SetLimit(2 * runtime.NumCPU())
	for i, c := range clusters {
		work, err := m.data.mkdir(c.Name)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		g.Go(func() error {
			var err error
			m.clusters[i], err = Open(ctx, c, Options{
				WorkDir: work, Plain: o.Plain, NoAuth: o.NoAuth, Churn: o.Churn, CA: ca,
			})
			return err
		})
	}
	return g.Wait()
}

func (m *Mesh) makeDirectories(names []string, o MeshOptions) error {
	var err error
	if m.temp, err = os.MkdirTemp("", "mesh-sim-"); err != nil {
		return fmt.Errorf("make a temporary directory: %w", err)
	}
	for name, d := range map[string]*string{"clustermesh": &o.Dir, "data": &o.DataDir} {
		if *d != "" {
			continue
		}
		*d = filepath.Join(m.temp, name)
		if err := os.Mkdir(*d, 0o700); err != nil {
			return fmt.Errorf("make a temporary directory: %w", err)
		}
	}
	if m.dir, err = openDirectory(o.Dir, clientFileNames(names)); err != nil {
		return fmt.Errorf("client files: %w", err)
	}
	if m.data, err = openDirectory(o.DataDir, names); err != nil {
		return fmt.Errorf("databases: %w", err)
	}
	return nil
}

// Dir is the directory of client files, absolute.
func (m *Mesh) Dir() string { return m.dir.path }

// Temp is a directory that lives as long as the mesh, with a short path, for
// sockets and the like.
func (m *Mesh) Temp() string { return m.temp }

// Clusters returns the running clusters in the order of their descriptions.
func (m *Mesh) Clusters() []*Running { return m.clusters }

// Load loads all clusters, as many at a time as there are processors, writes
// the client files of each when it is complete, and reports it. Reports come
// one at a time.
func (m *Mesh) Load(ctx context.Context, report func(*Running, Loaded)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(runtime.NumCPU(), 1))
	for _, r := range m.clusters {
		g.Go(func() error {
			l, err := r.Load(ctx)
			if err != nil {
				return err
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if err := r.clientFiles().write(m.dir); err != nil {
				return err
			}
			if report != nil {
				report(r, l)
			}
			return nil
		})
	}
	return g.Wait()
}

// Run keeps all clusters alive until ctx ends, which is no error.
func (m *Mesh) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, r := range m.clusters {
		g.Go(func() error { return r.Run(ctx) })
	}
	return g.Wait()
}

// Close stops the servers and removes everything that was made: the client
// files first, so that an agent sees the clusters go.
func (m *Mesh) Close() error {
	var errs []error
	if m.dir != nil {
		errs = append(errs, m.dir.remove())
	}
	var wg sync.WaitGroup
	closed := make([]error, len(m.clusters))
	for i, r := range m.clusters {
		if r != nil {
			wg.Go(func() { closed[i] = r.Close() })
		}
	}
	wg.Wait()
	errs = append(errs, closed...)
	if m.data != nil {
		errs = append(errs, m.data.remove())
	}
	if m.temp != "" {
		errs = append(errs, os.RemoveAll(m.temp))
	}
	return errors.Join(errs...)
}
