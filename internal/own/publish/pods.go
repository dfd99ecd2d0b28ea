package publish

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cilium/statedb"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
)

// PodsParams are what [Pods] is made of.
type PodsParams struct {
	// Node is the one whose pods are published.
	Node string
	// DefaultGlobalNamespace is for namespaces that do not say whether they are
	// global (spec wire.md §4.5).
	DefaultGlobalNamespace bool
	// Labels says which labels count for identities; nil is all of them.
	Labels *LabelFilter
	// Allocate returns the identity of a set of labels, and takes a reference of
	// it; Release gives one up. Each may take long, and several are called at once.
	Allocate func(ctx context.Context, labels wire.Labels) (uint32, error)
	Release  func(ctx context.Context, labels wire.Labels) error
	// To is where the addresses are published.
	To  Target
	Log *slog.Logger
}

// The pauses between tries to get an identity for a pod.
const (
	retryMin = 200 * time.Millisecond
	retryMax = time.Minute
)

// Pods publishes the addresses of one node's pods with their identities (spec
// wire.md §1.7). A pod that has a CiliumEndpoint has the identity of that; for the
// others one is allocated, but in a cluster with Cilium ([local.Cluster.HasCilium]),
// where they wait for theirs. One pod whose identity cannot be had holds up no other.
type Pods struct {
	PodsParams
	cluster *local.Cluster
	rules   podRules
	// hasCilium belongs to the goroutine of Run.
	hasCilium bool
	// first and longest pause after a failure
	retryMin, retryMax time.Duration

	workers sync.WaitGroup

	mu      sync.Mutex
	core    *podCore
	working map[string]*work
	failed  map[string]bool // pods whose last try to get an identity failed
	// starting are the pods that were there at the start and whose first try is not over.
	starting map[string]struct{}
	whole    bool // all that were there at the start are known
	complete bool // and had their try
}

// work is a goroutine that does the pending jobs of a pod.
type work struct {
	of     reference // what it tries to allocate; the zero value while it does not
	cancel context.CancelFunc
}

// NewPods returns what publishes the pods of a node.
func NewPods(cluster *local.Cluster, own wire.ClusterInfo, p PodsParams) *Pods {
	return &Pods{
		PodsParams: p, cluster: cluster,
		rules:    podRules{own: own, node: p.Node, defaultGlobal: p.DefaultGlobalNamespace, labels: p.Labels},
		retryMin: retryMin, retryMax: retryMax,
		core: newPodCore(), working: make(map[string]*work), failed: make(map[string]bool),
		starting: make(map[string]struct{}),
	}
}

// Run publishes until ctx ends. It withdraws nothing then, and gives up no
// reference. It is called once.
func (p *Pods) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer p.workers.Wait()
	defer cancel()
	tables := append(
		endpointTables(p.cluster, p.lookForCilium),
		tableOf(p.cluster.Pods, nil),
		tableOf(p.cluster.CiliumIdentities, func(txn statedb.ReadTxn, _ *local.CiliumIdentity, _ bool, t touch) { p.lookForCilium(txn, t) }),
		tableOf(p.cluster.CiliumNodes, func(txn statedb.ReadTxn, _ *local.CiliumNode, _ bool, t touch) { p.lookForCilium(txn, t) }),
		tableOf(p.cluster.Namespaces, inNamespace(p.cluster.Pods)),
	)
	return follow(ctx, p.cluster, tables, func(txn statedb.ReadTxn, names []string) { p.apply(ctx, txn, names) }, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.whole = true
		p.completeStart()
	})
}

// lookForCilium touches all pods when Cilium has come to the cluster, or has gone.
func (p *Pods) lookForCilium(txn statedb.ReadTxn, t touch) {
	has := p.cluster.HasCilium(txn)
	if has == p.hasCilium {
		return
	}
	p.hasCilium = has
	if has {
		p.Log.Info("Cilium allocates identities in this cluster: pods without a CiliumEndpoint wait for it")
	} else {
		p.Log.Info("Cilium is no longer in this cluster: the agent allocates identities for pods")
	}
	for pod := range p.cluster.Pods.Table().All(txn) {
		t(local.Name(pod))
	}
}

// apply brings the pods of these names up to date.
func (p *Pods) apply(ctx context.Context, txn statedb.ReadTxn, names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		publish(p.To, p.core.want(name, p.wanted(txn, name)))
		if !p.whole && p.core.needs(name) {
			p.starting[name] = struct{}{}
		}
		p.attend(ctx, name)
	}
	p.completeStart()
}

func (p *Pods) wanted(txn statedb.ReadTxn, name string) *wantedPod {
	pod, found := p.cluster.Pods.Get(txn, name)
	if !found {
		return nil
	}
	endpoint, _ := p.cluster.Endpoint(txn, name)
	return p.rules.wanted(pod, namespaceOf(txn, p.cluster, name), endpoint, p.hasCilium)
}

// Renumber has the pods with these labels, as they are written, published with
// another number than the one that was allocated for them.
func (p *Pods) Renumber(labels string, from, to uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	publish(p.To, p.core.renumber(labels, from, to))
}

// attend starts a goroutine for the pending jobs of a pod, or cancels an allocation of the running one that is no
// longer needed. mu is held.
func (p *Pods) attend(ctx context.Context, name string) {
	if !p.core.needs(name) {
		delete(p.failed, name)
	}
	if w := p.working[name]; w != nil {
		if w.cancel != nil && !p.core.wants(name, w.of) {
			w.cancel()
		}
		return
	}
	if !p.core.due(name) {
		return
	}
	w := new(work)
	p.working[name] = w
	p.workers.Go(func() { p.work(ctx, name, w) })
}

// completeStart completes the target when all pods of the start have had their try; mu is held.
func (p *Pods) completeStart() {
	if p.complete || !p.whole {
		return
	}
	for name := range p.starting {
		if !p.core.needs(name) || p.failed[name] {
			delete(p.starting, name)
		}
	}
	if len(p.starting) == 0 {
		p.complete = true
		p.To.Complete()
	}
}

// work does the pending jobs of a pod until there are none, or ctx ends.
func (p *Pods) work(ctx context.Context, name string, w *work) {
	pause := p.retryMin
	var tried reference
	for {
		job, call, ok := p.next(ctx, name, w)
		if !ok {
			return
		}
		if job.release {
			p.release(ctx, name, job.reference)
			continue
		}
		if job.text != tried.text {
			tried, pause = job.reference, p.retryMin
		}
		if !p.allocate(call, name, job.reference) && waiting.Sleep(call, pause) == nil {
			pause = min(2*pause, p.retryMax)
		}
		w.cancel()
	}
}

// next is the next thing to do for a pod, with the context for it; false when the work is over.
func (p *Pods) next(ctx context.Context, name string, w *work) (podJob, context.Context, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.of, w.cancel = reference{}, nil
	if ctx.Err() != nil {
		return podJob{}, nil, false
	}
	job, due := p.core.next(name)
	if !due {
		delete(p.working, name)
		return podJob{}, nil, false
	}
	if job.release {
		return job, ctx, true
	}
	call, cancel := context.WithCancel(ctx)
	w.of, w.cancel = job.reference, cancel
	return job, call, true
}

// allocate tries to get an identity for a pod, and reports whether it has one.
func (p *Pods) allocate(ctx context.Context, name string, r reference) bool {
	identity, err := p.Allocate(ctx, r.labels)
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.completeStart()
	if err == nil {
		publish(p.To, p.core.allocated(name, r, identity))
		if !p.core.needs(name) {
			delete(p.failed, name)
		}
		return true
	}
	if ctx.Err() == nil { // else the result is no longer needed
		if !p.failed[name] {
			p.Log.Warn("A pod without an identity is not published yet, trying again", "pod", name, "labels", r.text, "error", err)
		}
		p.failed[name] = true
	}
	return false
}

// release gives up a reference. An error means that there was none; the allocator completes a release by itself.
func (p *Pods) release(ctx context.Context, name string, r reference) {
	if err := p.Release(ctx, r.labels); err != nil && ctx.Err() == nil {
		p.Log.Warn("Cannot release the previous identity of a pod", "pod", name, "labels", r.text, "error", err)
	}
}
