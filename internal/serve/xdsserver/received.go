package xdsserver

import (
	"errors"
	"sync/atomic"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mesh-agent/mesh-agent/internal/base/boundary"
)

// received passes the requests of a stream on to go-control-plane, which keeps all requests as long as the stream
// lasts. So it passes on only the data that is used: requests for types that are served, without the node. When a
// request cannot be received, go-control-plane ends the stream as if the client had ended it. So the reason is kept
// here.
type received[R any] struct {
	from   interface{ Recv() (R, error) }
	admit  func(R) bool // reports whether a request is passed on; removes the unused parts of it
	c      *clientStream
	failed atomic.Pointer[error]
}

// Recv receives the next request for a type that is served. go-control-plane calls it in a goroutine of its own.
func (r *received[R]) Recv() (request R, err error) {
	err = r.c.s.boundary.Run(func() error {
		for {
			if request, err = r.from.Recv(); err != nil || r.admit(request) {
				return err
			}
		}
	}, "client", r.c.Peer)
	switch {
	case errors.Is(err, boundary.ErrInternal):
		r.fail(status.Error(codes.Internal, err.Error()))
	case status.Code(err) == codes.ResourceExhausted:
		r.fail(r.c.refuse(tooLong, "a request is longer than %d bytes", maxRequest))
	}
	return request, err
}

func (r *received[R]) fail(err error) { r.failed.Store(&err) }

// or returns the error of a handler. If the handler has returned none, it returns the reason that was kept, if any.
func (r *received[R]) or(err error) error {
	if why := r.failed.Load(); err == nil && why != nil {
		return *why
	}
	return err
}

// admitWhole removes unused fields of a request of a state-of-the-world stream, and reports whether to pass it on.
func (c *clientStream) admitWhole(r *discovery.DiscoveryRequest) bool {
	c.introduce(r.GetNode())
	r.Node, r.ResourceLocators = nil, nil
	r.ProtoReflect().SetUnknown(nil)
	return c.isServed(r.GetTypeUrl())
}

// admitDelta is like admitWhole for an incremental stream. It keeps the versions that the client reports for names
// that this server may have sent. It removes the other names, so that they are not removed from the client.
func (c *clientStream) admitDelta(r *discovery.DeltaDiscoveryRequest) bool {
	c.introduce(r.GetNode())
	r.Node, r.ResourceLocatorsSubscribe, r.ResourceLocatorsUnsubscribe = nil, nil, nil
	r.ProtoReflect().SetUnknown(nil)
	if !c.isServed(r.GetTypeUrl()) {
		return false
	}
	for name, version := range r.GetInitialResourceVersions() {
		if _, ok := c.s.catalog.naming.parse(name); !ok || len(version) > maxVersion {
			delete(r.InitialResourceVersions, name)
		}
	}
	return true
}

// isServed reports whether a type is served. Requests for other types are never answered, and do not end the stream:
// Envoys ask for secrets. A request without a type is an error of the client, which go-control-plane reports.
func (c *clientStream) isServed(url string) bool {
	if url == "" || kindOf(url) != kinds {
		return true
	}
	c.s.metrics.requests.WithLabelValues(kinds.String()).Inc()
	return false
}

// wholeState is a state-of-the-world stream.
type wholeState struct {
	discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	requests *received[*discovery.DiscoveryRequest]
}

// Recv receives a request.
func (s wholeState) Recv() (*discovery.DiscoveryRequest, error) { return s.requests.Recv() }

// Send sends an answer.
func (s wholeState) Send(r *discovery.DiscoveryResponse) error {
	if err := s.requests.c.sending(r.GetTypeUrl(), proto.Size(r)); err != nil {
		return err
	}
	return s.AggregatedDiscoveryService_StreamAggregatedResourcesServer.Send(r)
}

// incremental is an incremental stream.
type incremental struct {
	discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	requests *received[*discovery.DeltaDiscoveryRequest]
}

// Recv receives a request.
func (s incremental) Recv() (*discovery.DeltaDiscoveryRequest, error) { return s.requests.Recv() }

// Send sends an answer.
func (s incremental) Send(r *discovery.DeltaDiscoveryResponse) error {
	if err := s.requests.c.sending(r.GetTypeUrl(), proto.Size(r)); err != nil {
		return err
	}
	return s.AggregatedDiscoveryService_DeltaAggregatedResourcesServer.Send(r)
}
