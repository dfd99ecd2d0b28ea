package servers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestXDSRequests: requests of any type, nonce, version and names, on streams of both kinds, some of which are never
// read.
func TestXDSRequests(t *testing.T) {
	w := newWorld(t)
	x := w.newXDSClients()
	w.attack(x.hostile, x.harmless)
}

// held is the number of streams that the attacker keeps open without reading them.
const held = 64

// xdsClients are connections for streams.
type xdsClients struct {
	w     *world
	to    []discovery.AggregatedDiscoveryServiceClient
	mu    sync.Mutex
	kept  [held]context.CancelFunc // guarded by mu
	count int                      // guarded by mu
}

// newXDSClients opens several connections, since each may have only a few streams.
func (w *world) newXDSClients() *xdsClients {
	w.tb.Helper()
	x := &xdsClients{w: w}
	for range 8 {
		c, conn, err := w.xdsClient()
		must(w.tb, err)
		w.tb.Cleanup(func() { _ = conn.Close() })
		x.to = append(x.to, c)
	}
	w.tb.Cleanup(func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, leave := range x.kept {
			if leave != nil {
				leave()
			}
		}
	})
	return x
}

// keep makes a stream stay open, in place of the oldest one.
func (x *xdsClients) keep(leave context.CancelFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	place := &x.kept[x.count%held]
	if *place != nil {
		(*place)()
	}
	*place = leave
	x.count++
}

// typeURL is a served type, an unserved one, or an invalid one.
func typeURL(r *rand.Rand) string {
	return one(r, resource.EndpointType, resource.ListenerType, resource.RouteType, resource.ClusterType, resource.EndpointType, resource.ClusterType,
		resource.SecretType, resource.RuntimeType, "", "type.googleapis.com/nothing", strings.Repeat("x", r.IntN(5000)), "\x00\n")
}

// xdsName is a name of the world's in one of its spellings, or an invalid one.
func xdsName(r *rand.Rand) string {
	service := fmt.Sprint("svc", r.IntN(numServices+5))
	name := one(r, "ns/"+service+":http", "ns/"+service, "ns/"+service+":8000", service+".ns.svc.clusterset.local:http", service+".ns.svc.clusterset.local.",
		"*", "", ":", "/", "ns/"+service+":", "NS/"+strings.ToUpper(service)+":http", "xdstp://a/b/c?d=e", target, fmt.Sprintf("ns%d/svc:http", r.IntN(1e6)),
		strings.Repeat("a", r.IntN(600)), string([]rune{rune(r.IntN(0x3000)), '\n', 0}), "ns/"+service+":http\u202e")
	if r.IntN(3) == 0 {
		b := []byte(name)
		for i := range b {
			if b[i] >= 'a' && b[i] <= 'z' && r.IntN(2) == 0 {
				b[i] -= 'a' - 'A'
			}
		}
		return string(b)
	}
	return name
}

// xdsNames are some names, sometimes many.
func xdsNames(r *rand.Rand) (all []string) {
	most := 6
	if r.IntN(100) == 0 {
		most = 5000
	}
	for range r.IntN(most) {
		all = append(all, xdsName(r))
	}
	return all
}

// xdsNode is the node of a client, sometimes a large one.
func xdsNode(r *rand.Rand) *corev3.Node {
	n := &corev3.Node{Id: one(r, "", "evil", strings.Repeat("n", r.IntN(3000)), "a\nb\x1b[31m"), Cluster: xdsName(r), UserAgentName: one(r, "", "envoy", "x\x00y")}
	for range r.IntN(4) {
		if n.Metadata == nil {
			n.Metadata = &structpb.Struct{Fields: make(map[string]*structpb.Value)}
		}
		n.Metadata.Fields[xdsName(r)] = structpb.NewStringValue(strings.Repeat("m", one(r, 10, 10, 1000, 100_000)))
		n.ClientFeatures = append(n.ClientFeatures, xdsName(r))
	}
	return n
}

func xdsRejection(r *rand.Rand) *rpcstatus.Status {
	if r.IntN(5) > 0 {
		return nil
	}
	return &rpcstatus.Status{Code: int32(r.Uint32()), Message: one(r, "", "no\nway\x1b[2J", strings.Repeat("e", r.IntN(50_000)))}
}

// hostile opens a stream and sends requests of any kind.
func (x *xdsClients) hostile(ctx context.Context, r *rand.Rand) int {
	ctx, leave := context.WithCancel(ctx)
	c, requests := one(r, x.to...), 1+r.IntN(40)
	var seen nonces
	var send func() error
	var read func() error
	var end func() error
	if r.IntN(2) == 0 {
		s, err := c.DeltaAggregatedResources(ctx)
		if err != nil {
			leave()
			return 1
		}
		send = func() error { return s.Send(deltaRequest(r, &seen)) }
		read = func() error { a, err := s.Recv(); seen.add(a.GetNonce()); return err }
		end = s.CloseSend
	} else {
		s, err := c.StreamAggregatedResources(ctx)
		if err != nil {
			leave()
			return 1
		}
		send = func() error { return s.Send(sotwRequest(r, &seen)) }
		read = func() error { a, err := s.Recv(); seen.add(a.GetNonce()); return err }
		end = s.CloseSend
	}
	if r.IntN(20) == 0 { // the client never reads, so that its sends may block
		requests = min(requests, 8)
		sent := 0
		timeout := time.AfterFunc(lostTime, leave)
		for ; sent < requests && send() == nil; sent++ {
		}
		if timeout.Stop() {
			x.keep(leave)
		}
		return max(sent, 1)
	}
	defer leave()
	return x.converse(requests, send, read, end, leave)
}

// converse reads all answers while it sends.
func (x *xdsClients) converse(requests int, send, read, end func() error, leave func()) (sent int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for read() == nil {
		}
	}()
	for ; sent < requests && send() == nil; sent++ {
	}
	_ = end()
	timeout := time.AfterFunc(lostTime, leave) // a server may not end the stream at the end of the requests
	<-done
	timeout.Stop()
	return max(sent, 1)
}

// nonces are those that the server has sent.
type nonces struct {
	mu   sync.Mutex
	last string // guarded by mu
}

func (n *nonces) add(nonce string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = nonce
}

// any is the last one, or any other.
func (n *nonces) any(r *rand.Rand) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return one(r, n.last, n.last, "", "1", strings.Repeat("9", r.IntN(1000)))
}

func deltaRequest(r *rand.Rand, seen *nonces) *discovery.DeltaDiscoveryRequest {
	q := &discovery.DeltaDiscoveryRequest{
		TypeUrl: typeURL(r), ResponseNonce: seen.any(r), ResourceNamesSubscribe: xdsNames(r), ResourceNamesUnsubscribe: xdsNames(r), ErrorDetail: xdsRejection(r),
	}
	if r.IntN(3) == 0 {
		q.Node = xdsNode(r)
	}
	if r.IntN(4) == 0 {
		q.InitialResourceVersions = make(map[string]string)
		for _, name := range xdsNames(r) {
			q.InitialResourceVersions[name] = strings.Repeat("v", r.IntN(100))
		}
	}
	return q
}

func sotwRequest(r *rand.Rand, seen *nonces) *discovery.DiscoveryRequest {
	q := &discovery.DiscoveryRequest{
		TypeUrl: typeURL(r), ResponseNonce: seen.any(r), VersionInfo: one(r, "", "1", strings.Repeat("v", r.IntN(1000))), ResourceNames: xdsNames(r), ErrorDetail: xdsRejection(r),
	}
	if r.IntN(3) == 0 {
		q.Node = xdsNode(r)
	}
	return q
}

// harmless follows some services, and ends the stream.
func (x *xdsClients) harmless(ctx context.Context, r *rand.Rand) int {
	return x.friendly(ctx, r, one(r, x.to...))
}

// newcomer does the same over a new connection.
func (x *xdsClients) newcomer(ctx context.Context, r *rand.Rand) int {
	c, conn, err := x.w.xdsClient()
	if err != nil {
		return 1
	}
	defer conn.Close()
	return x.friendly(ctx, r, c)
}

func (x *xdsClients) friendly(ctx context.Context, r *rand.Rand, c discovery.AggregatedDiscoveryServiceClient) int {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	s, err := c.DeltaAggregatedResources(ctx)
	if err != nil {
		return 1
	}
	send := func() error {
		service := fmt.Sprintf("ns/svc%d:http", r.IntN(numServices))
		return s.Send(&discovery.DeltaDiscoveryRequest{Node: friendlyNode(), TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{service}})
	}
	read := func() error { _, err := s.Recv(); return err }
	return x.converse(20, send, read, s.CloseSend, leave)
}
