//go:build race

package clustermesh

import "github.com/mesh-agent/mesh-agent/pkg/wire"

// maxRatio allows for the memory that the race detector adds to each allocation. The real bound is checked by the fuzz
// target, which runs without it.
const maxRatio = wire.MaxCost * 5 / 4

// raced reports whether the race detector is enabled.
const raced = true
