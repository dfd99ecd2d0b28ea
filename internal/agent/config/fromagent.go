package config

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
)

// DirectoryFlag is the flag of the mesh directory.
const DirectoryFlag = "clustermesh-config"

// Given reports whether a flag has a value from the command line, the environment or the file.
func (s *Settings) Given(flag string) bool { return s.from[flag] != "" }

// FromAgent takes the values of an agent on this machine for flags that have no other value, and returns the settings
// that it took. It takes none when the agent's mesh directory does not exist here, for example when the agent runs in
// a container.
func (s *Settings) FromAgent(agent map[string]string, place string, flags ...string) (c Config, taken []string) {
	if dir := agent[DirectoryFlag]; !filepath.IsAbs(dir) || !exists(dir) {
		return s.typed(), nil
	}
	for _, name := range flags {
		f, value := s.flags.Lookup(name), agent[name]
		if f == nil || s.Given(name) || value == "" || value == f.Value.String() || strings.Contains(value, clientfile.LeftOut) {
			continue
		}
		if err := setFlag(f, value); err != nil {
			continue // the agent has another version
		}
		s.from[name] = place
		taken = append(taken, "--"+name+" "+value)
	}
	return s.typed(), taken
}

func exists(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}
