package policy_test

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/internal/agent/agenttest"
)

func TestMain(m *testing.M) { agenttest.Main(m) }
