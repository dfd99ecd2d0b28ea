//go:build wasip1

package mesh

import (
	"errors"

	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
)

// defaultEngine fails: etcd's client does not exist for this platform.
func (Config) defaultEngine() (clustermesh.Engine, error) {
	return nil, errors.New("mesh: Config.Engine is missing, and there is no client of etcd for this platform")
}
