package etcdserver

import (
	"context"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// busy gives up the first requests.
type busy struct {
	clientv3.KV
	left int
	says error
}

func (b *busy) Put(context.Context, string, string, ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	if b.left--; b.left >= 0 {
		return nil, b.says
	}
	return new(clientv3.PutResponse), nil
}

func TestAWriteThatABusyServerGivesUpIsSentAgain(t *testing.T) {
	t.Parallel()
	noSpace := errors.New("no space")
	for says, want := range map[error]error{rpctypes.ErrTimeout: nil, errors.New("etcdserver: request timed out"): nil, noSpace: noSpace} {
		c := Patient(&clientv3.Client{KV: &busy{left: 2, says: says}})
		if _, err := c.Put(t.Context(), "a", "b"); err != want {
			t.Errorf("%v: %v", says, err)
		}
	}
}
