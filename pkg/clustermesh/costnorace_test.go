//go:build !race

package clustermesh

import "github.com/mesh-agent/mesh-agent/pkg/wire"

// maxRatio is how many times its bytes a value may cost.
const maxRatio = wire.MaxCost

// raced reports whether the race detector runs.
const raced = false
