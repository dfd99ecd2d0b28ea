//go:build !race

package clustermesh

import "github.com/mesh-agent/mesh-agent/pkg/wire"

// maxRatio is the highest cost of a value, as a multiple of its bytes.
const maxRatio = wire.MaxCost

// raced reports whether the race detector is enabled.
const raced = false
