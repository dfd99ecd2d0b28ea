package config

import (
	"testing"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
)

// TestLimitsOfWriters: the writers of a whole cluster have higher limits than agents, unless one is given.
func TestLimitsOfWriters(t *testing.T) {
	t.Parallel()
	for mode, want := range map[Mode]float64{ModeRun: float64(etcd.DefaultOptions().QPS), ModeOperate: 50, ModeMirror: 100} {
		f := Default()
		c, _ := f.typed()
		if got := float64(c.WriterOptions(mode).QPS); got != want {
			t.Errorf("%s has %v, want %v", mode, got, want)
		}
		f.KVStoreOpt = map[string]string{etcd.OptionQPS: "7"}
		c, _ = f.typed()
		if got := float64(c.WriterOptions(mode).QPS); got != 7 {
			t.Errorf("%s has %v instead of the given limit", mode, got)
		}
	}
}
