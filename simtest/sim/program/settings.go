package program

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"

	"github.com/mesh-agent/mesh-agent/simtest/sim"
	"github.com/mesh-agent/mesh-agent/simtest/sim/contents"
)

// maxClusters bounds a mesh: it is the highest possible cluster ID.
const maxClusters = 511

// Settings are the settings of a simulator: a number of clusters that differ only in name and ID.
type Settings struct {
	// Clusters is the number of clusters. Names, when given, are their names; otherwise they are Prefix followed by the
	// ID.
	Clusters int
	Names    []string
	Prefix   string
	// FirstID is the ID of the first one; the others follow.
	FirstID uint32
	// Cached is the number of clusters, the last ones, that are copies of KVStoreMesh in one etcd.
	Cached int
	// Local, when set, is the name of one more cluster: the reader's own, in kvstore mode.
	Local string
	// LocalID is its ID; 0 for the one after the others.
	LocalID uint32
	// Each has the common settings of all clusters. A PodRange in it is divided among them.
	Each contents.Cluster
	Mesh sim.Options
	// Command is a program to run on the mesh, with its arguments; see runCommand. Empty for none.
	Command []string
	// Log is the file for the command's output; {tmp} and so on are expanded in it. The end of the file is shown when
	// the command fails. Empty for the standard output and error.
	Log string
	// ControlSocket is the socket for Requests. Empty for one in the temporary directory.
	ControlSocket string
	// Quiet prints only errors.
	Quiet bool
}

// DefaultSettings are three small clusters.
func DefaultSettings() Settings {
	return Settings{Clusters: 3, Prefix: "cluster", FirstID: 1, Each: contents.Default("", 0)}
}

// Descriptions returns the clusters of the settings. The error lists everything that is wrong with them.
func (s Settings) Descriptions() ([]contents.Cluster, error) {
	n := s.Clusters
	if len(s.Names) > 0 {
		n = len(s.Names)
	}
	if n < 1 || n > maxClusters {
		return nil, fmt.Errorf("%d clusters: must be in 1..%d", n, maxClusters)
	}
	if s.Mesh.Churn < 0 {
		return nil, fmt.Errorf("churn of %g: must not be negative", s.Mesh.Churn)
	}
	if s.Cached < 0 || s.Cached > n {
		return nil, fmt.Errorf("%d cached clusters: must be in 0..%d, the number of clusters", s.Cached, n)
	}
	if s.LocalID != 0 && s.Local == "" {
		return nil, errors.New("a local cluster ID needs the name of the local cluster")
	}
	remotes := n
	if s.Local != "" {
		n++
	}
	var ranges []netip.Prefix
	if s.Each.PodRange.IsValid() {
		var err error
		if ranges, err = contents.Divide(s.Each.PodRange, n); err != nil {
			return nil, err
		}
	}
	clusters := make([]contents.Cluster, n)
	for i := range clusters {
		c := s.Each
		c.ID = s.FirstID + uint32(i)
		c.Name = s.Prefix + strconv.FormatUint(uint64(c.ID), 10)
		if i < len(s.Names) {
			c.Name = s.Names[i]
		}
		if i >= remotes-s.Cached {
			c.Mode = contents.Cached
		}
		if i == remotes {
			c.Name, c.Mode = s.Local, contents.Local
			if s.LocalID != 0 {
				c.ID = s.LocalID
			}
		}
		if ranges != nil {
			c.PodRange = ranges[i]
		}
		clusters[i] = c
	}
	return clusters, contents.Validate(clusters)
}

// Validate returns all errors in the settings, before anything is started.
func (s Settings) Validate() error {
	_, err := s.Descriptions()
	if s.Local == "" && strings.Contains(strings.Join(s.Command, " "), "{local}") {
		err = errors.Join(err, errors.New("the command names {local}, but there is no local cluster: ask for one with --local"))
	}
	if len(s.Command) > 0 {
		if _, lookErr := exec.LookPath(s.Command[0]); lookErr != nil {
			err = errors.Join(err, fmt.Errorf("command to run: %w", lookErr))
		}
	}
	return err
}
