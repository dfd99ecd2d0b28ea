// Package config is the configuration of the program: what its flags, environment
// variables and settings file say, and what is wrong with it. Errors name the place
// that a value came from.
package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/logging"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/mirror"
	"github.com/mesh-agent/mesh-agent/pkg/operate"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Mode is what the program does.
type Mode string

// The modes; each is a command.
const (
	ModeRun     Mode = "run"
	ModeOperate Mode = "operate"
	ModeMirror  Mode = "mirror"
)

// Config is what `run`, `operate` and `mirror` take from flags, environment
// variables and their file (see settings). The field names follow the flags.
type Config struct {
	ClusterName            string
	ClusterID              uint32 `mapstructure:"cluster-id"`
	MaxConnectedClusters   uint32
	ClusterSize            uint32
	NodeName               string
	ClustermeshConfig      string
	ClustermeshSyncTimeout time.Duration
	ClustermeshCacheTTL    time.Duration
	DisconnectPolicy       map[string]string
	RemoteBudget           map[string]string
	RemoteMemory           string
	KVStoreOpt             map[string]string `mapstructure:"kvstore-opt"`
	KVStore                KVStoreConfig     `mapstructure:",squash"`
	NodeIP                 string            `mapstructure:"node-ip"`
	Local                  LocalConfig       `mapstructure:",squash"`
	Operate                OperateConfig     `mapstructure:",squash"`
	Allocation             AllocationConfig  `mapstructure:",squash"`
	Mirror                 MirrorConfig      `mapstructure:",squash"`
	Claims                 ClaimsConfig      `mapstructure:",squash"`
	Listen                 string
	Listening              ListenConfig `mapstructure:",squash"`
	Socket                 string
	DebugPprof             bool
	LogLevel               string
	LogFormat              string
}

// Default is the configuration without any setting.
func Default() Config {
	node, err := os.Hostname()
	if err != nil {
		node = "localhost"
	}
	kv, mirrored := etcd.DefaultOptions(), mirror.DefaultParams()
	return Config{
		ClusterName:            wire.DefaultClusterName,
		MaxConnectedClusters:   255,
		NodeName:               node,
		ClustermeshConfig:      "/var/lib/cilium/clustermesh/",
		ClustermeshSyncTimeout: time.Minute,
		KVStore: KVStoreConfig{
			ConnectivityTimeout: 2 * time.Minute, LeaseTTL: kv.LeaseTTL, PeriodicSync: 5 * time.Minute,
			MaxConsecutiveQuorumErrors: uint32(kv.MaxConsecutiveQuorumErrors), //nolint:gosec // small
		},
		Local:      LocalConfig{GlobalNamespaces: true},
		Operate:    OperateConfig{GCInterval: operate.DefaultGCInterval, GCPerMinute: operate.DefaultGCPerMinute},
		Allocation: AllocationConfig{Mode: string(modes.KVStore), Namespace: "kube-system"},
		Mirror: MirrorConfig{
			ReadyTimeout: mirrored.ReadyTimeout, SyncTimeout: mirrored.SyncTimeout, DrainDelay: mirrored.DrainDelay,
			Writes: mirrored.Rate.Writes, Bytes: quantity(mirrored.Rate.Bytes), Quota: quantity(mirrored.Room.Quota), StopAt: mirrored.Room.StopAt,
		},
		Claims:    ClaimsConfig{ClaimPolicy: string(claims.Report)},
		Listen:    api.DefaultListen,
		Listening: ListenConfig{Limits: DefaultListenLimits()},
		Socket:    api.DefaultSocket,
		LogLevel:  "info",
		LogFormat: "text",
	}
}

// Flags registers the flags. It implements hive's cell.Flagger.
func (c Config) Flags(f *pflag.FlagSet) {
	f.String("cluster-name", c.ClusterName, "name of the own cluster")
	f.Uint32("cluster-id", c.ClusterID, "ID of the own cluster: 1 to 255 (511 with --max-connected-clusters=511); 0 only observes")
	f.Uint32("max-connected-clusters", c.MaxConnectedClusters, "how many clusters a mesh may have, 255 or 511: the same in all of them")
	f.Uint32(ClusterSizeFlag, c.ClusterSize, clusterSizeHelp)
	f.String("node-name", c.NodeName, "name of this node")
	f.String("clustermesh-config", c.ClustermeshConfig, "the mesh directory: one etcd client file per remote cluster")
	f.Duration("clustermesh-sync-timeout", c.ClustermeshSyncTimeout, "how long readiness waits for clusters that do not answer")
	f.Duration("clustermesh-cache-ttl", c.ClustermeshCacheTTL, "after this long without contact a cluster's service backends are not used any more; 0 keeps them")
	f.Var(new(keyValues), DisconnectPolicy, policyHelp())
	f.Var(new(keyValues), RemoteBudget, budgetHelp())
	f.String(remoteMemory, c.RemoteMemory, remoteMemoryHelp)
	f.Var(new(keyValues), "kvstore-opt", "options of the kvstore clients, such as etcd.qps=100 (operations a second once the first sync is complete; before that, and in commands such as 'kvstore get', etcd.bootstrapQps); etcd.config or etcd.address name the own cluster's kvstore; repeated, or one JSON map")
	c.KVStore.flags(f)
	f.String("node-ip", c.NodeIP, "address of this node, which ends the keys of its identity references; when it is not given, what the description of the own cluster says, else the first global one")
	c.Local.flags(f)
	c.Operate.flags(f)
	c.Allocation.flags(f)
	c.Mirror.flags(f)
	c.Claims.flags(f)
	f.String("listen", c.Listen, "address of the HTTP API, health and metrics")
	c.Listening.flags(f)
	f.String("socket", c.Socket, "unix socket of the same")
	f.Bool("debug-pprof", c.DebugPprof, "serve profiles of the agent at /debug/pprof/ on the unix socket")
	f.String("log-level", c.LogLevel, "error, warn, info or debug")
	f.String("log-format", c.LogFormat, "text or json")
}

// Own is the own cluster.
func (c Config) Own() wire.ClusterInfo {
	return wire.ClusterInfo{Name: c.ClusterName, ID: c.ClusterID, MaxConnectedClusters: c.MaxConnectedClusters}
}

// InForce are the settings in force, without secrets.
func (c Config) InForce() api.Settings {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Flags(flags)
	settings := make(api.Settings)
	flags.VisitAll(func(f *pflag.Flag) { settings[f.Name] = Harmless(f.Name, f.Value.String()) })
	policy, budgets, kv := keyValues(c.DisconnectPolicy), keyValues(c.RemoteBudget), keyValues(c.KVStoreOpt)
	settings[DisconnectPolicy], settings[RemoteBudget] = policy.String(), budgets.String()
	settings[KVStoreFlag] = Harmless(KVStoreFlag, kv.String())
	return settings
}

// KVStoreFlag is the flag whose value has options of its own.
const KVStoreFlag = "kvstore-opt"

// Harmless is the value of a flag without what may be a secret in it.
func Harmless(flag, value string) string {
	if flag != KVStoreFlag || value == "" {
		return clientfile.Redact(value)
	}
	var options keyValues
	if err := options.Set(value); err != nil {
		return clientfile.LeftOut
	}
	for key, text := range options {
		if _, err := etcd.ParseOptions(map[string]string{key: text}); err != nil {
			options[key] = clientfile.LeftOut
		} else {
			options[key] = clientfile.Redact(text)
		}
	}
	return options.String()
}

// Validate reports every mistake at once, in words, each as a *settingError.
func (c Config) Validate() error {
	var errs []error
	note := func(flag string, err error) {
		if err != nil {
			errs = append(errs, &settingError{strings.Split(flag, "/"), err})
		}
	}
	if err := wire.ValidateMaxConnectedClusters(c.MaxConnectedClusters); err != nil {
		note("max-connected-clusters", err)
	} else {
		note("cluster-name/cluster-id", c.Own().Validate())
	}
	if c.NodeName == "" {
		note("node-name", errors.New("must not be empty"))
	}
	note("clustermesh-config", checkDirectory(c.ClustermeshConfig))
	note("clustermesh-sync-timeout", notNegative(c.ClustermeshSyncTimeout))
	if c.ClustermeshCacheTTL < 0 {
		note("clustermesh-cache-ttl", fmt.Errorf("%s is negative: give a duration such as 10m, or 0 to keep the backends", c.ClustermeshCacheTTL))
	}
	_, err := disconnect.ParsePolicy(c.DisconnectPolicy)
	note(DisconnectPolicy, err)
	_, err = budget.Parse(c.RemoteBudget)
	note(RemoteBudget, err)
	note(remoteMemory, c.checkRemoteMemory())
	_, err = etcd.ParseOptions(c.KVStoreOpt)
	note("kvstore-opt", err)
	c.KVStore.validate(note)
	c.Local.validate(note)
	c.Operate.validate(note, c.ClusterName, c.Local.Given())
	c.ValidateAllocation(note)
	c.Mirror.validate(note)
	c.Claims.validate(note)
	if _, err := c.NodeAddress(); c.NodeIP != "" {
		note("node-ip", err)
	}
	c.Listening.validate(note, c.Listen)
	note("log-level", logging.CheckLevel(c.LogLevel))
	note("log-format", logging.CheckFormat(c.LogFormat))
	return errors.Join(errs...)
}

func notNegative[T int | time.Duration](n T) error {
	if n < 0 {
		return fmt.Errorf("%v is negative", n)
	}
	return nil
}

func aboveZero(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("%s is not above zero", d)
	}
	return nil
}

// checkDirectory accepts what can be watched, now or once it exists.
func checkDirectory(path string) error {
	if path == "" {
		return errors.New("must name a directory")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // waited for, with a warning
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory: give the one that holds a client file for each remote cluster", path)
	}
	if _, err := os.ReadDir(path); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	return nil
}
