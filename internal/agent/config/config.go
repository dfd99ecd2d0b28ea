// Package config is the configuration of the program: the values of its flags, environment variables and settings
// file, and their validation. Errors name the place that a value came from.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/base/logging"
	"github.com/mesh-agent/mesh-agent/internal/kube/serviceimports"
	"github.com/mesh-agent/mesh-agent/internal/own/mirror"
	"github.com/mesh-agent/mesh-agent/internal/own/operate"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/disconnect"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Mode is a mode of the program.
type Mode string

// The modes; each is a command.
const (
	ModeRun     Mode = "run"
	ModeOperate Mode = "operate"
	ModeMirror  Mode = "mirror"
)

// Config has the settings of `run`, `operate` and `mirror`, from flags, environment variables and the settings file
// (see Settings). The tags of a field have the name of its flag, its help, the subject under which the help shows it,
// and the modes that use it, unless all do.
type Config struct {
	ClusterName            string            `mapstructure:"cluster-name" subject:"Own cluster" help:"name of the own cluster"`
	ClusterID              uint32            `mapstructure:"cluster-id" subject:"Own cluster" help:"ID of the own cluster, 1 to 255 (1 to 511 with --max-connected-clusters=511); with 0 the agent only reads"`
	MaxConnectedClusters   uint32            `mapstructure:"max-connected-clusters" subject:"Own cluster" help:"maximum number of clusters in the mesh, 255 or 511; all clusters must have the same value"`
	ClusterSize            uint32            `mapstructure:"cluster-size" subject:"Own cluster" help:"number of nodes of the own cluster; agents of large clusters check an etcd less often and wait longer before they reconnect (docs/performance.md); 0 counts the nodes, or is 1 without a kvstore and a description of the own cluster"`
	NodeName               string            `mapstructure:"node-name" subject:"Own cluster" help:"name of this node"`
	ClustermeshConfig      string            `mapstructure:"clustermesh-config" subject:"Remote clusters" help:"mesh directory, with one etcd client file for each remote cluster"`
	ClustermeshSyncTimeout time.Duration     `mapstructure:"clustermesh-sync-timeout" modes:"run operate" subject:"Remote clusters" help:"time that readiness waits for clusters that do not answer"`
	ClustermeshCacheTTL    time.Duration     `mapstructure:"clustermesh-cache-ttl" subject:"Remote clusters" help:"time without contact after which the service backends of a cluster are no longer used; 0 keeps them"`
	DisconnectPolicy       map[string]string `mapstructure:"disconnect-policy" modes:"run operate" subject:"Remote clusters"`
	RemoteBudget           map[string]string `mapstructure:"remote-budget" subject:"Remote clusters"`
	RemoteMemory           string            `mapstructure:"remote-memory" modes:"run operate" subject:"Remote clusters" help:"memory limit for the entries of all remote clusters together, such as 600Mi (an estimate); empty is 70 % of GOMEMLIMIT, which follows the memory limit of the container; 0 is no limit (docs/budgets.md)"`
	KVStoreOpt             map[string]string `mapstructure:"kvstore-opt" subject:"Etcd clients" help:"option of the etcd clients; etcd.config (a client file) or etcd.address name the own cluster's etcd; etcd.qps is the limit of operations per second, etcd.bootstrapQps the limit before the first sync is complete and in commands such as 'kvstore get'; repeat the flag, or give one JSON map"`
	KVStore                KVStoreConfig     `mapstructure:",squash" subject:"Etcd clients"`
	NodeIP                 string            `mapstructure:"node-ip" subject:"Own cluster" help:"address of this node, which the agent writes into identity references; default: the node's address in the description of the own cluster, otherwise the first global address"`
	Local                  LocalConfig       `mapstructure:",squash" subject:"Own cluster"`
	Operate                OperateConfig     `mapstructure:",squash" subject:"Publishing"`
	Allocation             AllocationConfig  `mapstructure:",squash" subject:"Identities"`
	Mirror                 MirrorConfig      `mapstructure:",squash" subject:"Mirror"`
	Claims                 ClaimsConfig      `mapstructure:",squash" subject:"Claims of remote clusters"`
	Serving                ServingConfig     `mapstructure:",squash" subject:"Preferred backends"`
	Listen                 string            `mapstructure:"listen" subject:"HTTP API" help:"address of the HTTP API, the health checks and the metrics"`
	Listening              ListenConfig      `mapstructure:",squash" subject:"HTTP API"`
	Socket                 string            `mapstructure:"socket" subject:"HTTP API" help:"unix socket of the HTTP API"`
	DebugPprof             bool              `mapstructure:"debug-pprof" subject:"HTTP API" help:"serve Go profiles at /debug/pprof/ on the unix socket"`
	LogLevel               string            `mapstructure:"log-level" subject:"Log" help:"log level: error, warn, info or debug"`
	LogFormat              string            `mapstructure:"log-format" subject:"Log" help:"log format: text or json"`
}

// Default returns the configuration without any setting.
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
		Operate:    OperateConfig{GCInterval: operate.DefaultGCInterval, GCPerMinute: operate.DefaultGCPerMinute, MaxImports: serviceimports.MaxImports, ImportSlices: true, ServiceFormats: preferServices},
		Allocation: AllocationConfig{Mode: string(modes.KVStore), Namespace: "kube-system"},
		Mirror: MirrorConfig{
			ReadyTimeout: mirrored.ReadyTimeout, SyncTimeout: mirrored.SyncTimeout, DrainDelay: mirrored.DrainDelay,
			Writes: mirrored.Rate.Writes, Bytes: quantity(mirrored.Rate.Bytes), Quota: quantity(mirrored.Room.Quota), StopAt: mirrored.Room.StopAt,
		},
		Claims:    ClaimsConfig{ClaimPolicy: string(claims.Report)},
		Serving:   defaultServing(),
		Listen:    api.DefaultListen,
		Listening: ListenConfig{UI: true, Limits: DefaultListenLimits()},
		Socket:    api.DefaultSocket,
		LogLevel:  "info",
		LogFormat: "text",
	}
}

// Flags registers the flags. It implements hive's cell.Flagger.
func (c Config) Flags(f *pflag.FlagSet) {
	addFlags(f, reflect.ValueOf(c), "")
	f.Lookup(DisconnectPolicy).Usage, f.Lookup(RemoteBudget).Usage = policyHelp(), budgetHelp()
}

// addFlags adds a flag for each field, with its value as the default.
func addFlags(f *pflag.FlagSet, settings reflect.Value, subject string) {
	for field, v := range settings.Fields() {
		name, help := field.Tag.Get("mapstructure"), field.Tag.Get("help")
		about := cmp.Or(field.Tag.Get("subject"), subject)
		switch value := v.Interface().(type) {
		case string:
			f.String(name, value, help)
		case bool:
			f.Bool(name, value, help)
		case int:
			f.Int(name, value, help)
		case uint32:
			f.Uint32(name, value, help)
		case time.Duration:
			f.Duration(name, value, help)
		case map[string]string:
			f.Var(new(keyValues), name, help)
		default: // a struct with the settings of a subject
			addFlags(f, v, about)
			continue
		}
		f.Lookup(name).Annotations = map[string][]string{
			subjectOfFlag: {about}, modesOfFlag: strings.Fields(field.Tag.Get("modes")),
		}
	}
}

// Own returns the own cluster.
func (c Config) Own() wire.ClusterInfo {
	return wire.ClusterInfo{Name: c.ClusterName, ID: c.ClusterID, MaxConnectedClusters: c.MaxConnectedClusters}
}

// InForce returns the settings in force, without secrets.
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

// KVStoreFlag is the flag whose value is a map of options.
const KVStoreFlag = "kvstore-opt"

// Harmless returns the value of a flag without parts that may be secret.
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

// Validate reports all mistakes at once.
func (c Config) Validate() error { return errors.Join(c.mistakes()...) }

// mistakes returns the mistakes in the settings, each a *settingError.
func (c Config) mistakes() (errs []error) {
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
	if c.RemoteMemory != "" {
		_, err = budget.ParseSize(c.RemoteMemory)
		note("remote-memory", err)
	}
	_, err = etcd.ParseOptions(c.KVStoreOpt)
	note("kvstore-opt", err)
	c.KVStore.validate(note)
	c.Local.validate(note)
	c.Operate.validate(note, c.ClusterName, c.Local)
	c.ValidateAllocation(note)
	c.Mirror.validate(note)
	c.Claims.validate(note)
	if _, err := c.NodeAddress(); c.NodeIP != "" {
		note("node-ip", err)
	}
	c.Serving.validate(note, c.Listening)
	c.Listening.validate(note, c.Listen)
	note("log-level", logging.CheckLevel(c.LogLevel))
	note("log-format", logging.CheckFormat(c.LogFormat))
	return errs
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

// checkDirectory accepts a directory that can be watched, also one that does not exist yet.
func checkDirectory(path string) error {
	if path == "" {
		return errors.New("must name a directory")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // the agent waits for it, with a warning
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
