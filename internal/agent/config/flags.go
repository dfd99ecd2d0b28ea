package config

import (
	"cmp"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/mesh-agent/mesh-agent/internal/kube/serviceimports"
	"github.com/mesh-agent/mesh-agent/internal/own/mirror"
	"github.com/mesh-agent/mesh-agent/internal/own/operate"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/api"
	"github.com/mesh-agent/mesh-agent/pkg/claims"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/clientfile"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// Flags are the values of the flags of `run`, `operate` and `mirror`, as they are given (see Settings). The tags of a
// field have the name of its flag, its help, the subject under which the help shows it, the modes that use it, unless
// all do, and the rule that a number must keep (see checkNumber).
type Flags struct {
	ClusterName            string            `flag:"cluster-name" subject:"Own cluster" help:"name of the own cluster"`
	ClusterID              uint32            `flag:"cluster-id" subject:"Own cluster" help:"ID of the own cluster, 1 to 255 (1 to 511 with --max-connected-clusters=511); with 0 the agent only reads"`
	MaxConnectedClusters   uint32            `flag:"max-connected-clusters" subject:"Own cluster" help:"maximum number of clusters in the mesh, 255 or 511; all clusters must have the same value"`
	ClusterSize            uint32            `flag:"cluster-size" subject:"Own cluster" help:"number of nodes of the own cluster; agents of large clusters check an etcd less often and wait longer before they reconnect (docs/performance.md); 0 counts the nodes, or is 1 without a kvstore and a description of the own cluster"`
	NodeName               string            `flag:"node-name" subject:"Own cluster" help:"name of this node"`
	ClustermeshConfig      string            `flag:"clustermesh-config" subject:"Remote clusters" help:"mesh directory, with one etcd client file for each remote cluster"`
	ClustermeshSyncTimeout time.Duration     `flag:"clustermesh-sync-timeout" rule:"not negative" modes:"run operate" subject:"Remote clusters" help:"time that readiness waits for clusters that do not answer"`
	ClustermeshCacheTTL    time.Duration     `flag:"clustermesh-cache-ttl" subject:"Remote clusters" help:"time without contact after which the service backends of a cluster are no longer used; 0 keeps them"`
	DisconnectPolicy       map[string]string `flag:"disconnect-policy" modes:"run operate" subject:"Remote clusters" help:"disconnect policy (docs/policy.md): time without confirmation until the service backends of a cluster are used only if no other cluster has one (demote=2m); until they are removed if another cluster has one (withdraw=15m); time without a heartbeat until they are demoted (silence=10m); time that a cluster must be confirmed until it is restored (restore=30s); 0 is never; CLUSTER.demote and so on for one cluster; repeat the flag, or give one JSON map"`
	RemoteBudget           map[string]string `flag:"remote-budget" subject:"Remote clusters" help:"limits of a remote cluster (docs/budgets.md): keys and bytes of a resource (ips.keys=1000000, nodes.bytes=128Mi), bytes of a value (value=1536Ki), events per second (events=10000), duration of a list (list=10m); 0 is no limit; CLUSTER.ips.keys and so on for one cluster; repeat the flag, or give one JSON map"`
	RemoteMemory           string            `flag:"remote-memory" modes:"run operate" subject:"Remote clusters" help:"memory limit for the entries of all remote clusters together, such as 600Mi (an estimate); empty is 70 % of GOMEMLIMIT, which follows the memory limit of the container; 0 is no limit (docs/budgets.md)"`
	KVStoreOpt             map[string]string `flag:"kvstore-opt" subject:"Etcd clients" help:"option of the etcd clients; etcd.config (a client file) or etcd.address name the own cluster's etcd; etcd.qps is the limit of operations per second, etcd.bootstrapQps the limit before the first sync is complete and in commands such as 'kvstore get'; repeat the flag, or give one JSON map"`
	KVStore                KVStoreConfig     `subject:"Etcd clients"`
	NodeIP                 string            `flag:"node-ip" subject:"Own cluster" help:"address of this node, which the agent writes into identity references; default: the node's address in the description of the own cluster, otherwise the first global address"`
	Local                  LocalConfig       `subject:"Own cluster"`
	Operate                OperateConfig     `subject:"Publishing"`
	Allocation             AllocationConfig  `subject:"Identities"`
	Mirror                 MirrorConfig      `subject:"Mirror"`
	Claims                 ClaimsConfig      `subject:"Claims of remote clusters"`
	Serving                ServingConfig     `subject:"Preferred backends"`
	Listen                 string            `flag:"listen" subject:"HTTP API" help:"address of the HTTP API, the health checks and the metrics"`
	Listening              ListenConfig      `subject:"HTTP API"`
	Socket                 string            `flag:"socket" subject:"HTTP API" help:"unix socket of the HTTP API"`
	DebugPprof             bool              `flag:"debug-pprof" subject:"HTTP API" help:"serve Go profiles at /debug/pprof/ on the unix socket"`
	LogLevel               string            `flag:"log-level" subject:"Log" help:"log level: error, warn, info or debug"`
	LogFormat              string            `flag:"log-format" subject:"Log" help:"log format: text or json"`
}

// Default returns the flags without any setting.
func Default() Flags {
	node, err := os.Hostname()
	if err != nil {
		node = "localhost"
	}
	kv, mirrored := etcd.DefaultOptions(), mirror.DefaultParams()
	return Flags{
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

// bind registers the flags: setting one sets its field, whose value is the default.
func (f *Flags) bind(to *pflag.FlagSet) {
	visit(reflect.ValueOf(f).Elem(), "", func(field reflect.StructField, v reflect.Value, subject string) {
		name, help := field.Tag.Get("flag"), field.Tag.Get("help")
		switch p := v.Addr().Interface().(type) {
		case *string:
			to.StringVar(p, name, *p, help)
		case *bool:
			to.BoolVar(p, name, *p, help)
		case *int:
			to.IntVar(p, name, *p, help)
		case *uint32:
			to.Uint32Var(p, name, *p, help)
		case *time.Duration:
			to.DurationVar(p, name, *p, help)
		case *map[string]string:
			to.Var((*keyValues)(p), name, help)
		default:
			panic("config: the field of --" + name + " has a type that no flag can have")
		}
		to.Lookup(name).Annotations = map[string][]string{subjectOfFlag: {subject}, modesOfFlag: strings.Fields(field.Tag.Get("modes"))}
	})
}

// visit calls f for the field of each flag, with its subject.
func visit(flags reflect.Value, subject string, f func(field reflect.StructField, v reflect.Value, subject string)) {
	for field, v := range flags.Fields() {
		about := cmp.Or(field.Tag.Get("subject"), subject)
		if field.Tag.Get("flag") == "" { // a struct with the flags of a subject
			visit(v, about, f)
			continue
		}
		f(field, v, about)
	}
}

// InForce returns the settings in force, without secrets.
func (f Flags) InForce() api.Settings {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.bind(flags)
	settings := make(api.Settings)
	flags.VisitAll(func(f *pflag.Flag) { settings[f.Name] = Harmless(f.Name, f.Value.String()) })
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
