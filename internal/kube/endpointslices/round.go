package endpointslices

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cilium/statedb"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/internal/kube/kubewrite"
	"github.com/mesh-agent/mesh-agent/internal/kube/reconcile"
	"github.com/mesh-agent/mesh-agent/pkg/services"
)

// work is what a round does for one Service.
type work struct {
	service string
	changes []Change
}

// Round implements [reconcile.Steps]. All plans follow from one snapshot; those of different Services are
// carried out at once.
func (t *term) Round(ctx context.Context, txn statedb.ReadTxn, now time.Time) {
	created := make(map[string]int)
	plan := func(name string) (w work, todo bool) {
		w = t.plan(txn, now, name, created)
		return w, len(w.changes) > 0
	}
	if reconcile.CarryOut(ctx, &t.Work, now, t.Writer.AtOnce(), t.Take(roundSize), plan, t.write) {
		t.Log.Warn("Cannot write EndpointSlices of remote backends, trying again", "error", t.trouble())
	}
}

// plan returns the changes for a Service, without those that the floor holds back. While the view does not yet contain
// the own cluster's Service as a global one, there are no changes.
func (t *term) plan(txn statedb.ReadTxn, now time.Time, name string, created map[string]int) work {
	delete(t.heldBack, name)
	delete(t.leftOut, name)
	delete(t.refused, name)
	svc, found := t.Cluster.Services.Get(txn, name)
	if !found {
		return work{} // the slices go with their owner
	}
	namespace, short, _ := strings.Cut(name, "/")
	g, _, _ := t.Services.Global().Get(txn, services.GlobalByName(namespace, short))
	declined := t.Only != nil && !t.Only(svc)
	if !declined && Eligible(svc) && !seesGlobal(g) {
		return work{}
	}
	s := Input{
		Service: svc, Declined: declined, Global: g, Keep: t.Keeps,
		Taken: func(slice string) bool {
			_, exists := t.Cluster.EndpointSlices.Get(txn, namespace+"/"+slice)
			return exists
		},
		Grant: func(cluster string) bool {
			if t.count[cluster]+created[cluster] >= t.MaxSlices || len(t.services)+created[""] >= t.MaxAllSlices {
				return false
			}
			created[cluster]++
			created[""]++ // no cluster's name
			return true
		},
	}
	if t.OwnNetworks != nil {
		s.Own = t.isOwn
	}
	for _, slice := range t.held[name] {
		s.Held = append(s.Held, slice)
	}
	planned := Plan(s)
	if planned.LeftOut > 0 {
		t.leftOut[name] = planned.LeftOut
	}
	if planned.Refused.Backends > 0 {
		t.refused[name] = planned.Refused
	}
	return work{name, slices.DeleteFunc(planned.All, func(c Change) bool { return t.holdsBack(name, now, c) })}
}

// seesGlobal reports whether the view has the own cluster's Service as a global one.
func seesGlobal(g *services.Global) bool {
	return g != nil && g.Local() != nil && g.Local().UsesRemotes()
}

// holdsBack reports whether the floor keeps a slice.
func (t *term) holdsBack(service string, now time.Time, c Change) bool {
	held := c.Remote && c.Removes() && !t.floor.allow(now, t.filled, len(t.Unread()) == 0)
	if held {
		t.heldBack[service]++
	}
	return held
}

// write carries out the plan of one Service, up to the first error.
func (t *term) write(ctx context.Context, w work) error {
	for _, c := range w.changes {
		if err := t.writeOne(ctx, c.Was, c.To); err != nil {
			return err
		}
	}
	return nil
}

func (t *term) writeOne(ctx context.Context, was, to *discoveryv1.EndpointSlice) error {
	if to == nil {
		_, err := t.Writer.Delete(ctx, Resource(), was.Namespace, was.Name, was.UID)
		t.Metrics.Deleted(ctx, err)
		return err
	}
	_, err := t.Writer.Apply(ctx, Resource(), object(to))
	if kubewrite.IsTerminating(err) {
		return nil // the namespace goes, and the Service with it
	}
	t.Metrics.Applied(ctx, err)
	return err
}
