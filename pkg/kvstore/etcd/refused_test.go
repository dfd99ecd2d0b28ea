package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mesh-agent/mesh-agent/pkg/kvstore"
	"github.com/mesh-agent/mesh-agent/pkg/kvstore/hint"
	"github.com/mesh-agent/mesh-agent/simtest/etcdtest"
	"github.com/mesh-agent/mesh-agent/simtest/waittest"
)

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("anything"), false},
		{context.DeadlineExceeded, false},
		{kvstore.ErrLockLeaseExpired, false},
		{kvstore.ErrServerChanged, false},
		{rpctypes.ErrGRPCPermissionDenied, true},
		{rpctypes.ErrGRPCRequestTooLarge, true},
		{rpctypes.ErrGRPCTooManyOps, true},
		{rpctypes.ErrGRPCDuplicateKey, true},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max (9 vs. 8)"), true},
		{rpctypes.ErrGRPCNoSpace, false},
		{rpctypes.ErrTooManyRequests, false},
		{rpctypes.ErrGRPCLeaderChanged, false},
		{rpctypes.ErrGRPCLeaseNotFound, false},
		{rpctypes.ErrGRPCAuthFailed, false},
		{rpctypes.ErrGRPCInvalidAuthToken, false},
		{rpctypes.ErrGRPCUserEmpty, false},
		{rpctypes.ErrGRPCAuthOldRevision, false},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("around it: %w", hint.Failed("update", "k", fromRPC(err)))
		}
		if kvstore.IsRefused(err) != c.want {
			t.Errorf("%v: refused is %t", err, !c.want)
		}
	}
}

// TestALargeUpdateIsRefused tests the server's limits for a request and for a message.
func TestALargeUpdateIsRefused(t *testing.T) {
	t.Parallel()
	srv := etcdtest.Start(t)
	e, _ := writer(t, srv.Endpoint(), hasty())
	for _, size := range []int{2 << 19, 2 << 20, 2 << 22} {
		_, err := e.Update(waittest.Context(t), []kvstore.Write{{Key: "a", Value: []byte("1")}, {Key: "b", Value: make([]byte, size)}}, kvstore.Leased())
		if size < 3<<19 {
			if err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
		} else if !kvstore.IsRefused(err) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
