// Package allocate tests that Cilium's allocators and ours may work on one etcd: one key has one
// ID, and each side respects the other's locks, references and garbage collection.
package allocate

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }
