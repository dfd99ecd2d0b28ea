package kvbackend_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mesh-agent/mesh-agent/pkg/allocator"
)

func TestIDsAreListed(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		list := func(want ...uint64) {
			s.Helper()
			ids, err := b.ListIDs(s.Context())
			if diff := cmp.Diff(want, ids); err != nil || diff != "" {
				s.Errorf("%v (-want +got):\n%s", err, diff)
			}
		}
		list()
		s.put(base+"/id/9", "k8s:c=1;", base+"/id/10", "bad", base+"/id/131072", "k8s:a=1;", base+"/id/x", "k8s:x=1;",
			base+"/value/k8s:b=1;/10.0.0.9", "8")
		list(9, 10, 131072)
	})
}

// TestAnIDIsDeletedIfItIsUnused: an unused ID is deleted at once. Only a reference of its own key makes an ID used.
func TestAnIDIsDeletedIfItIsUnused(t *testing.T) {
	onBoth(t, func(s *site) {
		b := s.backend("10.0.0.1")
		s.put(
			base+"/id/7", "k8s:a=1;",
			base+"/id/8", "k8s:b=1;", base+"/value/k8s:b=1;/10.0.0.9", "8",
			base+"/id/9", "k8s:c=1;", base+"/value/k8s:c=1;/10.0.0.9", "8",
			base+"/id/10", "k8s:d=1;", base+"/value/k8s:d=1;/k8s:x=1;/10.0.0.9", "10",
			base+"/id/12", "bad",
		)
		for _, id := range []uint64{7, 9, 10, 12} {
			done, err := b.DeleteID(s.Context(), id)
			s.good(done, err, true)
		}
		if done, err := b.DeleteID(s.Context(), 8); done || !errors.Is(err, allocator.ErrIDInUse) {
			s.Errorf("one that is in use: %v, %v", done, err)
		}
		done, err := b.DeleteID(s.Context(), 7)
		s.good(done, err, false)
		s.want(
			"id/8", "k8s:b=1;", "value/k8s:b=1;/10.0.0.9", "8", "value/k8s:c=1;/10.0.0.9", "8",
			"value/k8s:d=1;/k8s:x=1;/10.0.0.9", "10",
		)
	})
}
