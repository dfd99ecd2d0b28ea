package config

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/dynamic"

	"github.com/mesh-agent/mesh-agent/internal/own/kubernetes"
	"github.com/mesh-agent/mesh-agent/pkg/allocator/modes"
)

// The flags that set where identities are allocated.
const (
	AllocationMode      = "identity-allocation-mode"
	AllocationNamespace = "k8s-namespace"
	NodesAndAddresses   = "publish-nodes-and-addresses"
)

// AllocationConfig is where identities are allocated.
type AllocationConfig struct {
	Mode      string `flag:"identity-allocation-mode" modes:"run operate" help:"where identities are allocated: kvstore, crd (CiliumIdentity objects), or both during a migration: doublewrite-readkvstore, doublewrite-readcrd (docs/identity-migration.md)"`
	Namespace string `flag:"k8s-namespace" modes:"run operate" help:"namespace of the Lease objects in which nodes list the identities that they use (with crd and doublewrite)"`
}

// parseAllocation also notes the settings that the mode needs and that are missing.
func (c *Config) parseAllocation(wrong *mistakes) {
	m := parsed(wrong, AllocationMode, modes.Parse, c.Allocation.Mode)
	c.AllocationMode = m
	if !m.InKubernetes() {
		return
	}
	if c.Operate.NodesAndAddresses {
		wrong.note(NodesAndAddresses, fmt.Errorf("with --%s=%s the cluster's agents write their own nodes and addresses: it is for clusters whose agents are Cilium's", AllocationMode, m))
	}
	if c.Allocation.Namespace == "" {
		wrong.note(AllocationNamespace, errors.New("must not be empty"))
	}
	if !c.Local.FromKubernetes() {
		wrong.note(AllocationMode, fmt.Errorf("%s keeps identities in the Kubernetes API: say how to reach it with --kubernetes (in a pod) or --kubeconfig=FILE", m))
	}
	if m.InKVStore() && !c.KVStoreOpt.HasLocal() && len(wrong.of(KVStoreFlag)) == 0 {
		wrong.note(AllocationMode, fmt.Errorf("%s keeps identities in the own cluster's kvstore too: say which with --kvstore-opt etcd.config=FILE or etcd.address=URL", m))
	}
}

// AllocationBackend returns the configuration of the place where identities are allocated. The caller sets the fields
// that belong to a node or to garbage collection. Metrics are registered unless reg is nil.
func (c Config) AllocationBackend(reg prometheus.Registerer) (modes.Config, error) {
	a := modes.Config{Mode: c.AllocationMode, Namespace: c.Allocation.Namespace, TTL: c.KVStore.LeaseTTL, Registerer: reg}
	if !a.Mode.InKubernetes() {
		return a, nil
	}
	var err error
	if a.Kubernetes, err = c.Local.Client(); err != nil {
		return a, fmt.Errorf("--%s=%s: %w", AllocationMode, a.Mode, err)
	}
	return a, nil
}

// Limits of a node's requests to the Kubernetes API: the average per second, and the burst. An allocation takes six
// requests.
const (
	kubernetesQPS   = 100
	kubernetesBurst = 200
)

// Client returns a client that can write to the Kubernetes API. It does not connect yet.
func (c LocalConfig) Client() (dynamic.Interface, error) {
	config, err := kubernetes.Configuration(c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = kubernetesQPS, kubernetesBurst
	return dynamic.NewForConfig(config)
}
