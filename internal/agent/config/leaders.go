package config

import (
	"errors"
	"fmt"
	"time"

	quantities "k8s.io/apimachinery/pkg/api/resource"

	"github.com/mesh-agent/mesh-agent/internal/exit"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
	"github.com/mesh-agent/mesh-agent/pkg/mirror"
	"github.com/mesh-agent/mesh-agent/pkg/operate"
	"github.com/mesh-agent/mesh-agent/pkg/store/syncstore"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// EndpointSlices is the flag for EndpointSlices of remote backends.
const EndpointSlices = "endpoint-slices"

// MCSAPI is the flag for the objects of the MCS API, InstallCRDs that for the definitions of their kinds.
const (
	MCSAPI      = "mcs-api"
	InstallCRDs = "install-crds"
)

// OperateConfig are the settings of `operate`.
type OperateConfig struct {
	GCInterval     time.Duration `mapstructure:"identity-gc-interval" help:"operate: time between two rounds that delete identities which nobody uses in both; 0 never does"`
	GCPerMinute    int           `mapstructure:"identity-gc-rate-limit" help:"operate: how many identities are deleted in a minute at most; 0 is no limit"`
	ServiceExports bool          `mapstructure:"clustermesh-enable-mcs-api" help:"operate: publish the ServiceExports of the own cluster"`
	// NodesAndAddresses is for a cluster whose agents do not write to its kvstore.
	NodesAndAddresses bool `mapstructure:"publish-nodes-and-addresses" help:"operate: publish the nodes and addresses of the own cluster too, from its CiliumNodes and CiliumEndpoints, where Cilium does not write to its kvstore (CRD mode)"`
	EndpointSlices    bool `mapstructure:"endpoint-slices" help:"operate: write EndpointSlices of remote backends for the global Services that ask for them, so that kube-proxy reaches them (docs/endpointslices.md); the remote clusters are those of the mesh directory"`
	// MCSAPI is apart from ServiceExports, as Cilium names that: publishing needs no right to write, and
	// where Cilium's operator writes the imports nobody else may.
	MCSAPI      bool   `mapstructure:"mcs-api" help:"operate: publish the ServiceExports of the own cluster, and import what clusters export: write ServiceImports, their derived Services and conditions (docs/mcs.md); the remote clusters are those of the mesh directory"`
	InstallCRDs bool   `mapstructure:"install-crds" help:"operate: with --mcs-api, define ServiceExport and ServiceImport in the Kubernetes API where they are not, or in an older release"`
	EnsureUsers bool   `mapstructure:"kvstore-ensure-users" help:"operate: give the own etcd the users and roles of a mesh, and turn authentication on"`
	UsersFile   string `mapstructure:"kvstore-users-file" help:"operate, users: YAML file with further users of the own etcd: users: [{name: remote-east, role: remote}]"`
}

func (c OperateConfig) validate(note func(flag string, err error), cluster string, from LocalConfig) {
	if c.EndpointSlices && !from.FromKubernetes() {
		note(EndpointSlices, errors.New("they are written to the Kubernetes API: say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE"))
	}
	if c.MCSAPI && !from.FromKubernetes() {
		note(MCSAPI, errors.New("imports are written to the Kubernetes API: say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE"))
	}
	if c.InstallCRDs && !c.MCSAPI {
		note(InstallCRDs, errors.New("it is only for --mcs-api"))
	}
	if c.NodesAndAddresses && !from.Given() {
		note("publish-nodes-and-addresses", errors.New("there is no description of the own cluster: give --kubernetes, --kubeconfig or --local-manifests"))
	}
	note("identity-gc-interval", notNegative(c.GCInterval))
	note("identity-gc-rate-limit", notNegative(c.GCPerMinute))
	if c.UsersFile == "" {
		return
	}
	if !c.EnsureUsers {
		note("kvstore-users-file", errors.New("it is only read with --kvstore-ensure-users"))
	}
	_, err := operate.ReadUsers(c.UsersFile, cluster)
	note("kvstore-users-file", err)
}

// PublishesExports tells whether other clusters read the ServiceExports of the own one.
func (c OperateConfig) PublishesExports() bool { return c.ServiceExports || c.MCSAPI }

// ReadsRemotes tells whether an operator reads the clusters of the mesh directory.
func (c OperateConfig) ReadsRemotes() bool { return c.EndpointSlices || c.MCSAPI }

// Users are those that the own cluster's etcd is to have. The file is read each time.
func (c Config) Users() ([]operate.User, error) {
	if err := wire.ValidateClusterName(c.ClusterName); err != nil {
		return nil, exit.Usagef("--cluster-name: %q %w", c.ClusterName, err)
	}
	if c.ClusterName == wire.DefaultClusterName {
		return nil, exit.UsageError{Err: errors.New("whose users? Give the name of the own cluster with --cluster-name")}
	}
	users := operate.Users(c.ClusterName)
	if c.Operate.UsersFile == "" {
		return users, nil
	}
	more, err := operate.ReadUsers(c.Operate.UsersFile, c.ClusterName)
	if err != nil {
		return nil, exit.Usagef("--kvstore-users-file: %w", err)
	}
	return append(users, more...), nil
}

// MirrorConfig are the settings of `mirror`.
type MirrorConfig struct {
	ReadyTimeout time.Duration `mapstructure:"per-cluster-ready-timeout" help:"mirror: how long readiness waits for a cluster that cannot be connected"`
	SyncTimeout  time.Duration `mapstructure:"global-ready-timeout" help:"mirror: how long readiness waits until all clusters are copied"`
	DrainDelay   time.Duration `mapstructure:"drain-delay" help:"mirror: time between the withdrawal of a removed cluster's configuration and that of its entries; agents drain it meanwhile"`
	KeepRemoved  bool          `mapstructure:"disable-drain-on-disconnection" help:"mirror: leave the copies of clusters whose client file is gone; they end with the mirror's leases"`
	// What the copies may take of the own etcd.
	Writes int    `mapstructure:"remote-write-rate" help:"mirror: how many keys a second are written of one remote cluster in the long run; 500,000 at once are always; 0 is no bound"`
	Bytes  string `mapstructure:"remote-byte-rate" help:"mirror: how many bytes a second are written of one remote cluster in the long run; 256Mi at once are always; 0 is no bound"`
	Quota  string `mapstructure:"own-kvstore-quota" help:"mirror: the own etcd's --quota-backend-bytes, where it does not tell by itself (before 3.6)"`
	StopAt int    `mapstructure:"own-kvstore-stop-at" help:"mirror: percentage of the own etcd's quota from which on only deletions are copied; 0 never stops"`
}

func (c MirrorConfig) validate(note func(flag string, err error)) {
	note("per-cluster-ready-timeout", notNegative(c.ReadyTimeout))
	note("global-ready-timeout", notNegative(c.SyncTimeout))
	note("drain-delay", notNegative(c.DrainDelay))
	note("remote-write-rate", notNegative(c.Writes))
	_, err := budget.ParseSize(c.Bytes)
	note("remote-byte-rate", err)
	_, err = budget.ParseSize(c.Quota)
	note("own-kvstore-quota", err)
	if c.StopAt != 0 && (c.StopAt < 10 || c.StopAt > 90) {
		note("own-kvstore-stop-at", fmt.Errorf("%d is not in 10..90, nor 0", c.StopAt))
	}
}

// mirrorQPS is a mirror's limit of operations a second where none is given (wire.md §5).
const mirrorQPS = 100

const mirrorAsks = 5 * time.Second // between two questions how full the own etcd is

// MirrorLimits sets the limits of a mirror's kvstore client where none are given.
func MirrorLimits(o *etcd.Options, given map[string]string) {
	if _, has := given[etcd.OptionQPS]; !has {
		o.QPS = mirrorQPS
	}
	o.Timings.StatusInterval, o.Timings.StatusRetry = mirrorAsks, mirrorAsks
}

// Rate is that of one remote. What is validated is a number.
func (c MirrorConfig) Rate() syncstore.Rate {
	r := mirror.DefaultRate()
	r.Writes = c.Writes
	r.Bytes, _ = budget.ParseSize(c.Bytes)
	return r
}

// Room is how full the own etcd may become.
func (c MirrorConfig) Room() mirror.Room {
	quota, _ := budget.ParseSize(c.Quota)
	return mirror.Room{Quota: quota, StopAt: c.StopAt}
}

func quantity(bytes int64) string { return quantities.NewQuantity(bytes, quantities.BinarySI).String() }
