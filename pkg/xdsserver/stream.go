package xdsserver

import (
	"cmp"
	"context"
	"maps"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// clientStream is one stream: what go-control-plane asks for watches, and reports to. Its methods are
// called by the goroutine of the stream.
type clientStream struct {
	*client
	s        *Server
	followed [kinds]map[string]struct{} // as the catalog knows it
	wildcard bool                       // as the catalog knows it
}

var _ cache.ConfigWatcher = (*clientStream)(nil)

// CreateWatch implements [cache.ConfigWatcher].
func (c *clientStream) CreateWatch(r *cache.Request, sub cache.Subscription, to chan cache.Response) (func(), error) {
	from, err := c.subscribe(kindOf(r.GetTypeUrl()), sub)
	if from == nil || err != nil {
		return func() {}, err
	}
	if r.GetResponseNonce() != "" {
		r.VersionInfo = c.s.catalog.prefix // without it, who rejects the first answer would be sent an empty one
	}
	return from.CreateWatch(r, sub, to)
}

// CreateDeltaWatch implements [cache.ConfigWatcher].
func (c *clientStream) CreateDeltaWatch(r *cache.DeltaRequest, sub cache.Subscription, to chan cache.DeltaResponse) (func(), error) {
	from, err := c.subscribe(kindOf(r.GetTypeUrl()), sub)
	if from == nil || err != nil {
		return func() {}, err
	}
	return from.CreateDeltaWatch(r, sub, to)
}

// subscribe makes the catalog have what the stream follows of a kind, and returns the cache that has
// it; nil for a kind that is not served: it is never answered, and ends nothing.
func (c *clientStream) subscribe(k kind, sub cache.Subscription) (*cache.LinearCache, error) {
	if k == kinds {
		return nil, nil
	}
	names := sub.SubscribedResources()
	if len(names) > c.s.names {
		return nil, c.refuse(tooManyNames, "%d names of one type are more than the %d that a stream may follow", len(names), c.s.names)
	}
	if sub.IsWildcard() {
		names = nil
	}
	if err := c.setNames(k, names, sub.IsWildcard()); err != nil {
		return nil, c.refuse(tooManyNames, "%v", err)
	}
	switch {
	case !sub.IsWildcard():
		return c.s.catalog.named[k], nil
	case k == clusterKind:
		return c.s.catalog.all, nil
	}
	return c.s.catalog.none[k], nil
}

// setNames replaces what the stream follows of a kind.
func (c *clientStream) setNames(k kind, names map[string]struct{}, everything bool) error {
	var added, gone []string
	for name := range names {
		if _, before := c.followed[k][name]; !before {
			added = append(added, name)
		}
	}
	for name := range c.followed[k] {
		if _, still := names[name]; !still {
			gone = append(gone, name)
		}
	}
	c.followed[k] = maps.Clone(names)
	c.mu.Lock()
	c.of(k).all, c.of(k).names = everything, c.followed[k]
	c.mu.Unlock()
	if len(added) > 0 {
		if err := c.s.catalog.follow(k, added); err != nil {
			return err
		}
	}
	if len(gone) > 0 {
		if err := c.s.catalog.unfollow(k, gone); err != nil {
			return err
		}
	}
	if len(added)+len(gone) > 0 {
		c.s.metrics.follow(c.s.catalog.names())
	}
	if k != clusterKind || everything == c.wildcard {
		return nil
	}
	c.wildcard = everything
	if everything {
		return c.s.catalog.followEverything()
	}
	return c.s.catalog.unfollowEverything()
}

// leave lets go of everything.
func (c *clientStream) leave() {
	for k := range kinds {
		if err := c.setNames(k, nil, false); err != nil {
			c.s.log.Error("Cannot release the resources of an xDS client that left", "error", err)
		}
	}
}

func (c *clientStream) refuse(reason, format string, args ...any) error {
	c.s.metrics.refused.WithLabelValues(reason).Inc()
	return status.Errorf(codes.ResourceExhausted, format, args...)
}

// request judges a request before it is carried out.
func (c *clientStream) request(url string, node *corev3.Node, names int, nonce string, rejection *rpcstatus.Status) error {
	k := kindOf(url)
	c.s.metrics.requests.WithLabelValues(k.String()).Inc()
	c.introduce(node)
	if names > c.s.names {
		return c.refuse(tooManyNames, "%d names in a request are more than the %d that a stream may follow", names, c.s.names)
	}
	if k == kinds {
		return nil
	}
	reason := ""
	if rejection != nil {
		reason = cmp.Or(rejection.GetMessage(), "without a reason")
		c.s.metrics.rejected.WithLabelValues(k.String()).Inc()
	}
	c.answers(k, nonce, reason, c.s.now())
	if reason != "" && c.s.saying.Allow() {
		shown := c.show(c.s.catalog.without)
		c.s.log.Warn("An xDS client rejected a response and keeps its previous resources", "client", shown.Peer, "node", shown.Node, "type", k.String(), "reason", safe(reason, maxReason))
	}
	return nil
}

func (c *clientStream) response(url, version, nonce string) {
	k := kindOf(url)
	if k == kinds {
		return
	}
	c.s.metrics.responses.WithLabelValues(k.String()).Inc()
	c.s.served.Add(1)
	c.sends(k, version, nonce)
}

// OnStreamOpen, and all others below, implement the callbacks of go-control-plane.
func (c *clientStream) OnStreamOpen(context.Context, int64, string) error { return nil }

// OnStreamClosed is called at the end.
func (c *clientStream) OnStreamClosed(int64, *corev3.Node) {}

// OnStreamRequest is called for each request.
func (c *clientStream) OnStreamRequest(_ int64, r *discovery.DiscoveryRequest) error {
	return c.request(r.GetTypeUrl(), r.GetNode(), len(r.GetResourceNames()), r.GetResponseNonce(), r.GetErrorDetail())
}

// OnStreamResponse is called before each answer.
func (c *clientStream) OnStreamResponse(_ context.Context, _ int64, _ *discovery.DiscoveryRequest, r *discovery.DiscoveryResponse) {
	c.response(r.GetTypeUrl(), r.GetVersionInfo(), r.GetNonce())
}

// OnDeltaStreamOpen is called at the beginning of an incremental stream.
func (c *clientStream) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }

// OnDeltaStreamClosed is called at its end.
func (c *clientStream) OnDeltaStreamClosed(int64, *corev3.Node) {}

// OnStreamDeltaRequest is called for each of its requests.
func (c *clientStream) OnStreamDeltaRequest(_ int64, r *discovery.DeltaDiscoveryRequest) error {
	return c.request(r.GetTypeUrl(), r.GetNode(), len(r.GetResourceNamesSubscribe()), r.GetResponseNonce(), r.GetErrorDetail())
}

// OnStreamDeltaResponse is called before each of its answers.
func (c *clientStream) OnStreamDeltaResponse(_ int64, _ *discovery.DeltaDiscoveryRequest, r *discovery.DeltaDiscoveryResponse) {
	c.response(r.GetTypeUrl(), r.GetSystemVersionInfo(), r.GetNonce())
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
