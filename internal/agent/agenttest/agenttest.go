// Package agenttest runs the whole program in a process of its own, or an agent in
// that of the test, for the tests of all packages that need one.
package agenttest

import (
	"os"
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/cli"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
)

// AsAgent is the environment variable that makes the test binary the real
// program, so that tests can run it in a process of its own.
const AsAgent = "MESH_AGENT_TEST_BINARY"

// Main is the TestMain of packages whose tests run the program.
func Main(m *testing.M) {
	if os.Getenv(AsAgent) != "" {
		os.Exit(cli.Main("", os.Args[1:]))
	}
	etcdtest.Main(m)
}

// Must fails the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
