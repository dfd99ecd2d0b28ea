package main

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"

	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
	"github.com/mesh-agent/mesh-agent/pkg/local/kubernetes"
)

// allocationMode is the flag that says where identities are allocated.
const allocationMode = "identity-allocation-mode"

// AllocationConfig says where identities are allocated.
type AllocationConfig struct {
	Mode      string `mapstructure:"identity-allocation-mode"`
	Namespace string `mapstructure:"k8s-namespace"`
}

func defaultAllocationConfig() AllocationConfig {
	return AllocationConfig{Mode: string(modes.KVStore), Namespace: "kube-system"}
}

func (c AllocationConfig) flags(f *pflag.FlagSet) {
	f.String(allocationMode, c.Mode, "run, operate: where identities are allocated: kvstore, crd (CiliumIdentities of the Kubernetes API), or both while they move: doublewrite-readkvstore, doublewrite-readcrd")
	f.String("k8s-namespace", c.Namespace, "namespace of the Leases in which nodes say which identities of the Kubernetes API they use")
}

// mode is valid once the configuration is.
func (c AllocationConfig) mode() modes.Mode { return modes.Mode(c.Mode) }

// validateAllocation says what the mode of the identities is missing.
func (c Config) validateAllocation(note func(flag string, err error)) {
	m, err := modes.Parse(c.Allocation.Mode)
	if err != nil {
		note(allocationMode, err)
		return
	}
	if !m.InKubernetes() {
		return
	}
	if c.Operate.NodesAndAddresses {
		note("publish-nodes-and-addresses", fmt.Errorf("with --%s=%s the cluster's agents write their own nodes and addresses: it is for clusters whose agents are Cilium's", allocationMode, m))
	}
	if c.Allocation.Namespace == "" {
		note("k8s-namespace", errors.New("must not be empty"))
	}
	if !c.Local.kubernetes() {
		note(allocationMode, fmt.Errorf("%s keeps identities in the Kubernetes API: say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE", m))
	}
	if opts, err := c.kvstoreOptions(); m.InKVStore() && err == nil && !opts.HasLocal() {
		note(allocationMode, fmt.Errorf("%s keeps identities in the own cluster's kvstore too: say which with --kvstore-opt etcd.config=FILE or etcd.address=URL", m))
	}
}

// allocation is where identities are allocated; what belongs to a node or to a
// collection is left to whoever does it. Metrics are registered unless reg is nil.
func (c Config) allocation(reg prometheus.Registerer) (modes.Config, error) {
	a := modes.Config{Mode: c.Allocation.mode(), Namespace: c.Allocation.Namespace, TTL: c.KVStore.LeaseTTL, Registerer: reg}
	if !a.Mode.InKubernetes() {
		return a, nil
	}
	var err error
	if a.Kubernetes, err = c.Local.client(); err != nil {
		return a, fmt.Errorf("--%s=%s: %w", allocationMode, a.Mode, err)
	}
	return a, nil
}

// What a node asks of the Kubernetes API in a second, on average and at once. An
// allocation is six requests.
const (
	kubernetesQPS   = 100
	kubernetesBurst = 200
)

// client writes to the Kubernetes API. Nobody is asked yet.
func (c LocalConfig) client() (dynamic.Interface, error) {
	config, err := kubernetes.Configuration(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = kubernetesQPS, kubernetesBurst
	return dynamic.NewForConfig(config)
}
