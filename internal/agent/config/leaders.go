package config

import (
	"errors"
	"fmt"
	"time"

	quantities "k8s.io/apimachinery/pkg/api/resource"

	"github.com/mesh-agent/mesh-agent/internal/base/exit"
	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
	"github.com/mesh-agent/mesh-agent/internal/own/mirror"
	"github.com/mesh-agent/mesh-agent/internal/own/rights"
	"github.com/mesh-agent/mesh-agent/pkg/budget"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/etcd"
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

// The formats of services that are published (spec wire.md §1.4).
const (
	preferServices = "prefer-legacy"
	preferSlices   = "prefer-endpointslice"
	onlySlices     = "only-endpointslice"
)

// OperateConfig are the settings of `operate`.
type OperateConfig struct {
	GCInterval     time.Duration `mapstructure:"identity-gc-interval" modes:"operate" help:"interval of identity garbage collection; an identity that is unused in two consecutive rounds is deleted; 0 disables it"`
	GCPerMinute    int           `mapstructure:"identity-gc-rate-limit" modes:"operate" help:"maximum number of identities to delete per minute; 0 is no limit"`
	ServiceExports bool          `mapstructure:"clustermesh-enable-mcs-api" modes:"operate" help:"publish the ServiceExports of the own cluster"`
	// ServiceFormats has the name of Cilium's setting. In Cilium, it also sets which formats the agents read.
	ServiceFormats string `mapstructure:"clustermesh-service-v2" modes:"operate" help:"formats in which global Services are published: prefer-legacy or prefer-endpointslice for both formats, only-endpointslice for EndpointSlices alone, which Cilium reads from release 1.20 on"`
	// NodesAndAddresses is for a cluster whose agents do not write to its kvstore.
	NodesAndAddresses bool `mapstructure:"publish-nodes-and-addresses" modes:"operate" help:"also publish the nodes and addresses of the own cluster, from CiliumNodes, CiliumEndpoints and CiliumEndpointSlices; for clusters where Cilium does not write to the kvstore (CRD mode)"`
	EndpointSlices    bool `mapstructure:"endpoint-slices" modes:"operate" help:"write EndpointSlices of remote backends for global Services that request them, so that kube-proxy reaches these backends (docs/endpointslices.md); reads the clusters of the mesh directory"`
	// MCSAPI is separate from ServiceExports, which has the name of Cilium's setting. Publishing needs no right to
	// write objects, and where Cilium's operator writes the imports, no other program may write them.
	MCSAPI bool `mapstructure:"mcs-api" modes:"operate" help:"publish the ServiceExports of the own cluster, and import those of all clusters: write ServiceImports, derived Services and conditions (docs/mcs.md); reads the clusters of the mesh directory"`
	// Limits of the objects that remote exports cause in the own cluster.
	MaxImports         uint32 `mapstructure:"mcs-max-imports" modes:"operate" help:"with --mcs-api, maximum number of services to import that the own cluster does not export; a cluster can have 25 % of it, or with more than four remote clusters its equal share, and a namespace of a cluster half of that"`
	AllowedLabels      string `mapstructure:"mcs-allowed-labels" modes:"operate" help:"with --mcs-api, labels of remote ServiceExports to set on ServiceImports and derived Services: keys, or all of a domain as example.com/*, separated by commas"`
	AllowedAnnotations string `mapstructure:"mcs-allowed-annotations" modes:"operate" help:"with --mcs-api, annotations of remote ServiceExports to set on ServiceImports and derived Services: keys, or all of a domain as service.cilium.io/*, separated by commas"`
	ImportSlices       bool   `mapstructure:"mcs-endpoint-slices" modes:"operate" help:"with --mcs-api, write EndpointSlices of the remote backends of each import, so that kube-proxy reaches them; false if the data path knows them without, like Cilium's. The exported annotation service.cilium.io/global-sync-endpoint-slices decides for one service"`
	OwnAddresses       bool   `mapstructure:"endpoint-slices-own-addresses" modes:"operate" help:"in EndpointSlices, also write remote backends that have addresses of the own cluster: of its pod and service networks, nodes and Services"`
	InstallCRDs        bool   `mapstructure:"install-crds" modes:"operate" help:"with --mcs-api, install or update the CustomResourceDefinitions of ServiceExport and ServiceImport"`
	EnsureUsers        bool   `mapstructure:"kvstore-ensure-users" modes:"operate" help:"create the users and roles of a mesh in the own etcd, and enable its authentication"`
	UsersFile          string `mapstructure:"kvstore-users-file" modes:"operate" help:"YAML file with more users of the own etcd, such as users: [{name: remote-east, role: remote}]"`
}

func (c OperateConfig) validate(note func(flag string, err error), cluster string, from LocalConfig) {
	switch c.ServiceFormats {
	case preferServices, preferSlices, onlySlices:
	default:
		note("clustermesh-service-v2", fmt.Errorf("%q is none of %s, %s and %s", c.ServiceFormats, preferServices, preferSlices, onlySlices))
	}
	if c.EndpointSlices && !from.FromKubernetes() {
		note(EndpointSlices, errors.New("they are written to the Kubernetes API: say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE"))
	}
	if c.MCSAPI && !from.FromKubernetes() {
		note(MCSAPI, errors.New("imports are written to the Kubernetes API: say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE"))
	}
	if c.InstallCRDs && !c.MCSAPI {
		note(InstallCRDs, errors.New("it is only for --mcs-api"))
	}
	if c.MaxImports == 0 {
		note("mcs-max-imports", errors.New("want at least 1; without --mcs-api nothing is imported"))
	}
	_, err := mcs.ParseAllowed(c.AllowedLabels)
	note("mcs-allowed-labels", err)
	_, err = mcs.ParseAllowed(c.AllowedAnnotations)
	note("mcs-allowed-annotations", err)
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
	_, err = rights.ReadUsers(c.UsersFile, cluster)
	note("kvstore-users-file", err)
}

// Allowed returns the labels and the annotations of remote exports that own objects may have.
func (c OperateConfig) Allowed() (labels, annotations mcs.Allowed, err error) {
	labels, errLabels := mcs.ParseAllowed(c.AllowedLabels)
	annotations, errAnnotations := mcs.ParseAllowed(c.AllowedAnnotations)
	return labels, annotations, errors.Join(errLabels, errAnnotations)
}

// PublishesExports reports whether other clusters read the ServiceExports of the own one.
func (c OperateConfig) PublishesExports() bool { return c.ServiceExports || c.MCSAPI }

// PublishesSlicesOnly reports whether services are published as EndpointSlices alone.
func (c OperateConfig) PublishesSlicesOnly() bool { return c.ServiceFormats == onlySlices }

// WritesSlices reports whether EndpointSlices of remote backends are written.
func (c OperateConfig) WritesSlices() bool { return c.EndpointSlices || c.MCSAPI && c.ImportSlices }

// WhichSlices returns the imports for which slices are written.
func (c OperateConfig) WhichSlices() mcs.WhichSlices {
	switch {
	case c.ImportSlices:
		return mcs.AllSlices
	case c.EndpointSlices:
		return mcs.RequestedSlices
	}
	return mcs.NoSlices
}

// ReadsRemotes reports whether an operator reads the clusters of the mesh directory.
func (c OperateConfig) ReadsRemotes() bool { return c.EndpointSlices || c.MCSAPI }

// Users returns the users that the own cluster's etcd must have. It reads the users file each time.
func (c Config) Users() ([]rights.User, error) {
	if err := wire.ValidateClusterName(c.ClusterName); err != nil {
		return nil, exit.Usagef("--cluster-name: %q %w", c.ClusterName, err)
	}
	if c.ClusterName == wire.DefaultClusterName {
		return nil, exit.UsageError{Err: errors.New("whose users? Give the name of the own cluster with --cluster-name")}
	}
	users := rights.Users(c.ClusterName)
	if c.Operate.UsersFile == "" {
		return users, nil
	}
	more, err := rights.ReadUsers(c.Operate.UsersFile, c.ClusterName)
	if err != nil {
		return nil, exit.Usagef("--kvstore-users-file: %w", err)
	}
	return append(users, more...), nil
}

// MirrorConfig are the settings of `mirror`.
type MirrorConfig struct {
	ReadyTimeout time.Duration `mapstructure:"per-cluster-ready-timeout" modes:"mirror" help:"time that readiness waits for a cluster without a connection"`
	SyncTimeout  time.Duration `mapstructure:"global-ready-timeout" modes:"mirror" help:"time that readiness waits for the copies of all clusters"`
	DrainDelay   time.Duration `mapstructure:"drain-delay" modes:"mirror" help:"time between the deletion of a removed cluster's configuration and the deletion of its entries, in which agents drain the cluster"`
	KeepRemoved  bool          `mapstructure:"disable-drain-on-disconnection" modes:"mirror" help:"keep the copy of a cluster when its client file is removed; the copy ends with the leases of the mirror"`
	// Limits of the copies in the own etcd.
	Writes int    `mapstructure:"remote-write-rate" modes:"mirror" help:"maximum average number of keys per second to write for one remote cluster, with bursts of 500,000; 0 is no limit"`
	Bytes  string `mapstructure:"remote-byte-rate" modes:"mirror" help:"maximum average number of bytes per second to write for one remote cluster, with bursts of 256Mi; 0 is no limit"`
	Quota  string `mapstructure:"own-kvstore-quota" modes:"mirror" help:"value of --quota-backend-bytes of the own etcd; only for an etcd before 3.6, which does not report it"`
	StopAt int    `mapstructure:"own-kvstore-stop-at" modes:"mirror" help:"percentage of the own etcd's quota above which the mirror copies only deletions; 0 never stops"`
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

// mirrorQPS is a mirror's default limit of operations per second (wire.md §5).
const mirrorQPS = 100

const mirrorAsks = 5 * time.Second // interval of the checks how full the own etcd is

// MirrorLimits sets the limits of a mirror's kvstore client: the operations per second unless they are given, and the
// status intervals.
func MirrorLimits(o *etcd.Options, given map[string]string) {
	if _, has := given[etcd.OptionQPS]; !has {
		o.QPS = mirrorQPS
	}
	o.Timings.StatusInterval, o.Timings.StatusRetry = mirrorAsks, mirrorAsks
}

// Rate returns the write rate of one remote cluster. The settings are validated before: ParseSize cannot fail.
func (c MirrorConfig) Rate() syncstore.Rate {
	r := mirror.DefaultRate()
	r.Writes = c.Writes
	r.Bytes, _ = budget.ParseSize(c.Bytes)
	return r
}

// Room returns how full the own etcd may become.
func (c MirrorConfig) Room() mirror.Room {
	quota, _ := budget.ParseSize(c.Quota)
	return mirror.Room{Quota: quota, StopAt: c.StopAt}
}

func quantity(bytes int64) string { return quantities.NewQuantity(bytes, quantities.BinarySI).String() }
