package clientfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// configOf loads a client file.
func configOf(t *testing.T, path string) *Config {
	t.Helper()
	cfg, err := Load(path)
	waittest.Must(t, err)
	return cfg
}

// writeFile makes a file in a new directory.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	waittest.Must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
