package simulate

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/mesh-agent/mesh-agent/internal/kube/endpointslices"
	"github.com/mesh-agent/mesh-agent/pkg/wire"
	"github.com/mesh-agent/mesh-agent/simtest/model"
)

// remoteSlices judges the EndpointSlices of remote backends that the agents of a cluster write.
type remoteSlices struct {
	c *cluster

	mu    sync.Mutex
	added map[remoteBackend]time.Time // when a backend came into a slice; guarded by mu
	asked map[string]time.Time        // the last operation on a Service that decides whether it has slices; guarded by mu
	left  time.Time                   // when a client file vanished or came back last; guarded by mu
}

// remoteBackend is a backend in the slices of a Service.
type remoteBackend struct{ service, cluster, address string }

func newRemoteSlices(c *cluster) *remoteSlices {
	return &remoteSlices{c: c, added: make(map[remoteBackend]time.Time), asked: make(map[string]time.Time)}
}

// backendsOf returns the backends in the slices of a Service, by cluster, in the order of their addresses.
func (s *remoteSlices) backendsOf(service string) map[string][]string {
	all := make(map[string][]string)
	objects := s.c.Source.EndpointSlices
	for slice := range objects.Table().All(objects.Snapshot()) {
		if !endpointslices.IsOurs(slice) || full(slice.Labels[discoveryv1.LabelServiceName]) != service {
			continue
		}
		cluster := slice.Labels[endpointslices.LabelCluster]
		for _, e := range slice.Endpoints {
			all[cluster] = append(all[cluster], e.Addresses...)
		}
	}
	for _, addresses := range all {
		slices.Sort(addresses)
	}
	return all
}

// written judges the write of a slice of a Service: a backend vanishes only if its kvstore had the service without it, after
// the backend came.
func (s *remoteSlices) written(service string) {
	now := time.Now()
	are := s.backendsOf(service)
	s.mu.Lock()
	defer s.mu.Unlock()
	for b, since := range s.added {
		if b.service != service || slices.Contains(are[b.cluster], b.address) {
			continue
		}
		delete(s.added, b)
		if s.isExcused(service, now) || s.wasAbsent(b, since.Add(-lagOfViews)) {
			continue
		}
		s.c.w.found(fmt.Errorf("%s %s: the backend %s of %s vanishes from the slices of %s, and was always one since %s:%s", s.c.Own.Name, clock(now),
			b.address, b.cluster, b.service, clock(since), s.copies(b.cluster).describe(b.service)))
	}
	for cluster, addresses := range are {
		for i, address := range addresses {
			b := remoteBackend{service, cluster, address}
			if _, is := s.added[b]; !is {
				s.added[b] = now
			}
			if i > 0 && addresses[i-1] == address {
				s.c.w.found(fmt.Errorf("%s %s: the backend %s of %s is twice in the slices of %s", s.c.Own.Name, clock(now), address, cluster, service))
			}
		}
	}
}

// lagOfViews is how far a view can be behind its kvstore at most.
const lagOfViews = 10 * time.Minute

// isExcused reports whether backends of a service may vanish for another reason: its Service was changed, or a cluster is no
// longer read.
func (s *remoteSlices) isExcused(service string, now time.Time) bool {
	return now.Sub(s.asked[service]) < lagOfViews || now.Sub(s.left) < lagOfViews
}

// asks notes an operation on a Service, and leaves that a client file vanishes or returns.
func (s *remoteSlices) asks(service string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[service] = time.Now()
}

func (s *remoteSlices) leaves() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = time.Now()
}

func (s *remoteSlices) copies(cluster string) *recorded {
	return s.c.history.of(wire.Services, cluster, true)
}

// wasAbsent reports whether the copy of the cluster had the service without the backend at some time.
func (s *remoteSlices) wasAbsent(b remoteBackend, since time.Time) bool {
	for _, value := range s.c.history.values(s.copies(b.cluster), b.service, since) {
		decoded, err := wire.DecodeService(b.service, []byte(value), model.Expect(b.cluster, s.c.w.named(b.cluster).Own.ID, 0))
		if err != nil || !decoded.Shared {
			return true
		}
		if _, is := decoded.Backends[b.address]; !is {
			return true
		}
	}
	return false
}

// difference compares the slices of all Services with the backends that the other clusters share.
func (s *remoteSlices) difference(shared map[string]map[string][]string) string {
	services := s.c.Source.Services
	for svc := range services.Table().All(services.Snapshot()) {
		if !isGlobal(s.c.Cluster, svc.Namespace) {
			continue // the agent reads its own cluster from the kvstore, which does not have the service
		}
		name := svc.Namespace + "/" + svc.Name
		got, want := s.backendsOf(name), make(map[string][]string)
		if endpointslices.Eligible(svc) {
			for cluster, addresses := range shared[name] {
				if cluster != s.c.Own.Name && len(addresses) > 0 {
					want[cluster] = addresses
				}
			}
		}
		for cluster, addresses := range got {
			if len(addresses) == 0 {
				delete(got, cluster)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("the EndpointSlices of %s for %s have %s, not %s", s.c.Own.Name, name, got, want)
		}
	}
	var stray []string
	objects := s.c.Source.EndpointSlices
	for slice := range objects.Table().All(objects.Snapshot()) {
		service := slice.Namespace + "/" + slice.Labels[discoveryv1.LabelServiceName]
		if _, is := services.Get(services.Snapshot(), service); !is && endpointslices.IsOurs(slice) {
			stray = append(stray, slice.Name)
		}
	}
	if len(stray) > 0 {
		return fmt.Sprintf("%s has EndpointSlices without a Service: %s", s.c.Own.Name, strings.Join(stray, ", "))
	}
	return ""
}
