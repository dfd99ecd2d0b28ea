package members

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/simtest/etcdserver"
)

// Settings are the settings of a mesh.
type Settings struct {
	// Program is the path of mesh-agent.
	Program string
	// Dir is the directory for all files; it must exist.
	Dir string
	// Clusters is the number of clusters, Nodes the number of nodes of each, and Standbys the number of additional
	// processes that operate and mirror a cluster.
	Clusters, Nodes, Standbys int
	// Flags are given to every process.
	Flags []string
}

// DefaultSettings are three clusters of two nodes, without standbys.
func DefaultSettings() Settings { return Settings{Clusters: 3, Nodes: 2} }

// Validate returns an error if a number is out of range.
func (s Settings) Validate() error {
	switch {
	case s.Clusters < 2 || s.Clusters > 20:
		return fmt.Errorf("%d clusters: there can be 2 to 20", s.Clusters)
	case s.Nodes < 1 || s.Nodes > 9:
		return fmt.Errorf("%d nodes in a cluster: there can be 1 to 9", s.Nodes)
	case s.Standbys < 0 || s.Standbys > 9:
		return fmt.Errorf("%d standbys: there can be 0 to 9", s.Standbys)
	}
	return nil
}

// Mesh is a running mesh.
type Mesh struct {
	Settings
	Clusters []*Cluster
}

// Cluster is one of its clusters.
type Cluster struct {
	Name string
	ID   int
	Dir  string
	Etcd *etcdserver.Server
	// Operators, Mirrors and Agents are its processes; there is an agent for each node.
	Operators, Mirrors, Agents []*Process
}

// Start starts the etcd servers and all processes. The caller must stop the returned Mesh,
// also after an error.
func Start(s Settings) (*Mesh, error) {
	m := &Mesh{Settings: s}
	if err := s.Validate(); err != nil {
		return m, err
	}
	for i := range s.Clusters {
		c := &Cluster{Name: fmt.Sprintf("member%d", i+1), ID: i + 1}
		c.Dir = filepath.Join(s.Dir, c.Name)
		if err := c.serve(); err != nil {
			return m, err
		}
		m.Clusters = append(m.Clusters, c)
	}
	for _, c := range m.Clusters {
		if err := m.prepare(c); err != nil {
			return m, err
		}
		if err := m.ensureUsers(c); err != nil {
			return m, err
		}
	}
	for _, c := range m.Clusters {
		if err := m.launch(c); err != nil {
			return m, err
		}
	}
	return m, nil
}

// prepare writes the files of a cluster.
func (m *Mesh) prepare(c *Cluster) error {
	var errs []error
	for _, user := range []string{rootUser, nodeUser, operatorUser, mirrorUser} {
		errs = append(errs, write(c.ClientFile(user), c.clientFile(user)))
	}
	for _, other := range m.Clusters {
		if other != c {
			errs = append(errs, write(filepath.Join(c.Remotes(), other.Name), other.clientFile(remoteUser)),
				write(filepath.Join(c.Mesh(), other.Name), c.clientFile(c.localUser())))
		}
	}
	d := c.Describe(m.Nodes)
	return errors.Join(append(errs, d.Write(c.Manifests()))...)
}

// launch starts the processes of a cluster.
func (m *Mesh) launch(c *Cluster) error {
	for i := range 1 + m.Standbys {
		c.Operators = append(c.Operators, m.process(c, fmt.Sprintf("operate%d", i+1), "operate", operatorUser, "--local-manifests", c.Manifests()))
		c.Mirrors = append(c.Mirrors, m.process(c, fmt.Sprintf("mirror%d", i+1), "mirror", mirrorUser, "--clustermesh-config", c.Remotes()))
	}
	for i := range m.Nodes {
		c.Agents = append(c.Agents, m.process(c, fmt.Sprintf("agent%d", i+1), "run", nodeUser,
			"--local-manifests", c.Manifests(), "--clustermesh-config", c.Mesh(),
			"--node-name", c.Node(i), "--node-ip", c.NodeAddress(i)))
	}
	for _, p := range c.Processes() {
		if err := p.Start(); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mesh) process(c *Cluster, name, mode, user string, flags ...string) *Process {
	p := &Process{
		Name: name, Socket: filepath.Join(c.Dir, name+".sock"), Log: filepath.Join(c.Dir, name+".log"),
		Command: append([]string{
			m.Program, mode, "--cluster-name", c.Name, "--cluster-id", fmt.Sprint(c.ID),
			"--kvstore-opt", "etcd.config=" + c.ClientFile(user), "--listen", "127.0.0.1:0",
		}, flags...),
	}
	p.Command = append(append(p.Command, "--socket", p.Socket), m.Flags...)
	return p
}

// restartAfter is the delay until a killed process is started again.
const restartAfter = 45 * time.Second

// Wait waits until ctx ends, which is no error, or a process ends by itself. A killed process is started again after a
// delay, as Kubernetes does. The delay is long enough for another process to become leader. say gets both events as
// text.
func (m *Mesh) Wait(ctx context.Context, say func(string)) error {
	away := make(map[*Process]time.Time) // since when
	for waiting.Sleep(ctx, time.Second) == nil {
		for _, c := range m.Clusters {
			for _, p := range c.Processes() {
				if err := revive(c, p, away, say); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func revive(c *Cluster, p *Process, away map[*Process]time.Time, say func(string)) error {
	since, known := away[p]
	switch {
	case p.Running():
	case !p.Killed():
		return fmt.Errorf("%s of %s has ended by itself; its log is %s", p.Name, c.Name, p.Log)
	case !known:
		away[p] = time.Now()
		say(fmt.Sprintf("%s of %s was killed; it comes back in %s", p.Name, c.Name, restartAfter))
	case time.Since(since) > restartAfter:
		delete(away, p)
		say(fmt.Sprintf("%s of %s is started again", p.Name, c.Name))
		return p.Start()
	}
	return nil
}

// Stop ends all processes and servers.
func (m *Mesh) Stop() error {
	var errs []error
	for _, c := range m.Clusters {
		for _, p := range c.Processes() {
			p.Interrupt()
		}
	}
	for _, c := range m.Clusters {
		for _, p := range c.Processes() {
			errs = append(errs, p.Wait())
		}
		c.Etcd.Close()
	}
	return errors.Join(errs...)
}

// Processes are all those of the cluster.
func (c *Cluster) Processes() []*Process { return slices.Concat(c.Operators, c.Mirrors, c.Agents) }

// The paths below the cluster's directory.

// Manifests is the directory with the description of the cluster.
func (c *Cluster) Manifests() string { return filepath.Join(c.Dir, "manifests") }

// Remotes has the client files of the other clusters.
func (c *Cluster) Remotes() string { return filepath.Join(c.Dir, "remotes") }

// Mesh has the client files of the copies of the other clusters.
func (c *Cluster) Mesh() string { return filepath.Join(c.Dir, "mesh") }

// ClientFile is the client file of its own etcd for one of its users: root, node, operator or mirror.
func (c *Cluster) ClientFile(user string) string { return filepath.Join(c.Dir, "etcd-"+user+".yaml") }

// write writes a file atomically.
func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+"~", []byte(text), 0o644); err != nil { //nolint:gosec // nothing in it is secret
		return err
	}
	return os.Rename(path+"~", path)
}
