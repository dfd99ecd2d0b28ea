package main

import (
	"os"
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcdtest"
)

// asAgent is the environment variable that makes the test binary the real
// program, so that tests can run it in a process of its own.
const asAgent = "MESH_AGENT_TEST_BINARY"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
	}
	etcdtest.Main(m)
}
