package xdsserver

import (
	"sync/atomic"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// received keeps why a request could not be received: go-control-plane ends the stream then, as if the
// client had.
type received[R any] struct {
	from   interface{ Recv() (R, error) }
	failed atomic.Bool
}

// Recv receives a request.
func (r *received[R]) Recv() (R, error) {
	request, err := r.from.Recv()
	if status.Code(err) == codes.ResourceExhausted {
		r.failed.Store(true)
	}
	return request, err
}

// or is the error of a handler, or why it ended without one.
func (r *received[R]) or(err error, c *clientStream) error {
	if err == nil && r.failed.Load() {
		return c.refuse(tooLong, "a request is longer than %d bytes", maxRequest)
	}
	return err
}

// wholeState is a stream with the state of the world.
type wholeState struct {
	discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	requests *received[*discovery.DiscoveryRequest]
}

// Recv receives a request.
func (s wholeState) Recv() (*discovery.DiscoveryRequest, error) { return s.requests.Recv() }

// incremental is an incremental stream.
type incremental struct {
	discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	requests *received[*discovery.DeltaDiscoveryRequest]
}

// Recv receives a request.
func (s incremental) Recv() (*discovery.DeltaDiscoveryRequest, error) { return s.requests.Recv() }
