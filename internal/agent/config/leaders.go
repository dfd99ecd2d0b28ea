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
	GCInterval     time.Duration `flag:"identity-gc-interval" rule:"not negative" modes:"operate" help:"interval of identity garbage collection; an identity that is unused in two consecutive rounds is deleted; 0 disables it"`
	GCPerMinute    int           `flag:"identity-gc-rate-limit" rule:"not negative" modes:"operate" help:"maximum number of identities to delete per minute; 0 is no limit"`
	ServiceExports bool          `flag:"clustermesh-enable-mcs-api" modes:"operate" help:"publish the ServiceExports of the own cluster"`
	// ServiceFormats has the name of Cilium's setting. In Cilium, it also sets which formats the agents read.
	ServiceFormats string `flag:"clustermesh-service-v2" modes:"operate" help:"formats in which global Services are published: prefer-legacy or prefer-endpointslice for both formats, only-endpointslice for EndpointSlices alone, which Cilium reads from release 1.20 on"`
	// NodesAndAddresses is for a cluster whose agents do not write to its kvstore.
	NodesAndAddresses bool `flag:"publish-nodes-and-addresses" modes:"operate" help:"also publish the nodes and addresses of the own cluster, from CiliumNodes, CiliumEndpoints and CiliumEndpointSlices; for clusters where Cilium does not write to the kvstore (CRD mode)"`
	EndpointSlices    bool `flag:"endpoint-slices" modes:"operate" help:"write EndpointSlices of remote backends for global Services that request them, so that kube-proxy reaches these backends (docs/endpointslices.md); reads the clusters of the mesh directory"`
	// MCSAPI is separate from ServiceExports, which has the name of Cilium's setting. Publishing needs no right to
	// write objects, and where Cilium's operator writes the imports, no other program may write them.
	MCSAPI bool `flag:"mcs-api" modes:"operate" help:"publish the ServiceExports of the own cluster, and import those of all clusters: write ServiceImports, derived Services and conditions (docs/mcs.md); reads the clusters of the mesh directory"`
	// Limits of the objects that remote exports cause in the own cluster.
	MaxImports         uint32 `flag:"mcs-max-imports" modes:"operate" help:"with --mcs-api, maximum number of services to import that the own cluster does not export; a cluster can have 25 % of it, or with more than four remote clusters its equal share, and a namespace of a cluster half of that"`
	AllowedLabels      string `flag:"mcs-allowed-labels" modes:"operate" help:"with --mcs-api, labels of remote ServiceExports to set on ServiceImports and derived Services: keys, or all of a domain as example.com/*, separated by commas"`
	AllowedAnnotations string `flag:"mcs-allowed-annotations" modes:"operate" help:"with --mcs-api, annotations of remote ServiceExports to set on ServiceImports and derived Services: keys, or all of a domain as service.cilium.io/*, separated by commas"`
	ImportSlices       bool   `flag:"mcs-endpoint-slices" modes:"operate" help:"with --mcs-api, write EndpointSlices of the remote backends of each import, so that kube-proxy reaches them; false if the data path knows them without, like Cilium's. The exported annotation service.cilium.io/global-sync-endpoint-slices decides for one service"`
	OwnAddresses       bool   `flag:"endpoint-slices-own-addresses" modes:"operate" help:"in EndpointSlices, also write remote backends that have addresses of the own cluster: of its pod and service networks, nodes and Services"`
	InstallCRDs        bool   `flag:"install-crds" modes:"operate" help:"with --mcs-api, install or update the CustomResourceDefinitions of ServiceExport and ServiceImport"`
	EnsureUsers        bool   `flag:"kvstore-ensure-users" modes:"operate" help:"create the users and roles of a mesh in the own etcd, and enable its authentication"`
	UsersFile          string `flag:"kvstore-users-file" modes:"operate" help:"YAML file with more users of the own etcd, such as users: [{name: remote-east, role: remote}]"`
}

func (c *Config) parseOperate(wrong *mistakes) {
	o, from := c.Operate, c.Local
	switch o.ServiceFormats {
	case preferServices, preferSlices, onlySlices:
	default:
		wrong.note("clustermesh-service-v2", fmt.Errorf("%q is none of %s, %s and %s", o.ServiceFormats, preferServices, preferSlices, onlySlices))
	}
	if o.EndpointSlices && !from.FromKubernetes() {
		wrong.note(EndpointSlices, errors.New("they are written to the Kubernetes API: say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE"))
	}
	if o.MCSAPI && !from.FromKubernetes() {
		wrong.note(MCSAPI, errors.New("imports are written to the Kubernetes API: say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE"))
	}
	if o.InstallCRDs && !o.MCSAPI {
		wrong.note(InstallCRDs, errors.New("it is only for --mcs-api"))
	}
	if o.MaxImports == 0 {
		wrong.note("mcs-max-imports", errors.New("want at least 1; without --mcs-api nothing is imported"))
	}
	c.ExportLabels = parsed(wrong, "mcs-allowed-labels", mcs.ParseAllowed, o.AllowedLabels)
	c.ExportAnnotations = parsed(wrong, "mcs-allowed-annotations", mcs.ParseAllowed, o.AllowedAnnotations)
	if o.NodesAndAddresses && !from.Given() {
		wrong.note(NodesAndAddresses, errors.New("there is no description of the own cluster: give --kubernetes, --kubeconfig or --local-manifests"))
	}
	if o.UsersFile == "" {
		return
	}
	if !o.EnsureUsers {
		wrong.note("kvstore-users-file", errors.New("it is only read with --kvstore-ensure-users"))
	}
	_, err := rights.ReadUsers(o.UsersFile, c.ClusterName)
	wrong.note("kvstore-users-file", err)
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
	ReadyTimeout time.Duration `flag:"per-cluster-ready-timeout" rule:"not negative" modes:"mirror" help:"time that readiness waits for a cluster without a connection"`
	SyncTimeout  time.Duration `flag:"global-ready-timeout" rule:"not negative" modes:"mirror" help:"time that readiness waits for the copies of all clusters"`
	DrainDelay   time.Duration `flag:"drain-delay" rule:"not negative" modes:"mirror" help:"time between the deletion of a removed cluster's configuration and the deletion of its entries, in which agents drain the cluster"`
	KeepRemoved  bool          `flag:"disable-drain-on-disconnection" modes:"mirror" help:"keep the copy of a cluster when its client file is removed; the copy ends with the leases of the mirror"`
	// Limits of the copies in the own etcd.
	Writes int    `flag:"remote-write-rate" rule:"not negative" modes:"mirror" help:"maximum average number of keys per second to write for one remote cluster, with bursts of 500,000; 0 is no limit"`
	Bytes  string `flag:"remote-byte-rate" modes:"mirror" help:"maximum average number of bytes per second to write for one remote cluster, with bursts of 256Mi; 0 is no limit"`
	Quota  string `flag:"own-kvstore-quota" modes:"mirror" help:"value of --quota-backend-bytes of the own etcd; only for an etcd before 3.6, which does not report it"`
	StopAt int    `flag:"own-kvstore-stop-at" modes:"mirror" help:"percentage of the own etcd's quota above which the mirror copies only deletions; 0 never stops"`
}

func (c *Config) parseMirror(wrong *mistakes) {
	m := c.Mirror
	c.MirrorRate = mirror.DefaultRate()
	c.MirrorRate.Writes, c.MirrorRate.Bytes = m.Writes, parsed(wrong, "remote-byte-rate", budget.ParseSize, m.Bytes)
	c.MirrorRoom = mirror.Room{Quota: parsed(wrong, "own-kvstore-quota", budget.ParseSize, m.Quota), StopAt: m.StopAt}
	c.MirrorBudget, _ = budget.ParseOn(mirror.DefaultBudget(), c.Flags.RemoteBudget) // has the mistakes of RemoteBudget
	if m.StopAt != 0 && (m.StopAt < 10 || m.StopAt > 90) {
		wrong.note("own-kvstore-stop-at", fmt.Errorf("%d is not in 10..90, nor 0", m.StopAt))
	}
}

// The default limits of the writers that a cluster has only one of, in operations per second (wire.md §5).
const (
	operateQPS = 50
	mirrorQPS  = 100
)

const mirrorAsks = 5 * time.Second // interval of the checks how full the own etcd is

// WriterOptions returns the options of the writer of a mode: KVStoreOptions with its limit of operations per second,
// unless one is given, and with the status intervals of a mirror.
func (c Config) WriterOptions(m Mode) etcd.Options {
	o := c.KVStoreOptions()
	_, given := c.Flags.KVStoreOpt[etcd.OptionQPS]
	switch {
	case m == ModeOperate && !given:
		o.QPS = operateQPS
	case m == ModeMirror && !given:
		o.QPS = mirrorQPS
	}
	if m == ModeMirror {
		o.Timings.StatusInterval, o.Timings.StatusRetry = mirrorAsks, mirrorAsks
	}
	return o
}

func quantity(bytes int64) string { return quantities.NewQuantity(bytes, quantities.BinarySI).String() }
