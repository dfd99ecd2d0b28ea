//go:build !wasip1

package mesh

import (
	"github.com/mesh-agent/mesh-agent/pkg/clustermesh"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// defaultEngine returns the engine of a mesh whose configuration has none.
func (c Config) defaultEngine() (clustermesh.Engine, error) {
	o := etcd.DefaultOptions()
	o.Log = c.Log
	if c.Metrics != nil {
		o.Metrics = etcd.NewMetrics(c.Metrics)
	}
	return o, nil
}
