package serviceimports

import (
	"context"
	"errors"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/kube/kubewrite"
	"github.com/mesh-agent/mesh-agent/internal/kube/mcs"
)

// write carries out the plan of one service. An object that another writer has changed meanwhile is left to the next
// round.
func (t *term) write(ctx context.Context, w work) error {
	errs := []error{t.writeConditions(ctx, &w)}
	switch {
	case w.foreign:
	case w.wanted.Import == nil:
		errs = append(errs, t.remove(ctx, &w))
	default:
		errs = append(errs, t.writeImport(ctx, &w))
	}
	for i, err := range errs {
		if isGone(err) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// isGone reports whether a write failed because the object no longer exists, or its namespace is being deleted.
func isGone(err error) bool {
	return err != nil && (kubewrite.IsOther(err) || kubewrite.IsTerminating(err))
}

// writeConditions writes the status of the own export.
func (t *term) writeConditions(ctx context.Context, w *work) error {
	if w.is.export == nil || w.wanted.Conditions == nil || sameConditions(w.is.export.Status.Conditions, w.wanted.Conditions, mcs.ConditionConflict) {
		return nil
	}
	o := statusOf(mcs.KindServiceExport, w.is.export, map[string]any{"conditions": w.wanted.Conditions})
	_, err := t.Writer.ApplyStatus(ctx, exportResource(), o)
	return err
}

// remove deletes the objects that were written for a service: the copies and the derived Service first, because the
// import is their owner.
func (t *term) remove(ctx context.Context, w *work) error {
	if err := t.removeDerived(ctx, w); err != nil {
		return err
	}
	if w.is.imported == nil || !isOurs(w.is.imported.Labels) {
		return nil
	}
	_, err := t.Writer.Delete(ctx, importResource(), w.is.imported.Namespace, w.is.imported.Name, w.is.imported.UID)
	return err
}

func (t *term) removeDerived(ctx context.Context, w *work) error {
	for _, slice := range w.is.copies {
		if _, err := t.Writer.Delete(ctx, sliceResource(), slice.Namespace, slice.Name, slice.UID); err != nil {
			return err
		}
	}
	if d := w.is.derived; d != nil && isOurs(d.Labels) {
		_, err := t.Writer.Delete(ctx, serviceResource(), d.Namespace, d.Name, d.UID)
		return err
	}
	return nil
}

// writeImport writes the import, then the Service that it owns, then the slices that this one owns.
func (t *term) writeImport(ctx context.Context, w *work) error {
	owner, created, err := t.applyImport(ctx, w)
	if err != nil {
		return err
	}
	if w.wanted.Derived == nil {
		return t.removeDerived(ctx, w)
	}
	service, err := t.applyDerived(ctx, w, owner, created)
	if err != nil {
		return err
	}
	return t.applyCopies(ctx, w, service)
}

func (t *term) applyImport(ctx context.Context, w *work) (uid types.UID, created bool, err error) {
	is, wanted := w.is.imported, w.wanted.Import
	if is != nil {
		uid = is.UID
	}
	if is == nil || !sameImport(is, wanted) {
		o := object(wanted)
		setUID(o, uid)
		applied, err := t.Writer.Apply(ctx, importResource(), o)
		if err != nil {
			return "", false, err
		}
		uid, created = applied.GetUID(), is == nil
	}
	if is == nil || !sameStatus(&is.Status, &wanted.Status) {
		o := statusOf(mcs.KindServiceImport, wanted, wanted.Status)
		setUID(o, uid)
		if _, err := t.Writer.ApplyStatus(ctx, importResource(), o); err != nil {
			return "", false, err
		}
	}
	return uid, created, nil
}

func (t *term) applyDerived(ctx context.Context, w *work, owner types.UID, importCreated bool) (types.UID, error) {
	is, wanted := w.is.derived, w.wanted.Derived
	if is != nil && w.wanted.Recreate {
		if _, err := t.Writer.Delete(ctx, serviceResource(), is.Namespace, is.Name, is.UID); err != nil {
			return "", err
		}
		is = nil
	}
	if is != nil && !importCreated && sameService(is, wanted) {
		return is.UID, nil
	}
	o := object(wanted)
	if is != nil {
		setUID(o, is.UID)
	}
	setOwner(o, mcs.Group+"/"+mcs.Version, mcs.KindServiceImport, w.wanted.Import.Name, owner)
	applied, err := t.Writer.Apply(ctx, serviceResource(), o)
	if err != nil {
		return "", err
	}
	return applied.GetUID(), nil
}

// applyCopies writes the slices of the derived Service with the own backends, and deletes those that there
// should not be. Copies of a Service that was made again have the old one as their owner, and are written again.
func (t *term) applyCopies(ctx context.Context, w *work, owner types.UID) error {
	stale := make(map[string]*discoveryv1.EndpointSlice)
	for _, slice := range w.is.copies {
		stale[slice.Name] = slice
	}
	again := w.is.derived == nil || w.is.derived.UID != owner
	for _, wanted := range w.copies {
		is := stale[wanted.Name]
		delete(stale, wanted.Name)
		if is != nil && !again && sameSlice(is, wanted) {
			continue
		}
		o := object(wanted)
		setOwner(o, "v1", "Service", w.wanted.Derived.Name, owner)
		if _, err := t.Writer.Apply(ctx, sliceResource(), o); err != nil {
			return err
		}
	}
	for name, slice := range stale {
		if _, err := t.Writer.Delete(ctx, sliceResource(), slice.Namespace, name, slice.UID); err != nil {
			return err
		}
	}
	return nil
}
