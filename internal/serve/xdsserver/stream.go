package xdsserver

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// clientStream is one stream. go-control-plane gets watches from it, and calls it for requests and answers. Its
// methods are called by the goroutine of the stream, except those that admit requests.
type clientStream struct {
	*client
	s           *Server
	ctx         context.Context            //nolint:containedctx // of the stream
	owner       netip.Addr                 // the owner of the memory that the stream uses
	followed    [kinds]map[string]struct{} // as the catalog has it
	wildcard    bool                       // as the catalog has it
	everything  int64                      // bytes that are counted for following all clusters
	besides     [kinds]int64               // bytes that are counted for names that are given along with a wildcard
	unconfirmed [kinds]int64               // bytes of answers that are not confirmed
}

var _ cache.ConfigWatcher = (*clientStream)(nil)

// CreateWatch implements [cache.ConfigWatcher].
func (c *clientStream) CreateWatch(r *cache.Request, sub cache.Subscription, to chan cache.Response) (func(), error) {
	from, err := c.subscribe(kindOf(r.GetTypeUrl()), sub)
	if from == nil || err != nil {
		return nil, err
	}
	return from.CreateWatch(r, sub, to), nil
}

// CreateDeltaWatch implements [cache.ConfigWatcher].
func (c *clientStream) CreateDeltaWatch(r *cache.DeltaRequest, sub cache.Subscription, to chan cache.DeltaResponse) (func(), error) {
	from, err := c.subscribe(kindOf(r.GetTypeUrl()), sub)
	if from == nil || err != nil {
		return nil, err
	}
	return from.CreateDeltaWatch(r, sub, to), nil
}

// subscribe updates the resources that the stream follows of a kind in the catalog, and returns the cache with these
// resources; nil for a kind that is not served.
func (c *clientStream) subscribe(k kind, sub cache.Subscription) (*resourceCache, error) {
	if k == kinds {
		return nil, nil
	}
	names := sub.SubscribedResources()
	if len(names) > c.s.names {
		return nil, c.tooManyNames(len(names))
	}
	var besides []string
	if sub.IsWildcard() { // the names have no meaning then, but go-control-plane keeps them
		names, besides = nil, slices.Collect(maps.Keys(names))
		if k == clusterKind {
			besides = append(besides, c.s.catalog.all.absent(sub)...)
		}
	}
	err := c.setBesides(k, besides)
	if err == nil {
		err = c.setNames(k, names, sub.IsWildcard())
	}
	if err != nil {
		return nil, c.refuse(tooMuchMemory, "there is no memory for more names and resources, in bytes (--xds-max-memory; one address has 25 %%): %v", err)
	}
	switch {
	case !sub.IsWildcard():
		return c.s.catalog.named[k], nil
	case k == clusterKind:
		return c.s.catalog.all, nil
	}
	return c.s.catalog.none[k], nil
}

// setNames replaces the names that the stream follows of a kind. After an error, the names are the same as before.
func (c *clientStream) setNames(k kind, names map[string]struct{}, everything bool) error {
	if k == clusterKind {
		if err := c.setEverything(everything); err != nil {
			return err
		}
	}
	added, gone := missing(names, c.followed[k]), missing(c.followed[k], names)
	if len(added)+len(gone) > 0 {
		if err := c.exchange(k, added, gone); err != nil {
			return err
		}
		c.followed[k] = maps.Clone(names)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(k).follow(everything, c.followed[k])
	return nil
}

// exchange follows the added names, and unfollows the gone ones.
func (c *clientStream) exchange(k kind, added, gone []string) error {
	from := c.s.catalog
	take := from.kept.Reserve
	if c.numNames()+len(added) <= fewNames {
		take = from.kept.ReserveBeyond
	}
	if err := take(c.owner, costOf(added)); err != nil {
		return err
	}
	if len(added) > 0 {
		if err := from.follow(c.owner, take, k, added); err != nil {
			from.kept.Release(c.owner, costOf(added))
			return err
		}
	}
	if len(gone) > 0 {
		from.unfollow(c.owner, k, gone)
		from.kept.Release(c.owner, costOf(gone))
	}
	return nil
}

// numNames is the number of names of all kinds that the stream follows.
func (c *clientStream) numNames() (n int) {
	for k := range kinds {
		n += len(c.followed[k])
	}
	return n
}

// setEverything sets whether the stream follows all clusters, and counts the memory for that.
func (c *clientStream) setEverything(everything bool) error {
	from := c.s.catalog
	if everything && !c.wildcard {
		from.followEverything()
	} else if !everything && c.wildcard {
		from.unfollowEverything()
	}
	c.wildcard = everything
	var cost int64
	if everything {
		cost = int64(from.all.length()) * everythingOverhead
	}
	if err := from.kept.Reserve(c.owner, cost-c.everything); err != nil {
		return err
	}
	c.everything = cost
	return nil
}

// setBesides counts the names that a client gives along with a wildcard, and those of the resources that only the client has:
// go-control-plane keeps them.
func (c *clientStream) setBesides(k kind, names []string) error {
	cost := costOf(names)
	if err := c.s.catalog.kept.Reserve(c.owner, cost-c.besides[k]); err != nil {
		return err
	}
	c.besides[k] = cost
	return nil
}

// missing returns the names that are not in others.
func missing(names, others map[string]struct{}) (all []string) {
	for name := range names {
		if _, has := others[name]; !has {
			all = append(all, name)
		}
	}
	return all
}

// leave unfollows everything.
func (c *clientStream) leave() {
	for k := range kinds {
		_ = c.setBesides(k, nil) // there is always room for fewer bytes
		_ = c.setNames(k, nil, false)
		c.confirm(k)
	}
}

// sending counts an answer until its client confirms it: gRPC keeps the answer until the client reads it. If there is
// no room, it waits, since other clients may confirm theirs.
func (c *clientStream) sending(url string, size int) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.s.wait)
	defer cancel()
	for {
		err := c.s.catalog.sent.Reserve(c.owner, int64(size))
		if err != nil && size <= smallAnswer && c.unconfirmed == [kinds]int64{} { // other clients of the same address must not prevent small answers
			c.s.catalog.sent.Release(c.owner, -int64(size))
			err = nil
		}
		if err == nil {
			c.unconfirmed[kindOf(url)] += int64(size)
			return nil
		}
		if waiting.Sleep(ctx, readyInterval) != nil {
			return c.refuse(tooSlow, "there is no memory for more answers that clients have not confirmed, in bytes (half of --xds-max-memory; one address has 25 %%): %v", err)
		}
	}
}

// confirm releases the bytes that were counted for the answers of a kind.
func (c *clientStream) confirm(k kind) {
	c.s.catalog.sent.Release(c.owner, c.unconfirmed[k])
	c.unconfirmed[k] = 0
}

func (c *clientStream) refuse(reason, format string, args ...any) error {
	c.s.metrics.refused.WithLabelValues(reason).Inc()
	return status.Errorf(codes.ResourceExhausted, format, args...)
}

func (c *clientStream) tooManyNames(n int) error {
	return c.refuse(tooManyNames, "%d names of one type are more than the %d that a stream may follow (--xds-max-names)", n, c.s.names)
}

// request checks and counts a request before it is carried out.
func (c *clientStream) request(url string, names []string, nonce string, rejection *rpcstatus.Status) error {
	k := kindOf(url)
	c.s.metrics.requests.WithLabelValues(k.String()).Inc()
	if k == kinds { // without a type: go-control-plane ends the stream
		return nil
	}
	if len(names) > c.s.names {
		return c.tooManyNames(len(names))
	}
	for _, name := range names {
		if len(name) > maxName {
			c.s.metrics.refused.WithLabelValues(tooLong).Inc()
			return status.Errorf(codes.InvalidArgument, "the name of a resource has %d bytes, and at most %d are possible", len(name), maxName)
		}
	}
	reason := ""
	if rejection != nil {
		reason = cmp.Or(rejection.GetMessage(), "without a reason")
		c.s.metrics.rejected.WithLabelValues(k.String()).Inc()
	}
	if c.answers(k, nonce, reason, c.s.now()) {
		c.confirm(k)
	}
	if reason != "" && c.s.saying.Allow() {
		shown := c.show(c.s.catalog.without)
		c.s.log.Warn("An xDS client rejected a response and keeps its previous resources", "client", shown.Peer, "node", shown.Node, "type", k.String(), "reason", safe(reason, maxReason))
	}
	return nil
}

func (c *clientStream) response(url, version, nonce string) {
	k := kindOf(url)
	c.s.metrics.responses.WithLabelValues(k.String()).Inc()
	c.s.served.Add(1)
	c.sends(k, version, nonce)
}

// OnStreamOpen and the methods below implement the callbacks of go-control-plane.
func (c *clientStream) OnStreamOpen(context.Context, int64, string) error { return nil }

// OnStreamClosed is called at the end of a stream.
func (c *clientStream) OnStreamClosed(int64, *corev3.Node) {}

// OnStreamRequest is called for each request.
func (c *clientStream) OnStreamRequest(_ int64, r *discovery.DiscoveryRequest) error {
	return c.request(r.GetTypeUrl(), r.GetResourceNames(), r.GetResponseNonce(), r.GetErrorDetail())
}

// OnStreamResponse is called before each answer.
func (c *clientStream) OnStreamResponse(_ context.Context, _ int64, _ *discovery.DiscoveryRequest, r *discovery.DiscoveryResponse) {
	c.response(r.GetTypeUrl(), r.GetVersionInfo(), r.GetNonce())
}

// OnDeltaStreamOpen is called at the beginning of an incremental stream.
func (c *clientStream) OnDeltaStreamOpen(context.Context, int64, string) error { return nil }

// OnDeltaStreamClosed is called at the end of an incremental stream.
func (c *clientStream) OnDeltaStreamClosed(int64, *corev3.Node) {}

// OnStreamDeltaRequest is called for each request of an incremental stream.
func (c *clientStream) OnStreamDeltaRequest(_ int64, r *discovery.DeltaDiscoveryRequest) error {
	return c.request(r.GetTypeUrl(), r.GetResourceNamesSubscribe(), r.GetResponseNonce(), r.GetErrorDetail())
}

// OnStreamDeltaResponse is called before each answer of an incremental stream.
func (c *clientStream) OnStreamDeltaResponse(_ int64, _ *discovery.DeltaDiscoveryRequest, r *discovery.DeltaDiscoveryResponse) {
	c.response(r.GetTypeUrl(), r.GetSystemVersionInfo(), r.GetNonce())
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
