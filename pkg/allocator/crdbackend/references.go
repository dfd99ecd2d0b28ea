package crdbackend

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
)

// usesAnnotation of a Lease of references lists the IDs, separated by commas.
const usesAnnotation = "mesh-agent.io/identities"

const listTimeout = time.Minute

// renewals is how often a Lease is renewed within its TTL.
const renewals = 3

// Run renews this process's references until ctx ends. After that they stay until they expire.
func (b *Backend) Run(ctx context.Context) error {
	failing := false
	for {
		if err := waiting.Sleep(ctx, b.TTL/renewals); err != nil {
			return err
		}
		b.mu.Lock()
		idle := !b.exists && len(b.held) == 0
		b.version++
		want := b.version
		b.mu.Unlock()
		if idle {
			continue
		}
		try, cancel := context.WithTimeout(ctx, b.TTL/renewals)
		err := b.flush(try, want)
		cancel()
		if err != nil && ctx.Err() == nil && !failing {
			b.Log.Warn("Cannot renew the references of identities in the Kubernetes API, trying again", "lease", b.name, "error", err)
		}
		failing = err != nil
	}
}

func (b *Backend) setHeld(ctx context.Context, id uint64, held bool) error {
	b.mu.Lock()
	if _, is := b.held[id]; is != held {
		b.version++
	}
	if held {
		b.held[id] = struct{}{}
	} else {
		delete(b.held, id)
	}
	want := b.version
	b.mu.Unlock()
	return b.flush(ctx, want)
}

// flush writes the Lease, unless it has this version already. One write often serves several waiting calls.
func (b *Backend) flush(ctx context.Context, want int) error {
	select {
	case b.writing <- struct{}{}:
		defer func() { <-b.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	b.mu.Lock()
	version, ids, exists := b.version, slices.Sorted(maps.Keys(b.held)), b.exists
	done := b.written >= want
	b.exists = b.exists || len(ids) > 0
	b.mu.Unlock()
	if done {
		return nil
	}
	var err error
	switch {
	case len(ids) > 0:
		err = b.writeLease(ctx, ids)
	case exists:
		if err = b.leases.Delete(ctx, b.name, metav1.DeleteOptions{}); apierrors.IsNotFound(err) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("writing the Lease %s/%s: %w", b.Namespace, b.name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.written = version
	if len(ids) == 0 {
		b.exists = len(b.held) > 0
	}
	return nil
}

// writeLease writes these IDs to the Lease, and renews it.
func (b *Backend) writeLease(ctx context.Context, ids []uint64) error {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = idName(id)
	}
	o := newLease(b.name, map[string]string{kindLabel: kindNode, nodeLabel: nameOf(b.Node)}, b.Node, b.TTL)
	o.SetAnnotations(map[string]string{usesAnnotation: strings.Join(texts, ",")})
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": o.GetAnnotations()}, "spec": o.Object["spec"]})
	if err != nil {
		return err
	}
	_, err = b.leases.Patch(ctx, b.name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = b.leases.Create(ctx, o, metav1.CreateOptions{})
	}
	return err
}

// newLease returns a Lease that is valid from now on for the given time.
func newLease(name string, labels map[string]string, holder string, lasts time.Duration) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"holderIdentity":       holder,
		"leaseDurationSeconds": int64((lasts + time.Second - 1) / time.Second),
		"renewTime":            time.Now().UTC().Format(metav1.RFC3339Micro),
	}}}
	o.SetAPIVersion(leaseResource().GroupVersion().String())
	o.SetKind("Lease")
	o.SetName(name)
	labels[ManagedBy] = Manager
	o.SetLabels(labels)
	return o
}

// observation is a version of a Lease, and when this process first saw it, by its own clock.
type observation struct {
	version string
	at      time.Time
}

// lasts returns how long a Lease is valid after a renewal, according to the Lease.
func lasts(o *unstructured.Unstructured) time.Duration {
	seconds, _, _ := unstructured.NestedInt64(o.Object, "spec", "leaseDurationSeconds")
	return time.Duration(seconds) * time.Second
}

func (b *Backend) listLeases(ctx context.Context, kind string) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := b.leases.List(ctx, metav1.ListOptions{LabelSelector: ManagedBy + "=" + Manager + "," + kindLabel + "=" + kind})
	if err != nil {
		return nil, fmt.Errorf("listing the Leases (%s) in %s: %w", kind, b.Namespace, err)
	}
	return list.Items, nil
}

// used returns the IDs that any process refers to, without those of Leases that were not renewed in time.
func (b *Backend) used(ctx context.Context) (map[uint64]bool, error) {
	leases, err := b.listLeases(ctx, kindNode)
	if err != nil {
		return nil, err
	}
	all := make(map[uint64]bool)
	for i := range leases {
		if b.isVoid(&leases[i]) {
			continue
		}
		for text := range strings.SplitSeq(leases[i].GetAnnotations()[usesAnnotation], ",") {
			if id, err := strconv.ParseUint(text, 10, 64); err == nil {
				all[id] = true
			}
		}
	}
	return all, nil
}

// isVoid reports whether a Lease of references was not renewed within its duration, since this process first saw its
// current version.
func (b *Backend) isVoid(o *unstructured.Unstructured) bool {
	b.collecting.Lock()
	defer b.collecting.Unlock()
	s, known := b.seen[o.GetName()]
	if !known || s.version != o.GetResourceVersion() {
		b.seen[o.GetName()] = observation{o.GetResourceVersion(), time.Now()}
		return false
	}
	return time.Since(s.at) > lasts(o)
}

// InUse reports whether any process refers to the ID.
func (b *Backend) InUse(ctx context.Context, id uint64, _ allocator.Key) (bool, error) {
	used, err := b.used(ctx)
	return used[id], err
}
