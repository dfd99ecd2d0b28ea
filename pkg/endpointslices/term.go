package endpointslices

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cilium/statedb"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/internal/tables"
	"github.com/mesh-agent/mesh-agent/pkg/local"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// term is one run of a controller. It belongs to one goroutine, but for what its rounds share.
type term struct {
	*Controller
	own     *tables.Follower[*corev1.Service]
	slices  *tables.Follower[*discoveryv1.EndpointSlice]
	globals *tables.Follower[*services.Global]

	held     map[string]held   // by Service, as "namespace/name"
	services map[string]string // by slice: the Service that has it in held
	count    map[string]int    // of slices by cluster
	filled   int               // slices with endpoints

	looked  time.Time           // at what no table tells
	remotes map[string]bool     // the clusters that there are, and whether they were read
	dirty   map[string]struct{} // Services that are to be looked at
	floor   floor

	failed   map[string]error // by Service, what is to be tried again
	pause    time.Duration    // before that; 0 while nothing fails
	tryAt    time.Time
	heldBack map[string]int // by Service, slices that the floor keeps
	leftOut  map[string]int // by Service, endpoints without a slice
	complete bool           // everything was looked at once
	warned   bool           // the log says that slices are held back
}

// follow begins a term that has seen nothing.
func (c *Controller) follow() (*term, error) {
	t := &term{
		Controller: c, held: make(map[string]held), services: make(map[string]string), count: make(map[string]int), dirty: make(map[string]struct{}),
		failed: make(map[string]error), heldBack: make(map[string]int), leftOut: make(map[string]int),
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

func (t *term) close() {
	if t.own != nil {
		t.own.Close()
	}
	if t.slices != nil {
		t.slices.Close()
	}
	if t.globals != nil {
		t.globals.Close()
	}
}

// gather takes in what has changed, and returns what is closed when there is more.
func (t *term) gather(txn statedb.ReadTxn) *statedb.WatchSet {
	touch := func(name string) { t.dirty[name] = struct{}{} }
	t.own.DrainTo(txn, func(svc *corev1.Service, _ bool) { touch(local.Name(svc)) })
	t.globals.DrainTo(txn, func(g *services.Global, _ bool) { touch(g.FullName()) })
	t.slices.DrainTo(txn, func(slice *discoveryv1.EndpointSlice, deleted bool) {
		name := local.Name(slice)
		if before, known := t.services[name]; known {
			t.forget(before, name)
			touch(before)
		}
		if !deleted && IsOurs(slice) {
			touch(t.take(name, slice))
		}
	})
	more := statedb.NewWatchSet()
	for _, changed := range []<-chan struct{}{t.own.Changed(), t.globals.Changed(), t.slices.Changed()} {
		more.Add(changed)
	}
	return more
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
	t.Metrics.count(n, n*len(slice.Endpoints))
}

// look looks now and then at what no table tells: clusters that were read, or are gone, time for what has
// failed, and room for what had none.
func (t *term) look(now time.Time) {
	if now.Sub(t.looked) < lookAgain {
		return
	}
	t.looked = now
	remotes := make(map[string]bool)
	for _, r := range t.Remotes() {
		remotes[r.Name] = r.Read
	}
	if !maps.Equal(remotes, t.remotes) {
		t.remotes = remotes
		for service := range t.held {
			t.dirty[service] = struct{}{}
		}
	}
	for service := range t.heldBack {
		t.dirty[service] = struct{}{}
	}
	if len(t.leftOut) > 0 && len(t.services) < t.MaxAllSlices {
		for service := range t.leftOut {
			t.dirty[service] = struct{}{}
		}
	}
	if len(t.failed) > 0 && !now.Before(t.tryAt) {
		for service := range t.failed {
			t.dirty[service] = struct{}{}
		}
	}
}

// known tells whether every cluster was read.
func (t *term) known() bool {
	for _, read := range t.remotes {
		if !read {
			return false
		}
	}
	return true
}

// keeps tells whether the slices of a cluster stay as they are: it is configured and was not read.
func (t *term) keeps(cluster string) bool {
	read, configured := t.remotes[cluster]
	return configured && !read
}

// tell reports what is wrong, and that the first look is over.
func (t *term) tell() {
	if len(t.dirty) == 0 && len(t.failed) == 0 && !t.complete {
		t.complete = true
		t.Log.Info("The EndpointSlices of remote backends are as they should be", "slices", len(t.services))
	}
	if back := len(t.heldBack) > 0; back != t.warned {
		t.warned = back
		if back {
			t.Log.Warn("EndpointSlices of remote backends are kept although their backends are gone: too many would go at once while not all clusters were read",
				"services", len(t.heldBack), "unread", t.unread())
		}
	}
	t.Report(Task, t.trouble())
}

func (t *term) unread() string {
	var all []string
	for name, read := range t.remotes {
		if !read {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// trouble is what is wrong; nil when nothing is.
func (t *term) trouble() error {
	var errs []error
	if n := len(t.failed); n > 0 {
		first := slices.Min(slices.Collect(maps.Keys(t.failed)))
		errs = append(errs, fmt.Errorf("%d Services do not have the EndpointSlices that they should have, such as %s: %w", n, first, t.failed[first]))
	}
	if n := sum(t.heldBack); n > 0 {
		errs = append(errs, fmt.Errorf("%d EndpointSlices are kept although their backends are gone: more than half would go within a minute while clusters were not read since the start (%s); "+
			"the rest goes when they are read, or their client files are removed", n, t.unread()))
	}
	if n := sum(t.leftOut); n > 0 {
		errs = append(errs, fmt.Errorf("%d remote backends are in no EndpointSlice: a cluster may have %d slices, and all together %d", n, t.MaxSlices, t.MaxAllSlices))
	}
	return errors.Join(errs...)
}

func sum(all map[string]int) (n int) {
	for _, one := range all {
		n += one
	}
	return n
}
