package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mesh-agent/mesh-agent/pkg/local"
)

// Options say which API server is asked, and for what.
type Options struct {
	// Kubeconfig is the file that says where the API server is and who we are.
	// Empty: that of a pod, from its service account.
	Kubeconfig string
	// NodeName is our own node's.
	NodeName string
	// OwnPodsOnly leaves out the pods of other nodes, also of what the API server
	// sends. (It cannot select other kinds by the node.)
	OwnPodsOnly bool
	// ServicesOnly leaves out nodes, pods and what Cilium says of them: who publishes
	// services and identities needs neither them nor the right to read them.
	ServicesOnly bool
	// Without are labels of CiliumIdentities that are left out, as "key=value": what
	// this program allocates itself. Empty leaves out none.
	Without string
	// CiliumToo, with ServicesOnly, takes in Cilium's nodes and endpoints again: who
	// publishes the nodes and addresses of the whole cluster needs them.
	CiliumToo bool
	// Imports takes in ServiceImports too: their writer needs to know which exist.
	Imports bool
	// LookAgain is how often a kind without a definition is looked for, a minute
	// when 0. Every agent of a cluster does it, so it should not be much shorter.
	LookAgain time.Duration
	// LookTwice is after how long a kind that had objects and has no definition is looked for again
	// before they are removed, 10 seconds when 0: of several API servers one may have just begun.
	LookTwice time.Duration
	// Quiet is how long nothing may be heard of a kind whose age is shown until the API server is asked, 75 seconds when
	// 0. It should be longer than the time between two bookmarks, so that nothing is asked where bookmarks come.
	Quiet time.Duration
	// Report is called with the current problem whenever it changes, nil when there is none. It must not block. It may
	// be nil.
	Report func(error)
}

// shown reports whether the age of a kind is shown, with the own cluster.
func shown(resource string) bool { return resource == "services" || resource == "endpointslices" }

// Source reads the Kubernetes API.
type Source struct {
	client *http.Client
	kinds  []*follower
	health *health
}

// New returns a source that fills the tables once it runs. It fails when the options contradict
// each other or the configuration cannot be read; the API server is not asked yet.
func New(o Options, into *local.Cluster, log *slog.Logger) (*Source, error) {
	if o.OwnPodsOnly && o.NodeName == "" {
		return nil, errors.New("the pods of this node are unknown without its name: set the node's name")
	}
	o.LookAgain, o.LookTwice = cmp.Or(o.LookAgain, time.Minute), cmp.Or(o.LookTwice, 10*time.Second)
	o.Quiet = cmp.Or(o.Quiet, quiet)
	if o.Report == nil {
		o.Report = func(error) {}
	}
	config, err := Configuration(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	log = log.With("server", config.Host)
	s := &Source{health: &health{log: log, report: o.Report}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{next, s.health.reached} })
	if s.client, err = rest.HTTPClientFor(config); err != nil {
		return nil, fmt.Errorf("the Kubernetes API at %s: %w", config.Host, err)
	}
	clients, err := newClients(config, s.client)
	if err != nil {
		return nil, fmt.Errorf("the Kubernetes API at %s: %w", config.Host, err)
	}
	s.kinds = kinds(o, into, clients, s.health, log)
	into.Confirmed(o.Quiet+delivery, func() time.Time { return s.health.current(shown) }) // both are known until then
	return s, nil
}

// Configuration reads where the API server is and who we are; from an empty name, as a pod does.
func Configuration(kubeconfig string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if kubeconfig != "" {
		if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
		}
	} else if config, err = rest.InClusterConfig(); err != nil {
		return nil, fmt.Errorf("the Kubernetes API as a pod's service account reaches it: %w: "+
			"mount the account's token (automountServiceAccountToken), or name a kubeconfig file", err)
	}
	config.UserAgent = "mesh-agent"
	config.WarningHandler = rest.NoWarnings{} // advice to authors of manifests
	return config, nil
}

// Run keeps the tables as the API server has the objects, until ctx ends, and
// then withdraws nothing. Its error is that of ctx.
func (s *Source) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, k := range s.kinds {
		wg.Go(func() { k.run(ctx) })
		if shown(k.requests.resource) {
			wg.Go(func() { k.confirm(ctx) })
		}
	}
	wg.Wait()
	utilnet.CloseIdleConnectionsFor(s.client.Transport)
	return ctx.Err()
}
