package crdbackend

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
)

const securityLabels = "security-labels" // the field of a CiliumIdentity that has the key

func idName(id uint64) string { return strconv.FormatUint(id, 10) }

// hash returns the hash with which a key is found.
func hash(key allocator.Key) string {
	sum := sha256.Sum256([]byte(key.GetKey()))
	return hex.EncodeToString(sum[:16])
}

func newMapping(id uint64, key allocator.Key) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	_ = unstructured.SetNestedStringMap(o.Object, key.GetAsMap(), securityLabels) // never fails, since the object is empty
	o.SetAPIVersion(identityResource().GroupVersion().String())
	o.SetKind("CiliumIdentity")
	o.SetName(idName(id))
	o.SetLabels(map[string]string{ManagedBy: Manager, keyLabel: hash(key)})
	return o
}

func (b *Backend) read(o *unstructured.Unstructured) (uint64, allocator.Key, error) {
	id, err := strconv.ParseUint(o.GetName(), 10, 64)
	if err != nil || idName(id) != o.GetName() || id == allocator.NoID {
		return allocator.NoID, nil, fmt.Errorf("the name %q of a CiliumIdentity is no number", o.GetName())
	}
	labels, _, err := unstructured.NestedStringMap(o.Object, securityLabels)
	if err == nil {
		var key allocator.Key
		if key, err = b.Keys.PutKeyFromMap(labels); err == nil {
			return id, key, nil
		}
	}
	return id, nil, fmt.Errorf("the CiliumIdentity %d: %w", id, err)
}

func (b *Backend) says(o *unstructured.Unstructured, key allocator.Key) bool {
	_, is, err := b.read(o)
	return err == nil && maps.Equal(is.GetAsMap(), key.GetAsMap())
}

// AllocateID implements [allocator.Backend].
func (b *Backend) AllocateID(ctx context.Context, id uint64, key allocator.Key, lock allocator.Lock) (bool, error) {
	ctx, done, err := under(ctx, lock)
	if err != nil {
		return false, err
	}
	defer done()
	created, err := b.create(ctx, id, key)
	if err != nil {
		return false, fmt.Errorf("creating the CiliumIdentity %d for %s: %w", id, key, err)
	}
	return created, nil
}

func (b *Backend) create(ctx context.Context, id uint64, key allocator.Key) (bool, error) {
	_, err := b.identities.Create(ctx, newMapping(id, key), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, err
}

// object returns the mapping of an ID; nil when there is none.
func (b *Backend) object(ctx context.Context, id uint64) (*unstructured.Unstructured, error) {
	o, err := b.identities.Get(ctx, idName(id), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the CiliumIdentity %d: %w", id, err)
	}
	return o, nil
}

// AcquireReference implements [allocator.Backend]. It writes the reference before it reads the mapping, so that no
// garbage collection can happen in between.
func (b *Backend) AcquireReference(ctx context.Context, id uint64, key allocator.Key, lock allocator.Lock) (bool, error) {
	ctx, done, err := under(ctx, lock)
	if err != nil {
		return false, err
	}
	defer done()
	if err := b.setHeld(ctx, id, true); err != nil {
		return false, fmt.Errorf("taking the reference of %s, %d: %w", key, id, err)
	}
	o, err := b.object(ctx, id)
	if err != nil {
		return false, err
	}
	if o == nil || !b.says(o, key) {
		return false, b.setHeld(ctx, id, false)
	}
	return true, nil
}

// Release implements [allocator.Backend].
func (b *Backend) Release(ctx context.Context, id uint64, key allocator.Key) error {
	if err := b.setHeld(ctx, id, false); err != nil {
		return fmt.Errorf("deleting the reference of %s, %d: %w", key, id, err)
	}
	return nil
}

// UpdateKey implements [allocator.Backend].
func (b *Backend) UpdateKey(ctx context.Context, id uint64, key allocator.Key, _ bool, lock allocator.Lock) error {
	ctx, done, err := under(ctx, lock)
	if err != nil {
		return err
	}
	defer done()
	o, err := b.object(ctx, id)
	if err == nil && o == nil {
		var created bool
		if created, err = b.create(ctx, id, key); created {
			b.Log.Info("Created the missing CiliumIdentity of a number in use", "id", id, "key", key.String())
		} else if err == nil {
			o, err = b.object(ctx, id)
		}
		if err == nil && !created && o == nil {
			err = fmt.Errorf("the CiliumIdentity %d was created and deleted several times within a short time", id)
		}
	}
	if err == nil && o != nil && !b.says(o, key) {
		err = allocator.ErrTaken
	}
	if err == nil {
		err = b.setHeld(ctx, id, true)
	}
	if err != nil {
		return fmt.Errorf("refreshing %d for %s: %w", id, key, err)
	}
	return nil
}

// Restore implements [allocator.Backend].
func (b *Backend) Restore(ctx context.Context, id uint64, key, instead allocator.Key, lock allocator.Lock) (bool, error) {
	ctx, done, err := under(ctx, lock)
	if err != nil {
		return false, err
	}
	defer done()
	o, err := b.object(ctx, id)
	if err != nil || o == nil || !b.says(o, instead) || o.GetLabels()[ManagedBy] != Manager {
		return false, err
	}
	right := newMapping(id, key)
	right.SetUID(o.GetUID())
	right.SetResourceVersion(o.GetResourceVersion())
	right.SetAnnotations(o.GetAnnotations())
	if _, err := b.identities.Update(ctx, right, metav1.UpdateOptions{}); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("restoring the CiliumIdentity %d for %s: %w", id, key, err)
	}
	return true, nil
}

// Get implements [allocator.Backend]. A mapping of this package counts with and without references. Of several, the
// result is the least ID in use, else the least ID.
func (b *Backend) Get(ctx context.Context, key allocator.Key, lock allocator.Lock) (uint64, error) {
	ctx, done, err := under(ctx, lock)
	if err != nil {
		return allocator.NoID, err
	}
	defer done()
	list, err := b.identities.List(ctx, metav1.ListOptions{LabelSelector: keyLabel + "=" + hash(key)})
	if err != nil {
		return allocator.NoID, fmt.Errorf("looking up %s: %w", key, err)
	}
	var ids []uint64
	for i := range list.Items {
		if id, is, err := b.read(&list.Items[i]); err == nil && is.GetKey() == key.GetKey() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	if len(ids) > 1 {
		used, err := b.used(ctx)
		if err != nil {
			return allocator.NoID, err
		}
		if i := slices.IndexFunc(ids, func(id uint64) bool { return used[id] }); i >= 0 {
			return ids[i], nil
		}
	}
	if len(ids) == 0 {
		return allocator.NoID, nil
	}
	return ids[0], nil
}

// GetByID implements [allocator.Backend].
func (b *Backend) GetByID(ctx context.Context, id uint64) (allocator.Key, error) {
	o, err := b.object(ctx, id)
	if err != nil || o == nil {
		return nil, err
	}
	_, key, err := b.read(o)
	return key, err
}

// CatchUp implements [allocator.Backend]. It does not wait, because Get finds the mappings of this package without
// the watch.
func (b *Backend) CatchUp(ctx context.Context, _ allocator.Lock) error { return ctx.Err() }
