package endpointslices

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/internal/base/tables"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/codes"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// held are the slices of ours that a Service has, by name.
type held map[string]*discoveryv1.EndpointSlice

// term is one run of a controller. It belongs to one goroutine, but for what its rounds share.
type term struct {
	*Controller
	reconcile.Work
	own     *tables.Follower[*corev1.Service]
	slices  *tables.Follower[*discoveryv1.EndpointSlice]
	globals *tables.Follower[*services.Global]

	held     map[string]held   // by Service, as "namespace/name"
	services map[string]string // by slice: the Service that has it in held
	count    map[string]int    // of slices by cluster
	filled   int               // slices with endpoints

	floor     floor
	heldBack  map[string]int // by Service, slices that the floor keeps
	leftOut   map[string]int // by Service, endpoints without a slice
	refused   map[string]Refused
	addresses ownAddresses
	networks  uint64 // revision of the own networks at the last look
	complete  bool   // everything was looked at once
	warned    bool   // the log says that slices are held back
}

// follow begins a term that has seen nothing.
func (c *Controller) follow() (*term, error) {
	t := &term{
		Controller: c, Work: reconcile.New(c.Boundary.Run), held: make(map[string]held), services: make(map[string]string), count: make(map[string]int),
		heldBack: make(map[string]int), leftOut: make(map[string]int), refused: make(map[string]Refused),
		addresses: newOwnAddresses(),
	}
	var errs [3]error
	t.own, errs[0] = c.Cluster.Services.Follow()
	t.slices, errs[1] = c.Cluster.EndpointSlices.Follow()
	t.globals, errs[2] = tables.Follow(c.DB, c.Services.Global())
	if err := errors.Join(errs[:]...); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *term) followers() []tables.AnyFollower {
	return []tables.AnyFollower{t.own, t.slices, t.globals}
}

func (t *term) close() {
	for _, f := range t.followers() {
		f.Close()
	}
}

// Gather implements [reconcile.Steps].
func (t *term) Gather(txn statedb.ReadTxn) *statedb.WatchSet {
	t.own.DrainTo(txn, func(svc *corev1.Service, deleted bool) {
		t.Touch(local.Name(svc))
		added := t.addresses.set(local.Name(svc), svc, deleted)
		if t.OwnNetworks != nil && slices.ContainsFunc(added, func(a netip.Addr) bool { return !t.OwnNetworks.IsOwn(a) }) {
			t.touchHeld() // a remote may have named the address before
		}
	})
	t.globals.DrainTo(txn, func(g *services.Global, _ bool) { t.Touch(g.FullName()) })
	t.slices.DrainTo(txn, func(slice *discoveryv1.EndpointSlice, deleted bool) {
		name := local.Name(slice)
		if before, known := t.services[name]; known {
			t.forget(before, name)
			t.Touch(before)
		}
		if !deleted && IsOurs(slice) {
			t.Touch(t.take(name, slice))
		}
	})
	return tables.WatchSet(t.followers()...)
}

// take notes a slice, and returns its Service.
func (t *term) take(name string, slice *discoveryv1.EndpointSlice) string {
	service := slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]
	if t.held[service] == nil {
		t.held[service] = make(held)
	}
	t.held[service][name] = slice
	t.services[name] = service
	t.note(slice, 1)
	return service
}

func (t *term) forget(service, name string) {
	t.note(t.held[service][name], -1)
	delete(t.services, name)
	if delete(t.held[service], name); len(t.held[service]) == 0 {
		delete(t.held, service)
	}
}

func (t *term) note(slice *discoveryv1.EndpointSlice, n int) {
	if t.count[slice.Labels[LabelCluster]] += n; t.count[slice.Labels[LabelCluster]] == 0 {
		delete(t.count, slice.Labels[LabelCluster])
	}
	if len(slice.Endpoints) > 0 {
		t.filled += n
	}
	t.Metrics.slices.Add(float64(n))
	t.Metrics.endpoints.Add(float64(n * len(slice.Endpoints)))
}

// Look implements [reconcile.Steps]: it looks for clusters that were read or removed, and for room for slices that had
// none.
func (t *term) Look(context.Context, time.Time) {
	if t.SetRemotes(t.Remotes()) {
		t.touchHeld()
		for svc := range t.Cluster.Services.Table().All(t.Cluster.ReadTxn()) { // those without slices get some from a cluster that was read
			if Eligible(svc) {
				t.Touch(local.Name(svc))
			}
		}
	}
	if t.OwnNetworks != nil && t.OwnNetworks.OwnRevision() != t.networks {
		t.networks = t.OwnNetworks.OwnRevision()
		t.touchHeld()
		for service := range t.refused {
			t.Touch(service)
		}
	}
	for service := range t.heldBack {
		t.Touch(service)
	}
	if len(t.services) < t.MaxAllSlices {
		for service := range t.leftOut {
			t.Touch(service)
		}
	}
}

func (t *term) touchHeld() {
	for service := range t.held {
		t.Touch(service)
	}
}

// ReportProblems implements [reconcile.Steps], and says once that the first look is over.
func (t *term) ReportProblems() {
	if t.Clean() && !t.complete {
		t.complete = true
		t.Log.Info("All EndpointSlices of remote backends are up to date", "slices", len(t.services))
	}
	if back := len(t.heldBack) > 0; back != t.warned {
		t.warned = back
		if back {
			t.Log.Warn("EndpointSlices of deleted remote backends stay: the agent has not read all clusters, and would delete too many at once",
				"services", len(t.heldBack), "unread", strings.Join(t.Unread(), ", "))
		}
	}
	t.Metrics.refused.Set(float64(t.numRefused()))
	t.Report(Task, t.trouble())
}

// trouble returns the current problems; nil when there are none.
func (t *term) trouble() error {
	errs := []error{t.Failed("Services do not have the EndpointSlices that they should have")}
	if n := sum(t.heldBack); n > 0 {
		errs = append(errs, fmt.Errorf("%d EndpointSlices are kept although their backends are gone: more than half would go within a minute while clusters were not read since the start (%s); "+
			"they are deleted when these clusters are read, or when their client files are removed", n, strings.Join(t.Unread(), ", ")))
	}
	if n := sum(t.leftOut); n > 0 {
		errs = append(errs, fmt.Errorf("%d remote backends are in no EndpointSlice: a cluster may have %d slices, and all together %d", n, t.MaxSlices, t.MaxAllSlices))
	}
	if len(t.refused) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(t.refused)))
		errs = append(errs, fmt.Errorf("%s: %d remote backends are in no EndpointSlice because of their addresses, of %d Services such as %s: %s",
			codes.EndpointsRefused, t.numRefused(), len(t.refused), first, t.refused[first].Example))
	}
	return errors.Join(errs...)
}

func (t *term) numRefused() (n int) {
	for _, one := range t.refused {
		n += one.Backends
	}
	return n
}

func sum(all map[string]int) (n int) {
	for _, one := range all {
		n += one
	}
	return n
}
