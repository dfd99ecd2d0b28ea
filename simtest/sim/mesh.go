package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mesh-agent/mesh-agent/simtest/pki"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// TempPrefix is the prefix of the names of temporary directories.
const TempPrefix = "mesh-sim-"

// Options are the options of a mesh.
type Options struct {
	// Dir is the directory for the client files, which is created if it does not exist. Empty for one below the
	// temporary directory.
	Dir string
	// DataDir is the directory of the databases, which is created if it does not exist. Empty for one below the
	// temporary directory.
	DataDir string
	// Plain serves without TLS, and then without authentication.
	Plain bool
	// NoAuth lets every client certificate read and write everything. Without it, clients get exactly the rights of
	// their mode in production (spec wire.md §0).
	NoAuth bool
	// Churn is how many keys per second Run writes or deletes, of each cluster; 0 for none.
	Churn float64
}

// Mesh is several simulated clusters with one certificate authority and one
// directory of client files.
type Mesh struct {
	temp  string // has all files without another place; removed at Close
	data  *directory
	dir   *directory
	local *directory // of the local cluster's client file; nil without one

	clusters []*Running // in the order of the descriptions
	etcds    []*etcd

	mu sync.Mutex // guards the client files
}

// OpenMesh starts the servers, all empty, and creates the directories. Load writes the client files. Errors in the
// descriptions or with a directory are returned before anything is started.
func OpenMesh(ctx context.Context, clusters []contents.Cluster, o Options) (*Mesh, error) {
	if err := contents.Validate(clusters); err != nil {
		return nil, err
	}
	m := &Mesh{}
	if err := m.open(ctx, clusters, o); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Mesh) open(ctx context.Context, clusters []contents.Cluster, o Options) error {
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
	groups := groupByEtcd(clusters)
	m.etcds = make([]*etcd, len(groups))
	var g errgroup.Group
	g.SetLimit(2 * runtime.NumCPU())
	for i, group := range groups {
		work, err := m.data.mkdir(group[0].Name)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		g.Go(func() error {
			var err error
			m.etcds[i], err = openEtcd(ctx, group, work, ca, o)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, e := range m.etcds {
		m.clusters = append(m.clusters, e.clusters...)
	}
	slices.SortFunc(m.clusters, func(a, b *Running) int {
		return cmp.Compare(slices.Index(names, a.c.Name), slices.Index(names, b.c.Name))
	})
	if _, ok := m.Local(); ok { // not in the mesh directory, which is for other clusters
		var err error
		m.local, err = openDirectory(filepath.Join(m.temp, "local"), nil)
		return err
	}
	return nil
}

// groupByEtcd groups the clusters that are in one etcd.
func groupByEtcd(clusters []contents.Cluster) [][]contents.Cluster {
	var groups [][]contents.Cluster
	cached := -1
	for _, c := range clusters {
		switch {
		case c.Mode != contents.Cached:
			groups = append(groups, []contents.Cluster{c})
		case cached < 0:
			cached = len(groups)
			groups = append(groups, []contents.Cluster{c})
		default:
			groups[cached] = append(groups[cached], c)
		}
	}
	return groups
}

func (m *Mesh) makeDirectories(names []string, o Options) error {
	var err error
	if m.temp, err = os.MkdirTemp("", TempPrefix); err != nil {
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

// Temp is a directory that exists as long as the mesh, with a short path, for sockets and similar files.
func (m *Mesh) Temp() string { return m.temp }

// Clusters returns the running clusters in the order of their descriptions.
func (m *Mesh) Clusters() []*Running { return m.clusters }

// Cluster returns the cluster of that name.
func (m *Mesh) Cluster(name string) (*Running, error) {
	names := make([]string, len(m.clusters))
	for i, r := range m.clusters {
		if r.c.Name == name {
			return r, nil
		}
		names[i] = r.c.Name
	}
	return nil, refuse("no cluster is called %q: there are %s", name, strings.Join(names, ", "))
}

// Local returns the local cluster, if there is one.
func (m *Mesh) Local() (*Running, bool) {
	i := slices.IndexFunc(m.clusters, func(r *Running) bool { return r.c.Mode == contents.Local })
	if i < 0 {
		return nil, false
	}
	return m.clusters[i], true
}

// directoryOf returns the directory of a cluster's client file.
func (m *Mesh) directoryOf(r *Running) *directory {
	if r.c.Mode == contents.Local {
		return m.local
	}
	return m.dir
}

// ClientFile is the path of a cluster's client file, which may not exist.
func (m *Mesh) ClientFile(r *Running) string { return m.directoryOf(r).file(r.c.Name) }

// Add writes the client file of a cluster that was removed.
func (m *Mesh) Add(r *Running) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := os.Lstat(m.ClientFile(r)); err == nil {
		return refuse("cluster %s is in the mesh already: %s", r.c.Name, m.ClientFile(r))
	}
	return r.writeFiles(m.directoryOf(r))
}

// Certify gives the agent another client certificate for a cluster, valid from now for this long; a duration that is
// not positive makes an expired one.
func (m *Mesh) Certify(r *Running, valid time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := r.certify(valid); err != nil {
		return err
	}
	return r.writeFiles(m.directoryOf(r))
}

// Remove removes the client file of a cluster. Its certificates stay, as other files may name them.
func (m *Mesh) Remove(r *Running) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := os.Lstat(m.ClientFile(r)); errors.Is(err, fs.ErrNotExist) {
		return refuse("cluster %s is not in the mesh: there is no %s", r.c.Name, m.ClientFile(r))
	}
	return m.directoryOf(r).take(r.c.Name)
}

// Claim lets a cluster also claim the address of another cluster's pod, and returns the key that it wrote and the name
// of the other cluster.
func (m *Mesh) Claim(ctx context.Context, r *Running, addr netip.Addr) (key, other string, err error) {
	if r.holds(addr) {
		return "", "", refuse("cluster %s claims %s already", r.c.Name, addr)
	}
	for _, o := range m.clusters {
		if o != r && o.holds(addr) {
			key, err = r.claim(ctx, addr)
			return key, o.c.Name, err
		}
	}
	for _, o := range m.clusters {
		if pod := o.Sample().Pod; o != r && pod.IsValid() {
			return "", "", refuse("no other cluster has the address %s: one that %s has is %s", addr, o.c.Name, pod)
		}
	}
	return "", "", refuse("no other cluster has the address %s, nor any other", addr)
}

// State returns the states of clusters and their servers.
func (m *Mesh) State(ctx context.Context, clusters ...*Running) ([]State, error) {
	states := make([]State, len(clusters))
	for i, r := range clusters {
		s, err := r.State(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := os.Lstat(m.ClientFile(r)); err == nil {
			s.ClientFile = m.ClientFile(r)
		}
		states[i] = s
	}
	return states, nil
}

// Load loads all clusters, as many at a time as there are processors, writes the client files of
// each when it is complete, and reports it. Reports come one at a time.
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
			if err := r.writeFiles(m.directoryOf(r)); err != nil {
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
	for _, e := range m.etcds {
		g.Go(func() error { return e.run(ctx) })
	}
	return g.Wait()
}

// Close stops the servers and removes all created files: the client files first, so that an agent sees the clusters
// disappear.
func (m *Mesh) Close() error {
	var errs []error
	if m.dir != nil {
		errs = append(errs, m.dir.remove())
	}
	var wg sync.WaitGroup
	for _, e := range m.etcds {
		if e != nil {
			wg.Go(e.close)
		}
	}
	wg.Wait()
	if m.data != nil {
		errs = append(errs, m.data.remove())
	}
	if m.temp != "" {
		errs = append(errs, os.RemoveAll(m.temp))
	}
	return errors.Join(errs...)
}
