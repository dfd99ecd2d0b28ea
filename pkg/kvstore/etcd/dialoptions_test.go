package etcd

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/kvtest"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

// TestEndpointChecksCanBeLeftOut: only the first check is made. An interceptor in DialOptions
// counts the checks.
func TestEndpointChecksCanBeLeftOut(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	for name, without := range map[string]bool{"with": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, probes atomic.Int32
			o := quick()
			o.NoEndpointChecks = without
			o.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(
				func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
					if strings.HasSuffix(method, "Maintenance/Status") {
						asked.Add(1)
					}
					return invoke(ctx, method, req, reply, cc, opts...)
				},
			)}
			e := connect(t, addresses(t, srv.Endpoint()), o)
			ctx, cancel := context.WithCancel(t.Context())
			done := run(ctx, e, func(kvstore.Probe) { probes.Add(1) })
			waittest.Until(t, "probes", func() bool { return probes.Load() > 20 })
			if without && asked.Load() != 1 {
				t.Errorf("the endpoint was asked %d times", asked.Load())
			} else if !without {
				waittest.Until(t, "questions about the endpoint", func() bool { return asked.Load() > 2 })
			}
			if s := e.Status(); !s.Connected || s.Server.Version == "" {
				t.Errorf("%+v", s)
			}
			cancel()
			kvtest.WantErr(t, ends(t, done), context.Canceled)
		})
	}
}
