package agent

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/budget"
)

// TestBudgetsOfUnknownClustersAreLogged, and no others.
func TestBudgetsOfUnknownClustersAreLogged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "east"), []byte("endpoints: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := budget.Parse(map[string]string{"east.ips.keys": "20", "esat.ips.keys": "20", "nodes.keys": "5"})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	warnOfBudgets(b, dir, slog.New(slog.NewTextHandler(&log, nil)))
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "cluster=esat") {
		t.Errorf("logged: %s", got)
	}
}
