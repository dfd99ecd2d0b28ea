package crdbackend

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
	"github.com/mesh-agent/mesh-agent/pkg/allocator"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
)

const (
	// lockLasts is the time after which other processes take over a lock, as in a kvstore.
	lockLasts = 25 * time.Second
	// lockUse is how long its holder relies on a lock.
	lockUse = 20 * time.Second
	// A held lock is checked again after pauses that grow.
	firstPause, longestPause = 20 * time.Millisecond, 500 * time.Millisecond
	// locksAtOnce is how many locks a process holds at the same time. Clients are rate-limited: with more locks, the
	// holders would wait for each other's requests until the locks expire.
	locksAtOnce = 16
	// unlockTimeout bounds the release of a lock; after that the lock expires.
	unlockTimeout = 3 * time.Second
)

type lease struct {
	until time.Time
	free  func()
	gone  atomic.Bool
}

// Unlock implements [allocator.Lock].
func (l *lease) Unlock() {
	if !l.gone.Swap(true) {
		l.free()
	}
}

// under bounds the context of operations that need the lock; a nil lock is no condition.
func under(ctx context.Context, lock allocator.Lock) (context.Context, context.CancelFunc, error) {
	l, is := lock.(*lease)
	if !is {
		return ctx, func() {}, nil
	}
	if l.gone.Load() || !time.Now().Before(l.until) {
		return nil, nil, fmt.Errorf("%w: a lock in the Kubernetes API", kvstore.ErrLockLeaseExpired)
	}
	ctx, cancel := context.WithDeadline(ctx, l.until)
	return ctx, cancel, nil
}

// Lock implements [allocator.Backend].
func (b *Backend) Lock(ctx context.Context, key allocator.Key) (allocator.Lock, error) {
	select {
	case b.locks <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l, err := b.lock(ctx, key)
	if err != nil {
		<-b.locks
		return nil, err
	}
	return l, nil
}

func (b *Backend) lock(ctx context.Context, key allocator.Key) (*lease, error) {
	name := "mesh-agent-lock-" + hash(key)
	holder := b.name + "/" + rand.Text() // unique to this call
	var held observation
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		began := time.Now()
		o, err := b.leases.Create(ctx, newLease(name, map[string]string{kindLabel: kindLock}, holder, lockLasts), metav1.CreateOptions{})
		if err == nil {
			uid := o.GetUID()
			return &lease{until: began.Add(lockUse), free: func() { b.unlock(name, uid) }}, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			b.undo(name, holder)
			return nil, fmt.Errorf("locking %s in the Kubernetes API: %w", key, err)
		}
		if held, err = b.expire(ctx, name, held); err != nil {
			return nil, fmt.Errorf("waiting for the lock of %s in the Kubernetes API: %w", key, err)
		}
		if err := waiting.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// undo deletes a lock after a failed creation. The lock may exist: the answer was lost, or the caller stopped waiting
// for it.
func (b *Backend) undo(name, holder string) {
	ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
	defer cancel()
	o, err := b.leases.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return // it does not exist, or it expires
	}
	if whose, _, _ := unstructured.NestedString(o.Object, "spec", "holderIdentity"); whose == holder {
		_ = b.deleteLease(ctx, name, o.GetUID()) // if this fails, it expires
	}
}

// expire deletes a lock that has had the same holder for too long. It returns the current holder, and when this
// process first saw it.
func (b *Backend) expire(ctx context.Context, name string, held observation) (observation, error) {
	o, err := b.leases.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return observation{}, nil
	case err != nil:
		return held, err
	case held.version != string(o.GetUID()):
		return observation{string(o.GetUID()), time.Now()}, nil
	case time.Since(held.at) < lockLasts:
		return held, nil
	}
	b.Log.Warn("Deleted a lock that a client held too long", "lease", name)
	return observation{}, b.deleteLease(ctx, name, o.GetUID())
}

func (b *Backend) deleteLease(ctx context.Context, name string, uid types.UID) error {
	_, err := deleteIf(ctx, b.leases, name, metav1.Preconditions{UID: &uid})
	return err
}

// deleteIf deletes an object. It reports false when the object is gone or has changed.
func deleteIf(ctx context.Context, in dynamic.ResourceInterface, name string, is metav1.Preconditions) (bool, error) {
	err := in.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &is})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

func stateOf(o *unstructured.Unstructured) metav1.Preconditions {
	uid, version := o.GetUID(), o.GetResourceVersion()
	return metav1.Preconditions{UID: &uid, ResourceVersion: &version}
}

func (b *Backend) unlock(name string, uid types.UID) {
	defer func() { <-b.locks }()
	ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
	defer cancel()
	if err := b.deleteLease(ctx, name, uid); err != nil {
		b.Log.Debug("Cannot release a lock; it ends with its lease", "lease", name, "error", err)
	}
}
