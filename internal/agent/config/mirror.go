package config

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/mirror"
)

// MirrorConfig are the settings of `mirror`.
type MirrorConfig struct {
	ReadyTimeout time.Duration `mapstructure:"per-cluster-ready-timeout"`
	SyncTimeout  time.Duration `mapstructure:"global-ready-timeout"`
	DrainDelay   time.Duration `mapstructure:"drain-delay"`
	KeepRemoved  bool          `mapstructure:"disable-drain-on-disconnection"`
	Quota        MirrorQuota   `mapstructure:",squash"`
}

func defaultMirrorConfig() MirrorConfig {
	p := mirror.DefaultParams()
	return MirrorConfig{ReadyTimeout: p.ReadyTimeout, SyncTimeout: p.SyncTimeout, DrainDelay: p.DrainDelay, Quota: defaultMirrorQuota(p)}
}

func (c MirrorConfig) flags(f *pflag.FlagSet) {
	f.Duration("per-cluster-ready-timeout", c.ReadyTimeout, "mirror: how long readiness waits for a cluster that cannot be connected")
	f.Duration("global-ready-timeout", c.SyncTimeout, "mirror: how long readiness waits until all clusters are copied")
	f.Duration("drain-delay", c.DrainDelay, "mirror: time between the withdrawal of a removed cluster's configuration and that of its entries; agents drain it meanwhile")
	f.Bool("disable-drain-on-disconnection", c.KeepRemoved, "mirror: leave the copies of clusters whose client file is gone; they end with the mirror's leases")
	c.Quota.flags(f)
}

func (c MirrorConfig) validate(note func(flag string, err error)) {
	for flag, d := range map[string]time.Duration{
		"per-cluster-ready-timeout": c.ReadyTimeout, "global-ready-timeout": c.SyncTimeout, "drain-delay": c.DrainDelay,
	} {
		if d < 0 {
			note(flag, fmt.Errorf("%s is negative", d))
		}
	}
	c.Quota.validate(note)
}

// mirrorQPS is a mirror's limit of operations a second where none is given
// (wire.md §5).
const mirrorQPS = 100

// mirrorAsks is how often a mirror asks how full the own etcd is.
const mirrorAsks = 5 * time.Second

// MirrorLimits sets the limits of a mirror's kvstore client where none are given.
func MirrorLimits(o *kvstore.Options, given map[string]string) {
	if _, has := given[kvstore.OptionQPS]; !has {
		o.QPS = mirrorQPS
	}
	o.Timings.StatusInterval, o.Timings.StatusRetry = mirrorAsks, mirrorAsks
}
