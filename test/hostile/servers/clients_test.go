package servers

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/mesh-agent/mesh-agent/internal/base/waiting"
)

// many keeps this many streams open, over connections of 15 each, until the context ends. Each gets its number. A
// stream that is refused is opened again.
func (w *world) many(ctx context.Context, streams int, talk func(ctx context.Context, number int, s discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient) error) int {
	var all sync.WaitGroup
	var tries atomic.Int64
	for first := 0; first < streams; first += 15 {
		c, conn, err := w.xdsClient()
		if err != nil {
			w.agent.fails(err.Error())
			break
		}
		defer conn.Close()
		for number := first; number < min(first+15, streams); number++ {
			all.Go(func() {
				for waiting.Sleep(ctx, 50*time.Millisecond) == nil && w.agent.alive() {
					stream, leave := context.WithCancel(ctx)
					if s, err := c.DeltaAggregatedResources(stream, grpc.MaxCallRecvMsgSize(64*mib)); err == nil {
						tries.Add(1)
						_ = talk(stream, number, s) // it expects the end of the stream
					}
					leave()
				}
			})
		}
	}
	all.Wait()
	return int(tries.Load())
}

// drain reads until the stream ends.
func drain(s discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient) error {
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
	}
}

// namesOfOtherTypes subscribes to more and more names of types that the agent does not serve.
func namesOfOtherTypes(ctx context.Context, w *world) int {
	return w.many(ctx, 4, func(ctx context.Context, number int, s discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient) error {
		go func() { _ = drain(s) }() // ends with the stream
		for n := 0; waiting.Sleep(ctx, 10*time.Millisecond) == nil; n++ {
			q := &discovery.DeltaDiscoveryRequest{TypeUrl: []string{resource.SecretType, "a", resource.RuntimeType}[number%3]}
			for i := range 1000 { // the maximum of a request
				q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, fmt.Sprintf("%d-%d-%d-%s", number, n, i, strings.Repeat("n", 900)))
			}
			if err := s.Send(q); err != nil {
				return err
			}
		}
		return nil
	})
}

// longNodes has 600 streams, each with a large node and many resource versions.
func longNodes(ctx context.Context, w *world) int {
	return w.many(ctx, 600, func(ctx context.Context, number int, s discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient) error {
		q := &discovery.DeltaDiscoveryRequest{TypeUrl: resource.EndpointType, ResourceNamesSubscribe: []string{target}, Node: &corev3.Node{
			Id: "long", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"m": structpb.NewStringValue(strings.Repeat("m", 450_000))}},
		}, InitialResourceVersions: make(map[string]string)}
		for i := range 5000 {
			q.InitialResourceVersions[fmt.Sprintf("ns/svc-%d-%d:http", number, i)] = strings.Repeat("v", 60)
		}
		if err := s.Send(q); err != nil {
			return err
		}
		return drain(s)
	})
}

// spellings follows one large service under a thousand names that differ in the case of their letters.
func spellings(ctx context.Context, w *world) int {
	w.writeMuch("spelled-in-many-ways", mostBackends)
	return w.many(ctx, 4, func(_ context.Context, number int, s discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient) error {
		q := &discovery.DeltaDiscoveryRequest{Node: friendlyNode(), TypeUrl: resource.EndpointType}
		for i := range 250 {
			name := []byte("spelled-in-many-ways.ns.svc.clusterset.local:a")
			for bit := range 10 {
				if (number*250+i)>>bit&1 == 1 && name[bit] != '-' {
					name[bit] -= 'a' - 'A'
				}
			}
			q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, string(name))
		}
		if err := s.Send(q); err != nil {
			return err
		}
		return drain(s)
	})
}

// allNames has clients that each follow the maximum number of names.
func allNames(ctx context.Context, w *world) int {
	return w.many(ctx, 150, func(_ context.Context, number int, s discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient) error {
		for _, url := range []string{resource.EndpointType, resource.ClusterType, resource.ListenerType} {
			q := &discovery.DeltaDiscoveryRequest{Node: friendlyNode(), TypeUrl: url}
			for i := range 1000 {
				q.ResourceNamesSubscribe = append(q.ResourceNamesSubscribe, fmt.Sprintf("taken%d/name%d:http", number, i))
			}
			if err := s.Send(q); err != nil {
				return err
			}
		}
		return drain(s)
	})
}

// hold opens connections, writes into each, reads nothing, and opens closed ones again.
func (w *world) hold(ctx context.Context, connections int, text func(number int) (from, request string)) int {
	const hands = 16
	var all sync.WaitGroup
	var opened atomic.Int64
	for hand := range hands {
		all.Go(func() {
			held := make([]net.Conn, connections/hands)
			defer func() {
				for _, conn := range held {
					if conn != nil {
						_ = conn.Close()
					}
				}
			}()
			for waiting.Sleep(ctx, 10*time.Millisecond) == nil && w.agent.alive() {
				for i := range held {
					if ctx.Err() == nil && (held[i] == nil || closed(held[i])) {
						held[i] = w.replaced(ctx, held[i], hand+hands*i, text)
						opened.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	return int(opened.Load())
}

// replaced closes a connection and opens a new one.
func (w *world) replaced(ctx context.Context, before net.Conn, number int, text func(number int) (from, request string)) net.Conn {
	if before != nil {
		_ = before.Close()
	}
	from, request := text(number)
	dialer := net.Dialer{Timeout: lostTime, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(ctx, "tcp", w.agent.api)
	if err != nil {
		return nil
	}
	_, _ = conn.Write([]byte(request)) // it may be closed at once
	return conn
}

// closed reports whether the other side has closed it; it reads at most one byte.
func closed(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Microsecond))
	_, err := conn.Read(make([]byte, 1))
	timeout, is := err.(net.Error)
	return err != nil && (!is || !timeout.Timeout())
}

// allConnections opens more loopback connections than the limit, some with half a request.
func allConnections(ctx context.Context, w *world) int {
	return w.hold(ctx, 4200, func(number int) (from, request string) {
		return "127.0.0.1", []string{"", "GET /healthz HTTP/1.1\r\n", "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"}[number%3]
	})
}

// slowReaders are many watches and lists from several addresses, whose clients do not read the answers.
func slowReaders(ctx context.Context, w *world) int {
	w.writeMuch("read-by-nobody", mostBackends)
	return w.hold(ctx, 300, func(number int) (from, request string) {
		return fmt.Sprint("127.0.0.", 2+number%6), fmt.Sprintf("GET %s HTTP/1.1\r\nHost: a\r\n\r\n", []string{"/v1/watch", "/v1/services", "/v1/watch?resource=services"}[number%3])
	})
}
