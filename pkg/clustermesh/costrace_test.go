//go:build race

package clustermesh

import "github.com/mesh-agent/mesh-agent/pkg/wire"

// maxRatio has room for what the race detector adds to each allocation. The real
// bound is that of the fuzz target, which runs without it.
const maxRatio = wire.MaxCost * 5 / 4

// raced reports whether the race detector runs.
const raced = true
